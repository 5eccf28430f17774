"""Chat templates: from messages to the text that a model was trained on."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from oplet.errors import LimitError, ModelError, StateError
from oplet.texts import plain
from oplet_tools.processes import TimeoutExpired, can_start_python, run_python

if TYPE_CHECKING:
    from oplet_lm.bundles.metadata import Affixes

__all__ = ["Message", "join", "render"]

#: A message: its "role" ("system", "user", "assistant") and its "content", a text or a list of parts.
Message = Mapping[str, Any]

#: The longest template and text, in characters, the time of rendering in seconds, and the memory of the process that renders, in bytes.
_LONGEST_TEMPLATE, _LONGEST, _SECONDS, _MEMORY = 1 << 20, 16 << 20, 5, 1 << 29
#: What the template's roles are called in the older form, affixes.
_ROLES = {"assistant": "model"}


def render(template: str, messages: Sequence[Message], variables: Mapping[str, Any]) -> str:
    """Render a chat template for a conversation in Jinja's sandbox, in a process with limits of time and memory."""
    if len(template) > _LONGEST_TEMPLATE:
        raise LimitError(f"The chat template has {len(template)} characters; {_LONGEST_TEMPLATE} are taken at most.")
    if not can_start_python():
        raise StateError(
            "The chat template runs in a process of its own, which this program cannot start; give the prompt as a text."
        )
    limits = {"seconds": _SECONDS, "memory": _MEMORY, "longest": _LONGEST}
    request = json.dumps({"template": template, "messages": [*messages], "variables": {**variables}, **limits})
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "child.py")
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


def join(affixes: Mapping[str, Affixes], messages: Sequence[Message]) -> str:
    """Return the text of messages with the prefixes and suffixes of their roles, ending with the prefix of the model's answer."""
    pieces = []
    for message in messages:
        role, content = str(message["role"]), message["content"]
        prefix, suffix = affixes.get(_ROLES.get(role, role), ("", ""))
        pieces += [
            prefix,
            content if isinstance(content, str) else "".join(str(part.get("text", "")) for part in content or ()),
            suffix,
        ]
    return "".join(pieces) + affixes.get("model", ("", ""))[0]
