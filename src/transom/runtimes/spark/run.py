"""Several standing queries run at once on Spark, each a streaming query of its own.

Spark keeps the checkpoint: every batch is one. So a run is stopped between two batches, and what it had written until
then is what the run that goes on from there finds.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

from transom.program.checkpoint_folder import CheckpointFolder
from transom.program.interrupt import Interrupt
from transom.program.progress import Listener, Progress, progress_of, read_rows
from transom.program.status import Status
from transom.runtimes.spark.query import SparkQuery
from transom.runtimes.spark.shared import aside

_LOOK: Final = 0.05
_SECONDS_OF_SILENCE: Final = 0.5


class SparkRun:
    """Queries that run together; `folder` is the checkpoint of all of them."""

    def __init__(self, queries: Sequence[SparkQuery], folder: CheckpointFolder | None = None) -> None:
        self.queries = list(queries)
        self.listeners: list[Listener] = []
        self._folder = folder
        self._stop = threading.Event()
        self._batches = [_Batches(query) for query in self.queries]

    @property
    def finished(self) -> bool:
        return all(status.finished for status in self.status())

    def status(self) -> list[Status]:
        return [query.status() for query in self.queries]

    def last(self, name: str) -> Progress | None:
        return next((each.last for each in self._batches if each.query.name == name), None)

    def run(self, watch: Callable[[SparkRun], None] = lambda run: None) -> None:
        """To the end of the input, or until it is stopped: the batches that are under way are finished first.

        Ctrl-C stops it as well, and KeyboardInterrupt is raised. `watch` is called after batches, and from the first
        one on now and then while there is nothing to do.
        """
        try:
            with Interrupt() as interrupt:
                for query in self.queries:
                    query.start()
                waited = float("-inf")
                going = list(self.queries)
                while going and not interrupt.asked and not self._stop.wait(_LOOK):
                    going = [query for query in going if not query.ended()]
                    waited += _LOOK
                    if self._hear() or waited >= _SECONDS_OF_SILENCE:
                        waited = 0.0
                        watch(self)
                for query in going:
                    query.finish()
                self._hear(to_the_end=True)
                self.close()
        except BaseException:
            self.abandon()
            raise
        if interrupt.asked:
            raise KeyboardInterrupt

    def stop(self) -> None:
        """Let `run` end after the batches that are under way; from another thread."""
        self._stop.set()

    def close(self) -> None:
        for query in self.queries:
            query.close()
        if self._folder is not None:
            self._folder.release()

    def abandon(self) -> None:
        """Leave everything as it was after the last batch."""
        for query in self.queries:
            aside(query.abandon)
        if self._folder is not None:
            self._folder.release()

    def _hear(self, to_the_end: bool = False) -> bool:
        """Tell listeners of the batches that are done; whether there was one."""
        heard = [told for each in self._batches for told in each.hear(to_the_end)]
        for told in heard:
            for listener in self.listeners:
                listener(told)
        return bool(heard)


class _Batches:
    """The batches of a query as they are done, by what Spark tells of them and what our ledgers say."""

    def __init__(self, query: SparkQuery) -> None:
        self.query = query
        self.last: Progress | None = None
        self._written: deque[tuple[int, float, Status]] = deque()
        self._rows = 0
        query.guard.after = lambda number, seconds: self._written.append((number, seconds, query.status()))

    def hear(self, to_the_end: bool) -> list[Progress]:
        """Those that Spark is quite through with, and tells how long they took; at the end all that were written."""
        found = []
        while self._written:
            number, seconds, status = self._written[0]
            told = self.query.batch_seconds(number)
            if told is None and not to_the_end:
                break
            self._written.popleft()
            self.last = progress_of(status, number, self._rows, seconds if told is None else told)
            self._rows = read_rows(status)
            found.append(self.last)
        return found
