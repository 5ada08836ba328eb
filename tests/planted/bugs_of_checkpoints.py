"""Bugs of going on: what a checkpoint is for, when time ends, and who has been silent."""

from __future__ import annotations

from typing import Final

from tests.planted.bug import Bug

CHECKPOINTS: Final = (
    Bug(
        "another_law_believed",
        "program/checkpoint_manifest.py",
        "if was != is_now and about != _query(name):",
        "if was != is_now and not about:",
        "a restart with another bound, late or idle is accepted, and rows are reported twice or never",
    ),
    Bug(
        "another_past_believed",
        "pipeline/state_backend.py",
        "if other is not None:",
        "if other is not None and not found:",
        "memory that was made again otherwise than it was goes on as if nothing had happened",
    ),
    Bug(
        "time_ends_with_every_run",
        "runtimes/local/intake.py",
        'return self._ending != "end" and not self._is_static(name)',
        'return self._ending == "stopped" and not self._is_static(name)',
        "a second run over a folder that has grown reads nothing",
    ),
    Bug(
        "rows_behind_the_end_unread",
        "runtimes/local/intake.py",
        "if reading.complete and not reading.over:",
        "if reading.complete and reading.over:",
        "rows that come after --end are not read, and nobody is told",
    ),
    Bug(
        "a_prepared_epoch_is_left",
        "program/sink_epochs.py",
        "if self._resume is not None:",
        "if self._resume is not None and not self._resume.done:",
        "rows that a checkpoint counts, and that were not shown when the process died, are never shown",
    ),
    Bug(
        "who_has_left_is_forgotten",
        "runtimes/local/job.py",
        "outputs = self._away | here",
        "outputs = here",
        "a query that comes back to a shared join begins with numbers that its sink has seen: its rows are lost",
    ),
    Bug(
        "sinks_with_the_numbers_of_others",
        "program/query_specs.py",
        'f"{run}/{name}"',
        "run",
        "two sinks that keep their epochs in one database take those of the other for their own: rows are lost",
    ),
    Bug(
        "a_snapshot_behind_its_epoch",
        "runtimes/local/output.py",
        """        self.write_latest()
        return""",
        "        return",
        "the snapshot that a checkpoint counts is not in its epoch, and is never shown if the process dies then",
    ),
    Bug(
        "a_snapshot_that_does_not_come_again",
        "program/sink_epochs.py",
        "self._snapshot = snapshot",
        "self._snapshot = None",
        "the last snapshot is not in its file if the process dies before it is shown",
    ),
    Bug(
        "a_number_for_two_epochs",
        "program/sink_epochs.py",
        'int(saved["epoch"]) + 1',
        'int(saved["epoch"])',
        "after a restart an epoch has the number of the one before it, and a sink takes it for a repetition",
    ),
    Bug(
        "silence_begins_with_every_look",
        "pipeline/input_gates.py",
        "if came or source not in self.state.spoke:",
        "if came or source:",
        "a stream that fell silent long ago holds the others back for ever",
    ),
)
