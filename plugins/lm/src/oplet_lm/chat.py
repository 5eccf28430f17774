"""`oplet chat`: a conversation with a language model, or one answer."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from oplet.errors import LimitError

__all__ = ["chat"]


def _option(help: str, metavar: str | None = "N", default: str | bool = "the bundle's", **more: Any) -> Any:
    return typer.Option(metavar=metavar, help=help, show_default=default, **more)


def chat(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A .litertlm or .task file.", show_default=False)],
    prompt: Annotated[str | None, _option("Answer this, and end.", "TEXT", False)] = None,
    system: Annotated[str | None, _option("What the model is told before the conversation.", "TEXT", False)] = None,
    raw: Annotated[
        bool, typer.Option("--raw", help="Let the model go on with each text as it is, without its chat template.")
    ] = False,
    max_tokens: Annotated[int | None, _option("Tokens of an answer.", default="no limit", min=1)] = None,
    top_k: Annotated[int | None, _option("Draw from the N most likely tokens.", min=0)] = None,
    top_p: Annotated[float | None, _option("Draw from tokens of this probability.", "P", min=0.0, max=1.0)] = None,
    temperature: Annotated[float | None, _option("0 for the most likely tokens.", "T", min=0.0)] = None,
    seed: Annotated[int | None, _option("Draw as with this seed.", default="another each time", min=0)] = None,
    num_threads: Annotated[int, _option("Threads of the kernels.", default=True, min=1)] = 1,
) -> None:
    """Talk to a language model: each line is answered; an empty line or the end of the input ends the conversation."""
    from oplet_lm.language_model import LanguageModel

    language_model = LanguageModel(model, num_threads=num_threads)
    options: dict[str, Any] = {"max_tokens": max_tokens, "top_k": top_k, "top_p": top_p, "temperature": temperature, "seed": seed}
    messages: list[dict[str, Any]] = [] if system is None else [{"role": "system", "content": system}]
    for text in _lines() if prompt is None else filter(None, [prompt]):
        messages.append({"role": "user", "content": text})
        answer = _tell(language_model.stream(text if raw else messages, **options))
        messages.append({"role": "assistant", "content": answer})


def _lines() -> Iterator[str]:
    """Yield the lines of standard input, without blanks around them, before the first empty one."""
    while True:
        if sys.stdin.isatty():
            typer.echo("> ", nl=False)
        if not (line := sys.stdin.readline().strip()):
            return
        yield line


def _tell(pieces: Iterator[str]) -> str:
    """Print the pieces of an answer as they come, without characters that would control the terminal; return it."""
    told = ""
    try:
        for piece in pieces:
            told += piece
            typer.echo("".join(c if c.isprintable() or c in "\n\t" else "\ufffd" for c in piece), nl=False)
            sys.stdout.flush()
    except LimitError:
        if told:
            typer.echo()
        raise
    typer.echo()
    return told
