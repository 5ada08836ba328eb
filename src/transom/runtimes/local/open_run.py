"""A run to which queries come while it goes on, and which they leave; its checkpoint knows who was there.

Until it begins it only gathers queries. Then it resumes from the checkpoint with those that have come: one that was
in it goes on where it was, one that was not begins where the others are, and what was kept of one that has not come is
forgotten, but for the epochs of its sinks. From then on whoever comes or goes is in the checkpoint before `add` and
`remove` return.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

from transom.plan.catalogue import InsertStatement, QueryStatement
from transom.planner.fingerprint import of_another_plan
from transom.planner.sharing_shape import Sharable, sharable
from transom.program.checkpoint_folder import STATE
from transom.program.checkpoint_manifest import Manifest
from transom.program.clock import Clock
from transom.program.run import QuerySpec
from transom.program.sharing import request_of
from transom.runtimes.local.job import Left, LocalJob, left_in
from transom.runtimes.local.query import LocalQuery
from transom.runtimes.local.run import LocalRun, prepared
from transom.state import codec
from transom.state.checks import need

MakeJob = Callable[[QuerySpec, Sharable | None, int], LocalJob]
"""A job for a query, by what it asks of a join that others may share, with this number in the run."""


class OpenRun(LocalRun):
    def __init__(self, make: MakeJob, *, checkpoint: str | None, every: int, clock: Clock | None) -> None:
        super().__init__((), checkpoint=checkpoint, every=every, clock=clock)
        self._make = make
        self._specs: dict[str, QuerySpec] = {}
        self._numbers: dict[int, LocalJob] = {}
        self._begun = False
        self._saved: list[_SavedJob] = []
        """What the checkpoint has; nothing once the run has begun."""
        self._away: dict[str, Left] = {}
        """What is kept of queries that have left: they may come back, and go on with their epochs."""
        data = None if self._checkpoint is None else self._checkpoint.read(STATE)
        self._resumes = data is not None
        if data is not None:
            try:
                self._check()
                self._read(data)
            except BaseException:
                self.abort()
                raise

    def _read(self, data: bytes) -> None:
        saved: Any = codec.decode(data, ())
        if not isinstance(saved, dict) or saved.keys() != {"jobs", "away"}:
            raise of_another_plan()
        with codec.restoring():
            self._saved = [_SavedJob(saved_job) for saved_job in saved["jobs"]]
            self._away = {name: (list(sinks), latest) for name, (sinks, latest) in saved["away"].items()}

    def _check(self, *specs: QuerySpec) -> None:
        """What the checkpoint has is of such queries."""
        if self._checkpoint is not None:
            self._checkpoint.check(Manifest.of("local", specs, is_open=True), self._resumes)

    def begin(self) -> None:
        """Begin: all queries that are there at first have come. Resume from the checkpoint, if there is one."""
        try:
            self._begin()
        except BaseException:
            self.abort()
            raise

    def _begin(self) -> None:
        self._claim(self._resumes)
        saved = {saved_job.number: saved_job for saved_job in self._saved}
        for saved_job in self._saved:
            if saved_job.number not in self._numbers:
                self._away |= left_in(saved_job.state)
        for number, job in self._numbers.items():
            if number in saved:
                job.restore(saved[number].state, self._away)
                self._away |= job.release_away()
            else:
                job.begin()
                for query in job.queries:
                    self._take_back(query)
        for name in self._specs:
            self._away.pop(name, None)
        before = {name for saved_job in self._saved for name in saved_job.names}
        self._saved, self._begun = [], True
        if self._checkpoint is not None and before != self._specs.keys():
            self.commit()

    def _claim(self, resumes: bool) -> None:
        """The folder is for the queries that are there."""
        if self._checkpoint is not None:
            self._checkpoint.claim(Manifest.of("local", list(self._specs.values()), is_open=True), resumes)

    def _prepared(self) -> object:
        jobs = [
            {
                "number": number,
                "names": [query.name for query in job.queries],
                "join": _mark(job.join),
                "finished": job.finished,
                "state": prepared(job),
            }
            for number, job in self._numbers.items()
        ]
        return {"jobs": jobs, "away": {name: list(left) for name, left in self._away.items()}}

    # --- coming and going --------------------------------------------------------------------------------------------

    def add(self, spec: QuerySpec) -> LocalQuery:
        """A query that was not there before, to whom it shares a join with, if there is one."""
        self._recent.pop(spec.name, None)
        self._specs[spec.name] = spec
        try:
            if self._begun:
                self._claim(resumes=True)
            else:
                self._check(spec)
            query = self._come(spec)
        except BaseException:
            del self._specs[spec.name]
            raise
        if self._begun:
            self._take_back(query)
            if self._checkpoint is not None:
                self.commit()
        return query

    def _come(self, spec: QuerySpec) -> LocalQuery:
        saved = next((saved_job for saved_job in self._saved if spec.name in saved_job.names), None)
        request = request_of(spec.planned) if saved is None else _as_before(spec, saved)
        joined = request if isinstance(request, Sharable) else None
        if saved is None and joined is not None:
            same_join = (each for each in self._saved if each.join == _mark(joined.join) and not each.finished)
            saved = next(same_join, None)
        if saved is not None:
            job = self._numbers.get(saved.number)
        else:
            # How far these are is not known before they have begun.
            restored = {saved_job.number for saved_job in self._saved}
            others = (job for number, job in self._numbers.items() if number not in restored and not job.finished)
            job = next((job for job in others if joined and job.join == joined.join), None)
        if job is not None:
            if joined is None or job.join != joined.join:
                raise of_another_plan()
            return job.add(spec, joined)
        number = self._free_number() if saved is None else saved.number
        job = self._make(spec, joined, number)
        if self._begun:
            job.begin()
        self.jobs.append(job)
        self._numbers[number] = job
        return job.queries[0]

    def _free_number(self) -> int:
        taken = self._numbers.keys() | {saved_job.number for saved_job in self._saved}
        return min(set(range(len(taken) + 1)) - taken)

    def _take_back(self, query: LocalQuery) -> None:
        """It may have been there before, and its sinks have its rows."""
        left = self._away.pop(query.name, None)
        if left is not None:
            query.output.resume(*left)

    def remove(self, name: str) -> None:
        if not self._begun or self._checkpoint is None:
            super().remove(name)
            self._forget(name)
            return
        self.commit()  # nobody would show its rows if the process died while it leaves
        job = next((job for job in self.jobs if any(query.name == name for query in job.queries)), None)
        if job is None:
            return
        query = next(query for query in job.queries if query.name == name)
        is_last = len(job.queries) == 1
        if not is_last:
            job.remove(name)
        self._away[name] = (query.output.prepare(), query.output.latest)
        if is_last:
            self.jobs.remove(job)
        self._forget(name)
        self.commit()
        self._claim(resumes=True)
        if is_last:
            job.close()
        else:
            query.output.close()

    def _forget(self, name: str) -> None:
        self._specs.pop(name, None)
        self._numbers = {number: job for number, job in self._numbers.items() if job in self.jobs}


class _SavedJob:
    """What a checkpoint says of a job: its number, its queries, and the join that they share, if there is one."""

    def __init__(self, saved: Any) -> None:
        self.number = int(saved["number"])
        self.names: list[str] = list(saved["names"])
        self.join: str | None = saved["join"]
        self.finished = bool(saved["finished"])
        self.state: bytes = saved["state"].tobytes()
        need(all(isinstance(name, str) for name in self.names) and isinstance(self.join, str | None))


def _as_before(spec: QuerySpec, saved: _SavedJob) -> Sharable | str:
    """What the query asked of others when it was saved, whatever speaks for something else by now."""
    statement = spec.planned.statement
    if saved.join is None or not isinstance(statement, QueryStatement | InsertStatement):
        return "it was by itself"
    request = sharable(statement.query, spec.planned.catalogue)
    if not isinstance(request, Sharable) or _mark(request.join) != saved.join:
        raise of_another_plan()
    return request


def _mark(join: object) -> str | None:
    """Stands for a join in a checkpoint."""
    return None if join is None else hashlib.sha256(repr(join).encode()).hexdigest()
