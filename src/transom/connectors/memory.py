"""Rows and answers that never leave the process."""

from __future__ import annotations

import pyarrow as pa

from transom.connectors.conform import Declared, Piece, conform
from transom.connectors.source import Position, Rejected, SourceBatch, rejected_batch
from transom.core.delta import Int64s
from transom.core.schema import Schema
