"""The metadata that ultralytics (YOLO) attaches to its exports: a file metadata.json, in older ones a text with a Python dictionary."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from oplet import Model
from oplet.errors import ModelError, text_of
from oplet.texts import shown
from oplet_tools.metadata.attached_files import attached_file, attached_files

__all__ = ["FILE", "Ultralytics", "ultralytics_of"]

#: The name of the file, and those of older exports (of ultralytics and of YOLOv5).
FILE, _OLDER = "metadata.json", ("temp.txt", "meta.txt", "temp.meta.txt")
#: The most bytes of such a file.
_MOST_BYTES = 1 << 20


class Ultralytics(NamedTuple):
    """The metadata that ultralytics (YOLO) attaches to models that it exports."""

    file: str  #: The name of the attached file.
    task: str  #: "detect", "classify", "segment", "pose" or "obb"; "" if not given.
    names: tuple[str, ...]  #: The names of the classes, by index.
    size: tuple[int, int] | None  #: Height and width of the pictures that the model was exported for; None if not given.
    content: Mapping[str, Any]  #: All entries of the file.


def ultralytics_of(model: Model) -> Ultralytics | None:
    """Return the metadata that ultralytics attached to a model; None if there are none.

    Raises:
        ModelError: the archive or the file is damaged.
    """
    there = {each.name for each in attached_files(model)}
    for name in (FILE, *_OLDER):
        if name not in there:
            continue
        content = attached_file(model, name) or b""
        try:
            if len(content) > _MOST_BYTES:
                raise ValueError(f"it has more than {_MOST_BYTES} bytes")
            text = content.decode("utf-8-sig")
            said = _parsed(text, is_json=name == FILE)
            if not isinstance(said, dict):
                raise ValueError("it holds no object")
            found = _of(name, said)
        except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError) as error:
            if name != FILE:
                continue  # a text of somebody else
            raise ModelError(
                f"The file '{shown(name)}' attached to the model {model.name} cannot be read: {text_of(error).rstrip('.')[:300]}."
            ) from error
        if name == FILE or "names" in said:
            return found
    return None


def _parsed(text: str, *, is_json: bool) -> Any:
    """Return the value of JSON, or of a Python literal as JSON has it; the modules are imported late, as few models have either."""
    import json

    if not is_json:
        import ast

        text = json.dumps(ast.literal_eval(text))
    return json.loads(text)


def _of(file: str, said: dict[str, Any]) -> Ultralytics:
    names, size, task = said.get("names"), said.get("imgsz"), said.get("task")
    return Ultralytics(file, task if isinstance(task, str) else "", _names(names), _size(size), said)


def _names(names: Any) -> tuple[str, ...]:
    if isinstance(names, dict):
        by_number = {int(key): str(name) for key, name in names.items() if str(key).isdecimal() and len(str(key)) < 7}
        names = [by_number.get(number, "") for number in range(max(by_number) + 1)] if by_number else []
    return tuple(map(str, names)) if isinstance(names, list | tuple) else ()


def _size(size: Any) -> tuple[int, int] | None:
    sizes = [size, size] if isinstance(size, int) else size
    if (
        isinstance(sizes, list | tuple)
        and len(sizes) == 2
        and all(isinstance(side, int) and 0 < side < 1 << 20 for side in sizes)
    ):
        return sizes[0], sizes[1]
    return None
