"""Several standing queries run at once on Spark, each a streaming query of its own but for those that share a join.

Spark keeps the checkpoint: every batch is one. So a run is stopped between two batches, and what it had written until
then is what the run that resumes from there finds.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import Final

from transom.program.checkpoint_folder import CheckpointFolder
from transom.program.interrupt import Interrupt
from transom.program.progress import RECENT, Listener, Progress, progress_of, read_rows
from transom.program.requests import Requests
from transom.program.run import QuerySpec
from transom.program.status import Status
from transom.runtimes.spark.group import SparkGroup
from transom.runtimes.spark.query import SparkQuery
from transom.runtimes.spark.shared import aside
from transom.runtimes.spark.spark_consumer import SparkConsumer

_POLL: Final = 0.05
_SOON: Final = 0.005
_SELDOM: Final = 0.5
"""Seconds between two looks at queries that follow their inputs, while nothing comes: to ask Spark costs something."""

_SECONDS_OF_SILENCE: Final = 0.5


class SparkRun:
    """Queries that run together, with the checkpoint `folder`. They are reported in the order of `names`."""

    def __init__(
        self,
        units: Sequence[SparkQuery],
        folder: CheckpointFolder | None = None,
        names: Sequence[str] = (),
    ) -> None:
        self.units = list(units)
        self._going: list[SparkQuery] = []
        self._running = False
        self._requests = Requests()
        self._names = list(names)
        self.listeners: list[Listener] = []
        self._folder = folder
        for unit in units:
            self._guard(unit)
        self._share_budget()
        self._stopped = False
        self._woken = False
        self._wake = threading.Event()
        """Something has happened that is worth a look at the queries."""
        self._batches = [_Batches(unit, self._wake.set) for unit in self.units]
        self._left: dict[str, list[Progress]] = {}
        """What queries did of late that are not here any more."""

    @property
    def queries(self) -> list[SparkQuery | SparkConsumer]:
        queries = [query for unit in self.units for query in queries_of(unit)]
        return sorted(queries, key=lambda query: self._names.index(query.name)) if self._names else queries

    @property
    def finished(self) -> bool:
        return all(status.finished for status in self.status())

    def status(self) -> list[Status]:
        return [query.status() for query in self.queries]

    def begin(self) -> None:
        """Begin: each of the queries finds its own checkpoint."""

    def last(self, name: str) -> Progress | None:
        return next(reversed(self.recent(name)), None)

    def recent(self, name: str) -> list[Progress]:
        for each in self._batches:
            if any(query.name == name for query in queries_of(each.query)):
                return [replace(progress, query=name) for progress in list(each.recent)]
        return self._left.get(name, [])

    def run(self, watch: Callable[[SparkRun], None] = lambda run: None) -> None:
        """Run to the end of the input, or until it is stopped: the batches that are under way are finished first.

        Ctrl-C and other signals to end stop it as well, and are raised then (`Interrupt`). `watch` is called after
        batches, and from the first one on now and then while there is nothing to do.
        """
        try:
            with Interrupt() as interrupt:
                for unit in self.units:
                    unit.start()
                waited = float("-inf")
                self._going, self._running = list(self.units), True
                self._let_in_waiting()
                pause = _POLL
                while self._going and not interrupt.requested and not self._is_stopped(pause):
                    self._requests.do()
                    self._going = [query for query in self._going if not query.ended()]
                    waited += pause
                    heard = self._hear()
                    pause = min(2 * pause, _SELDOM if self._is_quiet else _POLL)
                    if self._woken:  # a batch is written, and the run may be over in a moment
                        pause = _SOON
                    if heard or waited >= _SECONDS_OF_SILENCE:
                        waited = 0.0
                        watch(self)
                for query in self._going:
                    query.finish()
                self._hear(to_the_end=True)
                self.close()
        except BaseException:
            self.abort()
            raise
        interrupt.notify()

    def _guard(self, unit: SparkQuery) -> None:
        """No batch of it is shown once the checkpoint is somebody else's."""
        if self._folder is not None:
            unit.guard.before = self._folder.check_owner

    def _share_budget(self, coming: SparkQuery | None = None) -> None:
        """What a partition has in memory follows from what came to it alone, so each of the queries that keep to a
        memory budget has its part of it. Raises an error where a part would be too small."""
        units = [*self.units, *([] if coming is None else [coming])]
        bounded = [unit for unit in units if unit.layout.check_budget(1)]
        for unit in bounded:
            unit.layout.check_budget(len(bounded))
        for unit in bounded:
            unit.share_budget(len(bounded))

    def _let_in_waiting(self) -> None:
        """All have begun: those can come that wait for that."""

    def _is_stopped(self, seconds: float) -> bool:
        """Wait so many seconds, or until something has happened; whether the run is to stop."""
        self._woken = self._wake.wait(seconds)
        self._wake.clear()
        return self._stopped

    @property
    def _is_quiet(self) -> bool:
        """Whether nothing is known to be about to happen."""
        follow = all(query.ending == "stopped" for query in self._going)
        return follow and not any(batches.written for batches in self._batches)

    # --- coming and going --------------------------------------------------------------------------------------------

    def add(self, spec: QuerySpec) -> SparkQuery | SparkConsumer:
        raise AssertionError("queries come to an open run alone")

    def remove(self, name: str) -> None:
        for unit in self.units:
            if any(query.name == name for query in queries_of(unit)):
                self._left[name] = self.recent(name)
                if isinstance(unit, SparkGroup) and len(unit.consumers) > 1:
                    following = unit.changed(go=[name])
                    if following is None:
                        unit.let_go(name)
                    else:
                        self._replace(unit, following)
                    return
                unit.finish()
                unit.close()
                self._replace(unit, None)
                return

    def submit(self, work: Callable[[], None]) -> Future[None]:
        """Have something done between two looks at the queries, by the thread that runs them."""
        request = self._requests.submit(work)
        self._wake.set()
        return request

    def reject_requests(self) -> None:
        """The run is over: what was requested is not done any more."""
        self._requests.reject()

    def _replace(self, old: SparkQuery | None, new: SparkQuery | None) -> None:
        """Put one streaming query in the place of another; or let it come, or go."""
        before = next((each for each in self._batches if each.query is old), None)
        if before is not None:
            self._notify(before, to_the_end=True)
        self._batches = [each for each in self._batches if each.query is not old]
        self.units = [unit for unit in self.units if unit is not old]
        is_running = self._running if old is None else old in self._going
        self._going = [unit for unit in self._going if unit is not old]
        self._share_budget(new)
        if new is None:
            return
        self._guard(new)
        batches = _Batches(new, self._wake.set, before)
        try:
            if is_running:
                new.start()
        except BaseException as error:
            if old is None:
                new.abort()  # the others go on
                raise
            new.fail(error)  # its queries were there before: the run ends, and says why
            self._take_in(new, batches, is_running)
            raise
        self._take_in(new, batches, is_running)

    def _take_in(self, unit: SparkQuery, batches: _Batches, is_running: bool) -> None:
        self.units.append(unit)
        self._batches.append(batches)
        self._going += [unit] if is_running else []

    def stop(self) -> None:
        """Let `run` end after the batches that are under way; from another thread."""
        self._stopped = True
        self._wake.set()

    def close(self) -> None:
        for unit in self.units:
            unit.close()
        if self._folder is not None:
            self._folder.release()

    def abort(self) -> None:
        """Leave everything as it was after the last batch."""
        for unit in self.units:
            aside(unit.abort)
        if self._folder is not None:
            self._folder.release()

    def _hear(self, to_the_end: bool = False) -> bool:
        """Notify listeners of the batches that are done; whether there was one."""
        heard = [self._notify(each, to_the_end) for each in self._batches]
        return any(heard)

    def _notify(self, batches: _Batches, to_the_end: bool) -> bool:
        heard = batches.hear(to_the_end)
        for progress in heard:
            for query in queries_of(batches.query):
                for listener in self.listeners:
                    listener(replace(progress, query=query.name))
        return bool(heard)


