from __future__ import annotations

import importlib.util

if importlib.util.find_spec("openvino") is None:  # 50 megabytes: the tests of what it computes run where it is installed
    collect_ignore = ["test_answers.py", "test_contract.py", "test_delegate.py", "test_recorded.py", "test_translators.py"]
