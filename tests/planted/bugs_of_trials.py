"""Bugs of trials, and of what commands say of where they run."""

from __future__ import annotations

from typing import Final

from tests.planted.bug import Bug

TRIALS: Final = (
    Bug(
        "a_woken_job_goes_on_sleeping",
        "runtimes/local/intake.py",
        "for name, at in self._poll_again.items() if at == FOREVER}",
        "for name, at in self._poll_again.items()}",
        "rows that a test sends are not read before its clock goes on",
    ),
    Bug(
        "a_trial_shows_what_a_failed_step_wrote",
        "testing/run.py",
        "def abort(self, epoch: int) -> None:\n        self._written = []",
        "def abort(self, epoch: int) -> None:\n        pass",
        "after a restart the rows of a run that failed are in the answer",
    ),
    Bug(
        "a_plan_of_another_runtime",
        "cli/explain_command.py",
        'options.runtime == "local"',
        'options.runtime == "spark"',
        "transom explain shows the plan in this process for a query that will run on Spark",
    ),
)
