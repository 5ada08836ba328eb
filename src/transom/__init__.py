"""Transom: standing SQL questions over streams, answered as the data arrives."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from transom.session import (
        CheckpointError,
        EvaluationError,
        LateRowError,
        OptionError,
        OverloadError,
        Progress,
        Query,
        QueryError,
        RefusedError,
        Result,
        Session,
        SinkError,
        SourceError,
        Status,
        StreamingQuery,
        TransomError,
    )

__version__ = "0.1.0"

# Where each public name lives. They are imported when they are first used, so that `import transom` costs nothing.
_HOMES = {
    "CheckpointError": "transom.core.errors",
    "EvaluationError": "transom.core.errors",
    "LateRowError": "transom.core.errors",
    "OptionError": "transom.core.errors",
    "OverloadError": "transom.core.errors",
    "Progress": "transom.program.progress",
    "Query": "transom.program.query",
    "QueryError": "transom.core.errors",
    "RefusedError": "transom.core.errors",
    "Result": "transom.program.result",
    "Session": "transom.session",
    "SinkError": "transom.core.errors",
    "SourceError": "transom.core.errors",
    "Status": "transom.program.status",
    "StreamingQuery": "transom.program.streaming_query",
    "TransomError": "transom.core.errors",
}

__all__ = [
    "CheckpointError",
    "EvaluationError",
    "LateRowError",
    "OptionError",
    "OverloadError",
    "Progress",
    "Query",
    "QueryError",
    "RefusedError",
    "Result",
    "Session",
    "SinkError",
    "SourceError",
    "Status",
    "StreamingQuery",
    "TransomError",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"transom has no '{name}'")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__
