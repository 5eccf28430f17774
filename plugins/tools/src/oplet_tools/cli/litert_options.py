"""The command class of `oplet benchmark`, which takes the options of `litert-benchmark` where --litert-output is given."""

from __future__ import annotations

from typing import Any

from oplet_tools.cli.notices import say
from oplet_tools.cli.plugin_commands import Command

__all__ = ["BenchmarkCommand"]


class BenchmarkCommand(Command):
    """The typer command `benchmark`, which also accepts options of `litert-benchmark`."""

    def parse_args(self, context: Any, args: list[str]) -> list[str]:
        """Translate LiteRT's options among the arguments to oplet's, then parse them as click does."""
        if "--litert-output" not in args or context.resilient_parsing:
            return super().parse_args(context, args)
        from oplet_tools.benchmarking.litert_output import own_options

        own, without_effect = own_options(args)
        if without_effect:
            say(f"{', '.join(without_effect)} without effect: oplet runs on the CPU, and what --delegate names")
        return super().parse_args(context, own)
