"""`oplet chat`: a conversation with a language model, or one answer."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from oplet.errors import LimitError

__all__ = ["chat"]


def chat(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A .litertlm or .task file.", show_default=False)],
    prompt: Annotated[
        str | None, typer.Option("--prompt", metavar="TEXT", help="Answer this, and end.", show_default=False)
    ] = None,
    system: Annotated[
        str | None, typer.Option(metavar="TEXT", help="What the model is told before the conversation.", show_default=False)
    ] = None,
    raw: Annotated[
        bool,
        typer.Option("--raw", help="Let the model go on with each text as it is, without its chat template.", show_default=False),
    ] = False,
    max_tokens: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Tokens of an answer.", show_default="no limit")
    ] = None,
    top_k: Annotated[
        int | None, typer.Option(min=0, metavar="N", help="Draw from the N most likely tokens.", show_default="the bundle's")
    ] = None,
    top_p: Annotated[
        float | None,
        typer.Option(min=0.0, max=1.0, metavar="P", help="Draw from tokens of this probability.", show_default="the bundle's"),
    ] = None,
    temperature: Annotated[
        float | None, typer.Option(min=0.0, metavar="T", help="0 for the most likely tokens.", show_default="the bundle's")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(min=0, metavar="N", help="Draw as with this seed.", show_default="another each time")
    ] = None,
    num_threads: Annotated[int, typer.Option(min=1, metavar="N", help="Threads of the kernels.")] = 1,
) -> None:
    """Talk to a language model: each line is answered; an empty line or the end of the input ends the conversation."""
    from oplet_lm.language_model import LanguageModel

    language_model = LanguageModel(model, num_threads=num_threads)
    options: dict[str, Any] = {"max_tokens": max_tokens, "top_k": top_k, "top_p": top_p, "temperature": temperature, "seed": seed}
    messages: list[dict[str, Any]] = [] if system is None else [{"role": "system", "content": system}]
    while True:
        text = prompt if prompt is not None else _line()
        if not text:
            return
        messages.append({"role": "user", "content": text})
        answer = _tell(language_model.stream(text if raw else messages, **options))
        if prompt is not None:
            return
        messages.append({"role": "assistant", "content": answer})


def _line() -> str:
    """Return the next line of standard input, without blanks around it; "" at its end."""
    if sys.stdin.isatty():
        typer.echo("> ", nl=False)
    return sys.stdin.readline().strip()


def _printable(text: str) -> str:
    """Return a text without characters that would control the terminal."""
    return "".join(c if c.isprintable() or c in "\n\t" else "\ufffd" for c in text)


def _tell(pieces: Any) -> str:
    """Print the pieces of an answer as they come; return it."""
    told = ""
    try:
        for piece in pieces:
            told += piece
            typer.echo(_printable(piece), nl=False)
            sys.stdout.flush()
    except LimitError:
        if told:
            typer.echo()
        raise
    typer.echo()
    return told
