"""Several standing queries run together, a step of each in turn, with a checkpoint to resume from after a crash.

At a checkpoint everything that was written is first put on disk, then the checkpoint is put in the place of the last
one, and then what was written is shown. Whenever the process dies, the run that resumes from the checkpoint shows the
very rows that an unbroken run would have shown.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Final

import numpy as np

from transom.pipeline.exhausted import Kept, reported_when_exhausted
from transom.planner.fingerprint import of_another_plan
from transom.program.checkpoint_folder import STATE, CheckpointFolder
from transom.program.checkpoint_manifest import Manifest
from transom.program.clock import Clock, RealClock
from transom.program.interrupt import Interrupt
from transom.program.progress import RECENT, Listener, Progress, progress_of, read_rows
from transom.program.requests import Requests
from transom.program.run import EVERY, QuerySpec
from transom.program.status import Status, kept_by
from transom.runtimes.local.intake import POLL
from transom.runtimes.local.job import LocalJob
from transom.runtimes.local.query import LocalQuery
from transom.state import codec

_SECONDS_OF_PROGRESS: Final = 1.0
"""How much time goes into a progress that nobody listens for: to look at every step would cost more than the step."""


class _Recent:
    """What a query did of late, and how far it was then."""

    def __init__(self) -> None:
        self.progress: deque[Progress] = deque(maxlen=RECENT)
        self._steps = 0
        self._rows = 0
        self._at = time.perf_counter()

    def look(self, status: Status) -> None:
        """Note the progress of a step, if there was one since."""
        now = time.perf_counter()
        if status.steps != self._steps:
            self.progress.append(progress_of(status, status.steps, self._rows, now - self._at))
        self._steps, self._rows, self._at = status.steps, read_rows(status), now


class LocalRun:
    """Queries that run together. `checkpoint` is a folder, which is for what `manifest` says; it is renewed when there
    is nothing to do, and at least every so many steps (`every`).

    They are reported in the order of `names`, if there is one.
    """

    def __init__(
        self,
        jobs: Sequence[LocalJob],
        *,
        checkpoint: str | None = None,
        every: int = EVERY,
        clock: Clock | None = None,
        names: Sequence[str] = (),
        manifest: Manifest | None = None,
    ) -> None:
        self.jobs = list(jobs)
        self._names = list(names)
        self.listeners: list[Listener] = []
        self._checkpoint = None if checkpoint is None else CheckpointFolder(checkpoint)
        self._manifest = manifest
        self._every = every
        self._clock = clock or RealClock()
        self._stop = threading.Event()
        self._woken = threading.Event()
        """Somebody wants something of the run, and not only when it looks for rows again."""
        self._turn = 0
        self._uncommitted = 0
        self._requests = Requests()
        self._recent: dict[str, _Recent] = {}
        self._polled_at = time.perf_counter()

    @property
    def queries(self) -> list[LocalQuery]:
        queries = [query for job in self.jobs for query in job.queries]
        return sorted(queries, key=lambda query: self._names.index(query.name)) if self._names else queries

    @property
    def finished(self) -> bool:
        return all(job.finished for job in self.jobs)

    def status(self) -> list[Status]:
        return [query.status() for query in self.queries]

    def resume(self) -> bool:
        """Resume from the checkpoint, if there is one."""
        try:
            return self._resume()
        except BaseException:
            self.abort()
            raise

    def _resume(self) -> bool:
        data = None if self._checkpoint is None else self._checkpoint.read(STATE)
        if self._checkpoint is not None and self._manifest is not None:
            self._checkpoint.claim(self._manifest, begun=data is not None)
        if data is None:
            for job in self.jobs:
                job.begin()
            return False
        saved = codec.decode(data, ())
        if not isinstance(saved, list) or len(saved) != len(self.jobs):
            raise of_another_plan()
        with codec.restoring():
            for job, part in zip(self.jobs, saved, strict=True):
                job.restore(part.tobytes())
        return True

    def step(self) -> bool:
        """A step of the next query that has something to do; False when none has, for good or for now."""
        for _ in self.jobs:
            self._turn %= len(self.jobs)
            job = self.jobs[self._turn]
            self._turn += 1
            if self._step(job):
                self._uncommitted += 1
                if self._uncommitted >= self._every:
                    self.commit()
                return True
        return False

    def begin(self) -> None:
        """What there is to resume from has been read."""

    def _step(self, job: LocalJob) -> bool:
        if not self.listeners:
            return job.step()
        queries = job.queries
        before = {query.name: read_rows(query.status()) for query in queries}
        started = time.perf_counter()
        went_on = job.step()
        if went_on:
            seconds = time.perf_counter() - started
            for query in queries:
                status = query.status()
                progress = progress_of(status, status.steps, before[query.name], seconds)
                for listener in self.listeners:
                    listener(progress)
        return went_on

    def last(self, name: str) -> Progress | None:
        """Always None: steps are too small to be worth a report each."""
        return None

    def recent(self, name: str) -> Sequence[Progress]:
        recent = self._recent.get(name)
        return () if recent is None else recent.progress

    def _look(self, at_once: bool = False) -> None:
        """Remember what the queries did, now and then."""
        now = time.perf_counter()
        if at_once or now - self._polled_at >= _SECONDS_OF_PROGRESS:
            self._polled_at = now
            for query in self.queries:
                self._recent.setdefault(query.name, _Recent()).look(query.status())

    def _kept(self) -> list[Kept]:
        return [kept for status in self.status() for kept in kept_by(status)]

    def commit(self) -> None:
        """A checkpoint: sinks prepare, state and offsets are written to one file, sinks commit. Without a folder they
        only commit."""
        if self._checkpoint is not None:
            self._checkpoint.write(STATE, codec.encode(self._prepared()))
        for job in self.jobs:
            job.commit()
        self._uncommitted = 0

    def _prepared(self) -> object:
        """What a checkpoint keeps; the sinks have prepared their epochs then."""
        return [prepared(job) for job in self.jobs]

    def run(self, watch: Callable[[LocalRun], None] = lambda run: None) -> None:
        """Run to the end that the run is to have, or until it is stopped: what was done so far is shown then.

        Ctrl-C and other signals to end stop it as well, and are raised then (`Interrupt`). `watch` is called after
        every step, and now and then while there is nothing to do.
        """
        try:
            with Interrupt() as interrupt, reported_when_exhausted(self._kept):
                self._look(at_once=True)  # a run that resumes did what came before in another one
                while not interrupt.requested and not self._stop.is_set():
                    self._requests.do()
                    if self.step():
                        self._look()
                        watch(self)
                    elif all(job.done for job in self.jobs):
                        break
                    else:
                        if self._uncommitted:
                            self.commit()
                        watch(self)
                        self._clock.sleep(POLL, self._woken)
                        self._woken.clear()
                self.close()
                self._look(at_once=True)
        except BaseException:
            self.abort()
            raise
        interrupt.notify()

    # --- coming and going --------------------------------------------------------------------------------------------

    def add(self, spec: QuerySpec) -> LocalQuery:
        raise AssertionError("queries come to an open run alone")

    def remove(self, name: str) -> None:
        job = next((job for job in self.jobs if any(query.name == name for query in job.queries)), None)
        if job is not None and len(job.queries) == 1:
            job.close()
            self.jobs.remove(job)
        elif job is not None:
            job.remove(name).output.close()

    def submit(self, work: Callable[[], None]) -> Future[None]:
        """Have something done between two steps, by the thread that runs them."""
        request = self._requests.submit(work)
        self._woken.set()
        return request

    def reject_requests(self) -> None:
        """The run is over: what was requested is not done any more."""
        self._requests.reject()

    def stop(self) -> None:
        """Let `run` end after the step that is under way; from another thread."""
        self._stop.set()
        self._woken.set()

    def close(self) -> None:
        if self._uncommitted or self._checkpoint is not None:  # time may have gone on though nothing came of it
            self.commit()
        for job in self.jobs:
            job.close()
        if self._checkpoint is not None:
            self._checkpoint.release()

    def abort(self) -> None:
        """Leave everything as it was at the last checkpoint."""
        for job in self.jobs:
            job.abort()
        if self._checkpoint is not None:
            self._checkpoint.release()


def prepared(job: LocalJob) -> np.ndarray:
    """What a checkpoint keeps of a job."""
    return np.frombuffer(job.prepare_checkpoint(), np.uint8)
