"""Chat templates: from messages to the text that a model was trained on."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

from oplet.errors import LimitError, ModelError, StateError
from oplet.texts import plain
from oplet_tools.processes import TimeoutExpired, can_start_python, run_python

__all__ = ["Message", "render"]

#: A message: its "role" ("system", "user", "assistant") and its "content", a text or a list of parts.
Message = Mapping[str, Any]

#: The longest template and text, in characters, the time of rendering in seconds, and the memory of the process that renders, in bytes.
_LONGEST_TEMPLATE, _LONGEST, _SECONDS, _MEMORY = 1 << 20, 16 << 20, 5, 1 << 29


def render(template: str, messages: Sequence[Message], variables: Mapping[str, Any]) -> str:
    """Render a chat template for a conversation in Jinja's sandbox, in a process with limits of time and memory."""
    if len(template) > _LONGEST_TEMPLATE:
        raise LimitError(f"The chat template has {len(template)} characters; {_LONGEST_TEMPLATE} are taken at most.")
    if not can_start_python():
        raise StateError("The chat template runs in a process of its own, and none can be started; give the prompt as a text.")
    limits = {"seconds": _SECONDS, "memory": _MEMORY, "longest": _LONGEST}
    request = json.dumps({"template": template, "messages": [*messages], "variables": {**variables}, **limits})
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "template_child.py")
    exceeded = f"The chat template takes more than {_SECONDS} seconds or {_MEMORY >> 20} MiB of memory, or ends its process."
    try:
        done = run_python([script], input=request, capture_output=True, text=True, timeout=3 * _SECONDS)
    except TimeoutExpired as error:
        raise LimitError(exceeded) from error
    if done.returncode:
        raise LimitError(exceeded)
    answer = json.loads(done.stdout)
    if "error" in answer:
        raise ModelError(f"The chat template fails: {plain(answer['error'], 300).rstrip('.')}.")
    if len(text := str(answer["text"])) > _LONGEST:
        raise LimitError(f"The chat template gives more than {_LONGEST} characters.")
    return text
