"""The command `oplet-serve`, and `oplet serve`."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from oplet.errors import ModelError, OpletError, StateError, text_of

if TYPE_CHECKING:
    from oplet_serve.doors.bounds import Bounds
    from oplet_serve.repository import FoundModel

__all__ = ["main", "serve"]

_SWITCH_SECONDS, _LAST_SECONDS = 0.0005, 1.0
_Models = Annotated[
    list[Path],
    typer.Argument(
        metavar="FOLDER|MODEL...",
        help=".tflite files, or folders of them; NAME/VERSION/*.tflite for versions.",
        show_default=False,
    ),
]


def _count(text: str, metavar: str = "N", most: int = 10**9, **more: Any) -> Any:
    return typer.Option(min=1, max=most, metavar=metavar, help=text, **more)


def _seconds(text: str, least: float = 0.001, most: float = 86_400.0) -> Any:
    return typer.Option(min=least, max=most, metavar="SECONDS", help=text)


def serve(
    models: _Models,
    host: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Where to listen; 0.0.0.0 for everybody who reaches this machine.")
    ] = "127.0.0.1",
    http_port: Annotated[int, _count("The port of REST.", "PORT", 65535)] = 8080,
    grpc_port: Annotated[int, _count("The port of gRPC.", "PORT", 65535)] = 8081,
    metrics_port: Annotated[int, _count("The port of /metrics, for Prometheus.", "PORT", 65535)] = 8082,
    workers: Annotated[int, _count("Predictions of a model at the same time.", show_default="one for each core")] = os.cpu_count()
    or 1,
    num_threads: Annotated[int, _count("Threads of each prediction.")] = 1,
    max_batch_size: Annotated[
        int,
        _count(
            "Rows of several requests that run together, where the model takes batches; floats may differ in their last bits."
        ),
    ] = 1,
    max_batch_time: Annotated[float, _seconds("How long a request waits for others to run with.", 0.0, 60.0)] = 0.002,
    max_queue: Annotated[int, _count("Requests of a model that run or wait; others get 429.")] = 256,
    max_rows: Annotated[int, _count("Rows of one request.")] = 4096,
    max_request_bytes: Annotated[
        int | None, _count("The size of a request. Default: 32 MiB, 4 over gRPC.", "BYTES", (1 << 31) - 1)
    ] = None,
    max_bodies_bytes: Annotated[int, _count("The size of all requests under way; of one at least.", "BYTES", 10**15)] = 1 << 30,
    max_tensor_bytes: Annotated[int, _count("The size of one tensor.", "BYTES", 10**15)] = 1 << 30,
    max_arena_bytes: Annotated[int, _count("The size of all tensors of a prediction.", "BYTES", 10**15)] = 4 << 30,
    max_seconds: Annotated[float, _seconds("The time of one prediction.")] = 60.0,
    state: Annotated[
        list[str] | None,
        typer.Option(
            metavar="INPUT=OUTPUT",
            help="The output that is the next value of an input in sequences. May be given several times. Default: those of one name.",
            show_default=False,
        ),
    ] = None,
    max_sequences: Annotated[int, _count("Sequences of a model file.")] = 64,
    max_sequence_bytes: Annotated[int, _count("The size of the state of all of them.", "BYTES", 10**15)] = 1 << 30,
    sequence_seconds: Annotated[float, _seconds("How long a sequence may go without a request.")] = 60.0,
    max_connections: Annotated[int, _count("Connections of REST, and calls of gRPC at once.")] = 256,
    idle_seconds: Annotated[
        float, _seconds("How long a connection may go without a request, and a call without its next message.")
    ] = 30.0,
    grace: Annotated[float, _seconds("How long requests may go on after SIGTERM.", 0.0)] = 30.0,
    signature: Annotated[
        str | None,
        typer.Option(metavar="KEY", help="The signature of all models. Default: NAME and NAME@KEY for each.", show_default=False),
    ] = None,
    delegate: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME[:key=value,...]", help="Let a delegate claim nodes. May be given several times.", show_default=False
        ),
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Open the models, say what would be served, and end.", show_default=False)
    ] = False,
) -> None:
    """Serve models over REST and gRPC, by the Open Inference Protocol (KServe v2)."""
    from oplet_serve.repository import find_models

    if wrong := [pair for pair in state or () if "=" not in pair]:
        raise typer.BadParameter(f"'{wrong[0]}' is not of the form INPUT=OUTPUT.", param_hint="'--state'")
    found = find_models(models, signature)
    extra = {
        "delegates": list(delegate or ()),
        "num_threads": num_threads,
        "workers": workers,
        "max_queue": max_queue,
        "max_rows": max_rows,
        "max_seconds": max_seconds,
        "max_tensor_bytes": max_tensor_bytes,
        "max_arena_bytes": max_arena_bytes,
        "state": {source: output for source, _, output in (pair.partition("=") for pair in state or ())},
        "max_sequences": max_sequences,
        "max_sequence_bytes": max_sequence_bytes,
        "sequence_seconds": sequence_seconds,
    }
    if check or state or delegate:  # what these can have wrong is told before MLServer is imported, which takes seconds
        _check(found, extra, max_batch_size, told=check)
    if check:
        return
    from oplet_serve.doors.bounds import Bounds

    sizes = {} if max_request_bytes is None else dict.fromkeys(("max_request_bytes", "max_message_bytes"), max_request_bytes)
    bounds = Bounds(
        **sizes,
        max_bodies_bytes=max_bodies_bytes,
        max_connections=max_connections,
        idle_seconds=idle_seconds,
        grace_seconds=grace,
    )
    finished = _run(found, extra, (host, http_port, grpc_port, metrics_port), bounds, (max_batch_size, max_batch_time))
    if not finished:
        typer.echo(f"oplet-serve: the grace time of {grace:g} s was over before all requests had ended.", err=True)
        sys.stderr.flush()
        os._exit(1)  # threads that still compute would keep the process


def _check(found: list[FoundModel], extra: dict[str, Any], max_batch_size: int, *, told: bool) -> None:
    from oplet_serve.options import Options
    from oplet_serve.served_model import ServedModel

    unmet = dict(extra["state"])
    for model in found:
        opened = ServedModel(str(model.path), Options.read(model.name, {**extra, "signature": model.signature}), max_batch_size)
        sides = [
            ", ".join(f"{spec.name} {spec.datatype} {list(spec.shape)}" for spec in tensors.values())
            for tensors in (opened.inputs, opened.outputs)
        ]
        version = f" version {model.version}" if model.version else ""
        kept = f"; sequences keep {', '.join(opened.states)}" if opened.states else ""
        rows = f"up to {opened.batch_size} rows at once" if opened.batch_size > 1 else "row by row"
        if told:
            _tell(f"{model.name}{version}: {sides[0]} -> {sides[1]}; {rows}{kept}")
        unmet = {name: output for name, output in unmet.items() if name not in opened.states}
        opened.close()
    for name, output in unmet.items():
        raise ModelError(
            f"No model has the input {name!a:.100} and the output {output!a:.100} that --state names; --check tells theirs."
        )


def _tell(text: str, *, err: bool = False) -> None:
    """Print a line whose names come from files: control characters are escaped, and a terminal gets it wrapped between words."""
    from rich.console import Console

    console = Console(stderr=err)
    text = "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in text)
    if console.is_terminal:
        text = textwrap.fill(text, console.width, break_long_words=False, break_on_hyphens=False)
    typer.echo(text, err=err)


def _run(
    found: list[FoundModel],
    extra: dict[str, Any],
    address: tuple[str, int, int, int],
    bounds: Bounds,
    batching: tuple[int, float],
) -> bool:
    """Serve until a signal comes; return whether all requests in progress finished."""
    try:
        import mlserver.utils

        from oplet_serve.server import OpletServer, model_settings, server_settings
    except ModuleNotFoundError as error:
        raise StateError(
            f"oplet-serve needs MLServer, for Python 3.10 to 3.12, and lacks {error.name!r:.80}; install it with: pip install oplet-serve"
        ) from error

    logging.basicConfig(level=logging.WARNING, stream=sys.stderr, format="%(levelname)s %(name)s: %(message)s")
    # Warns of each malformed request: a log that strangers fill, and that stops the server where nobody reads it.
    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)
    # gRPC does the same of clients that leave; what fails in a call is logged by the call.
    logging.getLogger("grpc._cython.cygrpc").setLevel(logging.CRITICAL)
    host, http_port, grpc_port, metrics_port = address

    def ready() -> None:
        names = sorted({model.name for model in found})
        _tell(
            f"oplet-serve: {', '.join(names)} at http://{host}:{http_port}/v2, gRPC at {host}:{grpc_port}, metrics at "
            f"http://{host}:{metrics_port}/metrics",
            err=True,
        )

    async def serving() -> bool:
        server = OpletServer(server_settings(*address), bounds, ready)
        await server.start([model_settings(model, extra, *batching) for model in found])
        # gRPC's server has stopped before the last calls' tasks are over; a task that is cancelled logs a traceback.
        if others := asyncio.all_tasks() - {asyncio.current_task()}:
            await asyncio.wait(others, timeout=_LAST_SECONDS)
        return not server.busy

    # A thread waits so long for another one's Python, several times in each request: 5 ms, if nothing is said.
    sys.setswitchinterval(_SWITCH_SECONDS)
    mlserver.utils.install_uvloop_event_loop()
    return asyncio.run(serving())


def main() -> None:
    """Run the command `oplet-serve`: 0 after SIGTERM or SIGINT, 1 after an error, 2 for wrong usage."""
    app = typer.Typer(
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.command()(serve)
    try:
        app(prog_name="oplet-serve")
    except OpletError as error:
        sys.exit(f"oplet-serve: {text_of(error)}")
