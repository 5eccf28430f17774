"""The process that renders a template: it reads a request as JSON from standard input and writes the answer as JSON.

It is run as a script, and imports nothing of oplet.
"""

from __future__ import annotations

import contextlib
import json
import sys
from typing import Any, NoReturn


def _render(source: str, messages: list[dict[str, Any]], variables: dict[str, Any]) -> str:
    """Return the text: with the messages' texts as they are, or where the template leaves one out, as the parts that LiteRT-LM gives."""
    import jinja2
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    def refuse(message: str = "") -> NoReturn:
        raise jinja2.TemplateError(message)

    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"])
    environment.globals["raise_exception"] = refuse
    template = environment.from_string(source)
    texts = [each["content"] for each in messages if isinstance(each["content"], str)]
    typed = [
        {**each, "content": [{"type": "text", "text": each["content"]}]} if isinstance(each["content"], str) else each
        for each in messages
    ]
    answer, failure = "", None
    for given in (messages, typed):
        try:
            found = template.render(messages=given, **variables)
        except jinja2.TemplateError as error:
            failure = failure or error
        else:
            if all(text.strip() in found for text in texts):
                return found
            answer = answer or found
    if not answer:
        raise failure or jinja2.TemplateError("it leaves every message out")
    return answer


def main() -> None:
    """Render one chat template, for the request (JSON) on standard input, and write the text or an error (JSON) to standard output."""
    request = json.load(sys.stdin)
    with contextlib.suppress(ImportError, ValueError, OSError):  # limits of time and memory, where the operating system has them
        import resource

        resource.setrlimit(resource.RLIMIT_CPU, (request["seconds"], request["seconds"] + 1))
        if sys.platform != "darwin":
            resource.setrlimit(resource.RLIMIT_AS, (request["memory"], request["memory"]))
    try:
        found = {"text": _render(request["template"], request["messages"], request["variables"])[: request["longest"] + 1]}
    except MemoryError:
        found = {"error": "it takes more memory than is allowed"}
    except RecursionError:
        found = {"error": "it calls itself without end"}
    except Exception as error:  # a template may raise whatever Python does
        found = {"error": f"{type(error).__name__}: {error}"[:300]}
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
