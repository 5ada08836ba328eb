"""Transom: standing SQL questions over streams, answered as the data arrives."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from transom.console.open import Console
    from transom.core.errors import (
        CheckpointError,
        EvaluationError,
        LateRowError,
        OptionError,
        OutOfMemoryError,
        OverloadError,
        QueryError,
        SinkError,
        SourceError,
        Span,
        SparkError,
        SpillError,
        TransomError,
        UnsupportedError,
    )
    from transom.flight.server import FlightSqlServer
    from transom.kernels.slide_join.report import SlideReport
    from transom.monitoring.http import MonitoringServer
    from transom.monitoring.monitor import Monitor
    from transom.pipeline.leap import Leap
    from transom.program.explained import Explained
    from transom.program.latency import Latency
    from transom.program.overload import OverloadStatus
    from transom.program.progress import OperatorProgress, Progress
    from transom.program.query import Query
    from transom.program.result import Result, Results
    from transom.program.slides import SlideStatus
    from transom.program.status import InputStatus, OperatorStatus, PartitionStatus, Status
    from transom.program.streaming_query import StreamingQuery
    from transom.session import Session

__version__ = "0.1.0"

# Where each public name lives. They are imported when they are first used, so that `import transom` costs nothing.
_HOMES = {
    "CheckpointError": "transom.core.errors",
    "Console": "transom.console.open",
    "EvaluationError": "transom.core.errors",
    "Explained": "transom.program.explained",
    "FlightSqlServer": "transom.flight.server",
    "InputStatus": "transom.program.status",
    "LateRowError": "transom.core.errors",
    "Latency": "transom.program.latency",
    "Leap": "transom.pipeline.leap",
    "Monitor": "transom.monitoring.monitor",
    "MonitoringServer": "transom.monitoring.http",
    "OperatorProgress": "transom.program.progress",
    "OperatorStatus": "transom.program.status",
    "OptionError": "transom.core.errors",
    "OutOfMemoryError": "transom.core.errors",
    "OverloadError": "transom.core.errors",
    "OverloadStatus": "transom.program.overload",
    "PartitionStatus": "transom.program.status",
    "Progress": "transom.program.progress",
    "Query": "transom.program.query",
    "QueryError": "transom.core.errors",
    "Result": "transom.program.result",
    "Results": "transom.program.result",
    "Session": "transom.session",
    "SinkError": "transom.core.errors",
    "SlideReport": "transom.kernels.slide_join.report",
    "SlideStatus": "transom.program.slides",
    "SourceError": "transom.core.errors",
    "Span": "transom.core.errors",
    "SparkError": "transom.core.errors",
    "SpillError": "transom.core.errors",
    "Status": "transom.program.status",
    "StreamingQuery": "transom.program.streaming_query",
    "TransomError": "transom.core.errors",
    "UnsupportedError": "transom.core.errors",
}

__all__ = [
    "CheckpointError",
    "Console",
    "EvaluationError",
    "Explained",
    "FlightSqlServer",
    "InputStatus",
    "LateRowError",
    "Latency",
    "Leap",
    "Monitor",
    "MonitoringServer",
    "OperatorProgress",
    "OperatorStatus",
    "OptionError",
    "OutOfMemoryError",
    "OverloadError",
    "OverloadStatus",
    "PartitionStatus",
    "Progress",
    "Query",
    "QueryError",
    "Result",
    "Results",
    "Session",
    "SinkError",
    "SlideReport",
    "SlideStatus",
    "SourceError",
    "Span",
    "SparkError",
    "SpillError",
    "Status",
    "StreamingQuery",
    "TransomError",
    "UnsupportedError",
]


if not TYPE_CHECKING:  # a type checker would take it that every name is there

    def __getattr__(name: str) -> object:
        if name not in _HOMES:
            raise AttributeError(f"transom has no '{name}'")
        return getattr(import_module(_HOMES[name]), name)


_MAGIC = "transom.notebook.magic"  # which imports what imports the package


def load_ipython_extension(shell: object) -> None:
    """What `%load_ext transom` calls: notebooks learn %%cql."""
    import_module(_MAGIC).register(shell)


def __dir__() -> list[str]:
    return __all__
