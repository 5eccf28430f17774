"""Stand-ins for `ai_edge_litert.metrics_interface` and `metrics_portable`, whose methods do nothing outside of Google either."""

from __future__ import annotations

from typing import Any

__all__ = ["TFLiteConverterMetrics", "TFLiteMetrics", "TFLiteMetricsInterface"]


class TFLiteMetricsInterface:
    """Interface of TFLite's recorders of usage metrics."""

    def increase_counter_debugger_creation(self) -> None:
        """Count the creation of a debugger."""

    def increase_counter_interpreter_creation(self) -> None:
        """Count the creation of an interpreter."""

    def increase_counter_converter_attempt(self) -> None:
        """Count an attempt to convert a model."""

    def increase_counter_converter_success(self) -> None:
        """Count a model that was converted."""

    def set_converter_param(self, name: str, value: Any) -> None:
        """Record a parameter of a conversion."""

    def set_converter_error(self, error_data: Any) -> None:
        """Record an error of a conversion."""

    def set_converter_latency(self, value: int) -> None:
        """Record the time of a conversion."""


class TFLiteMetrics(TFLiteMetricsInterface):
    """Recorder of usage metrics whose methods do nothing, as TFLite's in open-source builds.

    Args:
        model_path: the model's file.
    """

    def __init__(self, model_hash: str | None = None, model_path: str | None = None) -> None: ...


class TFLiteConverterMetrics(TFLiteMetrics):
    """Recorder of conversion metrics whose methods do nothing."""

    def set_export_required(self) -> None:
        """Request an export of the metrics; does nothing."""

    def export_metrics(self) -> None:
        """Export the recorded metrics; does nothing."""
