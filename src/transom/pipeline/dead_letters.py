"""Dead letters: rows that were rejected, with the reason.

Rejected rows are in it, and late ones of streams that declare late = 'dead_letter'. `row` is the row as JSON; one that
could not be read is there as it stands in the source, and `position` says where. In a session it is the table
`transom_dead_letters`.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Final

import pyarrow as pa

from transom.connectors.row_text import json_text
from transom.kernels.nested import shown_rows
from transom.pipeline.admission import IDLE, LATE, REASONS, RejectedRows
from transom.plan.catalogue import StreamDefinition, TableDefinition

DEAD_LETTER_SCHEMA: Final = pa.schema(
    [("stream", pa.string()), ("reason", pa.string()), ("position", pa.string()), ("row", pa.string())]
)

DEAD_LETTER_TABLE: Final = "transom_dead_letters"

_LATE: Final = (REASONS[LATE], REASONS[IDLE])
_MOST_REASONS: Final = 100
_OTHER: Final = "other reasons"


def unreadable(stream: str, rejected: pa.RecordBatch) -> pa.RecordBatch:
    """Rows that the source could not read."""
    names = pa.array([stream] * len(rejected), pa.string())
    columns = [names, rejected.column("reason"), rejected.column("position"), rejected.column("raw")]
    return pa.RecordBatch.from_arrays(columns, schema=DEAD_LETTER_SCHEMA)


def dead_letter_rows(definition: StreamDefinition | TableDefinition, rejected_rows: RejectedRows) -> pa.RecordBatch:
    """Rows that the query did not admit; late ones only if they are wanted."""
    keep_late = definition.late == "dead_letter"
    wanted = [i for i, reason in enumerate(rejected_rows.reasons) if keep_late or reason not in _LATE]
    values = rejected_rows.values.take(pa.array(wanted, pa.int64()))
    values = shown_rows(values, definition.columns.arrow())
    rows = json_text(values, values.schema.names).decode().split("\n")[:-1]
    reasons = [rejected_rows.reasons[i] for i in wanted]
    columns = [[definition.name] * len(wanted), reasons, [None] * len(wanted), rows]
    return pa.RecordBatch.from_arrays([pa.array(column, pa.string()) for column in columns], schema=DEAD_LETTER_SCHEMA)


def reason_and_fate(reason: str) -> str:
    """For people who read it by itself: that it was rejected is said, that it was late the reason says.

    >>> reason_and_fate("the timestamp is missing"), reason_and_fate("late: came after the watermark")
    ('rejected: the timestamp is missing', 'late: came after the watermark')
    """
    return reason if reason in (*_LATE, _OTHER) else f"rejected: {reason}"


def count_reasons(counts: dict[str, int], reasons: list[str]) -> None:
    """Add to the counts. A reason is counted without its value, and past a hundred different ones together."""
    for reason, count in Counter(reasons).items():
        kind = re.sub(r" and cannot hold .*", " and cannot hold the value", reason, flags=re.DOTALL)
        if kind not in counts and len(counts) >= _MOST_REASONS:
            kind = _OTHER
        counts[kind] = counts.get(kind, 0) + count
