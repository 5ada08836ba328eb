"""Several standing queries run at once on Spark, each a streaming query of its own but for those that share a join.

Spark keeps the checkpoint: every batch is one. So a run is stopped between two batches, and what it had written until
then is what the run that goes on from there finds.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import Final

from transom.planner.sharing_shape import Sharable
from transom.program.asked import Asked
from transom.program.checkpoint_folder import CheckpointFolder
from transom.program.interrupt import Interrupt
from transom.program.progress import RECENT, Listener, Progress, progress_of, read_rows
from transom.program.run import Order
from transom.program.sharing import asked_of
from transom.program.status import Status
from transom.runtimes.spark.group import SparkGroup
from transom.runtimes.spark.member import SparkMember
from transom.runtimes.spark.query import SparkQuery
from transom.runtimes.spark.shared import aside

_LOOK: Final = 0.05
_SOON: Final = 0.005
_SELDOM: Final = 0.5
"""Seconds between two looks at queries that follow their inputs, while nothing comes: to ask Spark costs something."""

_SECONDS_OF_SILENCE: Final = 0.5


class SparkRun:
    """Queries that run together; `folder` is the checkpoint of all of them. They are told in the order of `names`.

    `make` makes a query that is added, by what it asks of a join that others may share.
    """

    def __init__(
        self,
        units: Sequence[SparkQuery],
        folder: CheckpointFolder | None = None,
        names: Sequence[str] = (),
        make: Callable[[Order, Sharable | None], SparkQuery] | None = None,
    ) -> None:
        self.units = list(units)
        self._make = make
        self._going: list[SparkQuery] = []
        self._running = False
        self._asked = Asked()
        self._names = list(names)
        self.listeners: list[Listener] = []
        self._folder = folder
        self._stopped = False
        self._woken = False
        self._look = threading.Event()
        """Something has happened that is worth a look at the queries."""
        self._batches = [_Batches(unit, self._look.set) for unit in self.units]
        self._left: dict[str, list[Progress]] = {}
        """What queries did of late that are not here any more."""

    @property
    def queries(self) -> list[SparkQuery | SparkMember]:
        found = [query for unit in self.units for query in _queries(unit)]
        return sorted(found, key=lambda query: self._names.index(query.name)) if self._names else found

    @property
    def finished(self) -> bool:
        return all(status.finished for status in self.status())

    def status(self) -> list[Status]:
        return [query.status() for query in self.queries]

    def last(self, name: str) -> Progress | None:
        return next(reversed(self.recent(name)), None)

    def recent(self, name: str) -> list[Progress]:
        for each in self._batches:
            if any(query.name == name for query in _queries(each.query)):
                return [replace(progress, query=name) for progress in list(each.recent)]
        return self._left.get(name, [])

    def run(self, watch: Callable[[SparkRun], None] = lambda run: None) -> None:
        """To the end of the input, or until it is stopped: the batches that are under way are finished first.

        Ctrl-C and other signals to end stop it as well, and are raised then (`Interrupt`). `watch` is called after
        batches, and from the first one on now and then while there is nothing to do.
        """
        try:
            with Interrupt() as interrupt:
                for unit in self.units:
                    unit.start()
                waited = float("-inf")
                self._going, self._running = list(self.units), True
                pause = _LOOK
                while self._going and not interrupt.asked and not self._told_to_stop(pause):
                    self._asked.do()
                    self._going = [query for query in self._going if not query.ended()]
                    waited += pause
                    heard = self._hear()
                    pause = min(2 * pause, _SELDOM if self._is_quiet else _LOOK)
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
            self.abandon()
            raise
        interrupt.tell()

    def _told_to_stop(self, seconds: float) -> bool:
        """After so many seconds, or when something has happened."""
        self._woken = self._look.wait(seconds)
        self._look.clear()
        return self._stopped

    @property
    def _is_quiet(self) -> bool:
        """Whether nothing is known to be about to happen."""
        follow = all(query.ending == "stopped" for query in self._going)
        return follow and not any(batches.written for batches in self._batches)

    # --- coming and going --------------------------------------------------------------------------------------------

    def add(self, order: Order) -> SparkQuery | SparkMember:
        """A query that was not there before, to whom it shares a join with, if there is one."""
        assert self._make is not None
        asked = asked_of(order.planned)
        if isinstance(asked, Sharable) and order.emit != "latest":
            for unit in self.units:
                if isinstance(unit, SparkGroup) and unit.admits(asked):
                    member = SparkMember(order, asked)
                    member.open(unit)  # before anybody is stopped for it
                    following = unit.changed(come=[member])
                    if following is not None:
                        self._replace(unit, following)
                        return member
                    member.abandon()  # the others have just come to the end of their input
        made = self._make(order, asked if isinstance(asked, Sharable) else None)
        self._replace(None, made)
        return _queries(made)[0]

    def remove(self, name: str) -> None:
        for unit in self.units:
            if any(query.name == name for query in _queries(unit)):
                self._left[name] = self.recent(name)
                if isinstance(unit, SparkGroup) and len(unit.members) > 1:
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

    def ask(self, work: Callable[[], None]) -> Future[None]:
        """Have something done between two looks at the queries, by the thread that runs them."""
        asked = self._asked.ask(work)
        self._look.set()
        return asked

    def refuse_asked(self) -> None:
        """The run is over: what was asked for is not done any more."""
        self._asked.refuse()

    def _replace(self, old: SparkQuery | None, new: SparkQuery | None) -> None:
        """One goes on as the other; or it comes, or goes."""
        before = next((each for each in self._batches if each.query is old), None)
        if before is not None:
            self._tell(before, to_the_end=True)
        self._batches = [each for each in self._batches if each.query is not old]
        self.units = [unit for unit in self.units if unit is not old]
        goes_on = self._running if old is None else old in self._going
        self._going = [unit for unit in self._going if unit is not old]
        if new is None:
            return
        batches = _Batches(new, self._look.set, before)
        try:
            if goes_on:
                new.start()
        except BaseException as error:
            if old is None:
                new.abandon()  # the others go on
                raise
            new.fail(error)  # its queries were there before: the run ends, and says why
            self._take_in(new, batches, goes_on)
            raise
        self._take_in(new, batches, goes_on)

    def _take_in(self, unit: SparkQuery, batches: _Batches, goes_on: bool) -> None:
        self.units.append(unit)
        self._batches.append(batches)
        self._going += [unit] if goes_on else []

    def stop(self) -> None:
        """Let `run` end after the batches that are under way; from another thread."""
        self._stopped = True
        self._look.set()

    def close(self) -> None:
        for unit in self.units:
            unit.close()
        if self._folder is not None:
            self._folder.release()

    def abandon(self) -> None:
        """Leave everything as it was after the last batch."""
        for unit in self.units:
            aside(unit.abandon)
        if self._folder is not None:
            self._folder.release()

    def _hear(self, to_the_end: bool = False) -> bool:
        """Tell listeners of the batches that are done; whether there was one."""
        heard = [self._tell(each, to_the_end) for each in self._batches]
        return any(heard)

    def _tell(self, batches: _Batches, to_the_end: bool) -> bool:
        heard = batches.hear(to_the_end)
        for told in heard:
            for query in _queries(batches.query):
                for listener in self.listeners:
                    listener(replace(told, query=query.name))
        return bool(heard)


def _queries(unit: SparkQuery) -> Sequence[SparkQuery | SparkMember]:
    return unit.members if isinstance(unit, SparkGroup) else [unit]


class _Batches:
    """The batches of a query as they are done, by what Spark tells of them and what our ledgers say.

    `tell` is called when one is written. `before` are those of the query that it goes on from.
    """

    def __init__(self, query: SparkQuery, tell: Callable[[], None], before: _Batches | None = None) -> None:
        self.query = query
        self.rows: int = 0 if before is None else before.rows
        """That were read before the next batch."""
        self.recent: deque[Progress] = deque(() if before is None else before.recent, RECENT)
        self.written: deque[tuple[int, float, Status]] = deque()
        """Those that Spark is not quite through with."""

        def after(number: int, seconds: float) -> None:
            self.written.append((number, seconds, query.status()))
            tell()

        query.guard.after = after

    def hear(self, to_the_end: bool) -> list[Progress]:
        """Those that Spark is quite through with, and tells how long they took; at the end all that were written."""
        found = []
        while self.written:
            number, seconds, status = self.written[0]
            told = self.query.batch_seconds(number)
            if told is None and not to_the_end:
                break
            self.written.popleft()
            number += self.query.batches_before
            self.recent.append(progress_of(status, number, self.rows, seconds if told is None else told))
            self.rows = read_rows(status)
            found.append(self.recent[-1])
        return found
