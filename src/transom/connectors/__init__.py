"""Where rows come from and where answers go: files, Kafka, PostgreSQL, Delta, memory,
the generator, the terminal, and what others register.

A source gives offsets and splits, and reads a split; it remembers nothing that an answer depends on. A sink takes the
rows of an epoch, and shows them whole or not at all.
"""

import transom.connectors.built_in  # noqa: F401 (those that come with Transom have their names first)
from transom.connectors.connector import (
    Connector,
    Declaration,
    Limits,
    Opening,
    Plan,
    Resume,
    Sink,
    SinkDeclaration,
    Source,
    Split,
    SplitRows,
    TaskWriter,
)
from transom.connectors.registry import register
from transom.connectors.row_fitter import RowFitter
from transom.connectors.source import Growing, Position, Rejected
from transom.connectors.staged_sink import StagedSink

__all__ = [
    "Connector",
    "Declaration",
    "Growing",
    "Limits",
    "Opening",
    "Plan",
    "Position",
    "Rejected",
    "Resume",
    "RowFitter",
    "Sink",
    "SinkDeclaration",
    "Source",
    "Split",
    "SplitRows",
    "StagedSink",
    "TaskWriter",
    "register",
]
