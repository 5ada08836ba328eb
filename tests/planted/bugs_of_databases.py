"""Bugs of answers in databases: rows twice, rows that stay, tables of others."""

from __future__ import annotations

from typing import Final

from tests.planted.bug import Bug

DATABASES: Final = (
    Bug(
        "a_number_that_is_there_is_written_again",
        "connectors/postgres_sink.py",
        "if committed[0][0] >= epoch:",
        "if committed[0][0] > epoch:",
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
        "if committed is not None and committed >= epoch:",
        "if committed is not None and committed > epoch:",
        "an epoch that is committed once more appends its rows again",
    ),
    Bug(
        "what_the_beginning_shows_comes_again",
        "connectors/postgres_changes.py",
        "return number < self.least or (number < self.behind and number not in self.open)",
        "return number < self.least and (number < self.behind and number not in self.open)",
        "a change that the first rows show already is made twice",
    ),
    Bug(
        "a_slot_that_was_moved_on_is_believed",
        "connectors/postgres_changes.py",
        "if not confirmed or _lsn(confirmed[0][0]) > at:",
        "if not confirmed:",
        "changes that somebody else has read are missing, and nobody says so",
    ),
    Bug(
        "a_change_goes_back_in_time",
        "connectors/postgres_changes.py",
        "latest = max(latest, each.time)  # commits",
        "latest = each.time  # commits",
        "a clock that is set back makes changes late",
    ),
    Bug(
        "whoever_asks_twice_gets_what_is_next",
        "connectors/postgres_changes.py",
        "if not self._fetched or at != self._fetched_from:",
        "if not self._fetched:",
        "a batch that is planned once more has the changes behind it, and its own are missing",
    ),
    Bug(
        "a_split_read_anew_lacks_its_end",
        "connectors/postgres_changes.py",
        "if ended or (transactions and transactions[-1].end >= to):",
        "if ended or transactions:",
        "of a batch that is read by another process the last changes are missing",
    ),
    Bug(
        "epochs_that_were_committed_are_committed_again",
        "connectors/delta_sink.py",
        "if committed is None or epoch > committed:",
        "if True:",
        "rows of a process that died behind its commit are there twice",
    ),
    Bug(
        "of_several_epochs_the_first_change_counts",
        "connectors/delta_sink.py",
        """[("", "max")]).column("_max")""",
        """[("", "min")]).column("_min")""",
        "a table that is committed at an interval shows an older answer",
    ),
)