def queries_of(unit: SparkQuery) -> Sequence[SparkQuery | SparkConsumer]:
    return unit.consumers if isinstance(unit, SparkGroup) else [unit]


class _Batches:
    """The batches of a query as they are done, by what Spark reports of them and what our ledgers say.

    `notify` is called when one is written. `before` are those of the query that it resumes from.
    """

    def __init__(self, query: SparkQuery, notify: Callable[[], None], before: _Batches | None = None) -> None:
        self.query = query
        self.rows: int = 0 if before is None else before.rows
        """That were read before the next batch."""
        self.recent: deque[Progress] = deque(() if before is None else before.recent, RECENT)
        self.written: deque[tuple[int, float, Status]] = deque()
        """Those that Spark is not quite through with."""

        def after(number: int, seconds: float) -> None:
            self.written.append((number, seconds, query.status()))
            notify()

        query.guard.after = after

    def hear(self, to_the_end: bool) -> list[Progress]:
        """The batches that Spark is quite through with, with how long each took; at the end all that were written."""
        progresses = []
        while self.written:
            number, seconds, status = self.written[0]
            by_spark = self.query.batch_seconds(number)
            if by_spark is None and not to_the_end:
                break
            self.written.popleft()
            number += self.query.batches_before
            self.recent.append(progress_of(status, number, self.rows, seconds if by_spark is None else by_spark))
            self.rows = read_rows(status)
            progresses.append(self.recent[-1])
        return progresses
