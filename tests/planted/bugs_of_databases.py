"""Bugs of answers in databases: rows twice, rows that stay, tables of others."""

from __future__ import annotations

from typing import Final

from tests.planted.bug import Bug

DATABASES: Final = (
    Bug(
        "a_number_that_is_there_is_written_again",
        "connectors/postgres_sink.py",
        "if known[0][0] >= epoch:",
        "if known[0][0] > epoch:",
        "an epoch that is committed once more appends its rows again",
    ),
    Bug(
        "null_keys_are_never_deleted",
        "connectors/postgres_sink.py",
        "if any(batch.column(column.at).null_count for column in keys for batch in rows):",
        "if all(batch.column(column.at).null_count for column in keys for batch in rows):",
        "a row whose key has a NULL beside other values stays in the table",
    ),
    Bug(
        "rows_of_others_are_emptied",
        "connectors/postgres_sink.py",
        "if not writers and query(",
        "if writers and query(",
        "a run that begins deletes what somebody else has in the table",
    ),
    Bug(
        "a_delta_table_forgets_its_number",
        "connectors/delta_sink.py",
        "if known is not None and known >= epoch:",
        "if known is not None and known > epoch:",
        "an epoch that is committed once more appends its rows again",
    ),
)
