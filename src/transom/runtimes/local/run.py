"""Several standing queries run together, a step of each in turn, with a checkpoint to go on from after a crash.

At a checkpoint everything that was written is first put on disk, then the checkpoint is put in the place of the last
one, and then what was written is shown. Whenever the process dies, the run that goes on from the checkpoint shows the
very rows that an unbroken run would have shown.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

import numpy as np

from transom.core.errors import CheckpointError
from transom.program.checkpoint_folder import CheckpointFolder
from transom.program.clock import Clock, RealClock
from transom.program.interrupt import Interrupt
from transom.program.progress import Listener, Progress, progress_of, read_rows
from transom.program.run import EVERY
from transom.program.status import Status
from transom.runtimes.local.query import POLL, LocalQuery
from transom.state import codec


class LocalRun:
    """Queries that run together. `checkpoint` is a folder; `every` so many steps it is renewed."""

    def __init__(
        self,
        queries: Sequence[LocalQuery],
        *,
        checkpoint: str | None = None,
        every: int = EVERY,
        clock: Clock | None = None,
    ) -> None:
        self.queries = list(queries)
        self.listeners: list[Listener] = []
        self._checkpoint = None if checkpoint is None else CheckpointFolder(checkpoint, "local")
        self._every = every
        self._clock = clock or RealClock()
        self._stop = threading.Event()
        self._turn = 0
        self._unsettled = 0

    @property
    def finished(self) -> bool:
        return all(query.finished for query in self.queries)

    def status(self) -> list[Status]:
        return [query.status() for query in self.queries]

    def resume(self) -> bool:
        """Go on from the checkpoint, if there is one."""
        try:
            return self._resume()
        except BaseException:
            self.abandon()
            raise

    def _resume(self) -> bool:
        data = None if self._checkpoint is None else self._checkpoint.read()
        if data is None:
            return False
        saved = codec.decode(data, ())
        if not isinstance(saved, list) or len(saved) != len(self.queries):
            raise CheckpointError(
                "the checkpoint was written by other queries",
                remedy="run the queries that wrote it, or start with an empty checkpoint folder",
            )
        for query, part in zip(self.queries, saved, strict=True):
            query.restore(part.tobytes())
        return True

    def step(self) -> bool:
        """A step of the next query that has something to do; False when none has, for good or for now."""
        for _ in self.queries:
            query = self.queries[self._turn]
            self._turn = (self._turn + 1) % len(self.queries)
            if self._step(query):
                self._unsettled += 1
                if self._unsettled >= self._every:
                    self.settle()
                return True
        return False

    def _step(self, query: LocalQuery) -> bool:
        if not self.listeners:
            return query.step()
        before = read_rows(query.status())
        started = time.perf_counter()
        went_on = query.step()
        if went_on:
            status = query.status()
            told = progress_of(status, status.steps, before, time.perf_counter() - started)
            for listener in self.listeners:
                listener(told)
        return went_on

    def last(self, name: str) -> Progress | None:
        """Steps are small: nobody wants to look at one."""
        return None

    def settle(self) -> None:
        """Make sure of all that was done, and show it."""
        if self._checkpoint is not None:
            self._checkpoint.write(codec.encode([np.frombuffer(query.save(), np.uint8) for query in self.queries]))
        for query in self.queries:
            query.show()
        self._unsettled = 0

    def run(self, watch: Callable[[LocalRun], None] = lambda run: None) -> None:
        """To the end of the input, or until it is stopped: what was done so far is shown then.

        Ctrl-C stops it as well, and KeyboardInterrupt is raised. `watch` is called after every step, and now and then
        while there is nothing to do.
        """
        try:
            with Interrupt() as interrupt:
                while not interrupt.asked and not self._stop.is_set():
                    if self.step():
                        watch(self)
                    elif self.finished:
                        break
                    else:
                        if self._unsettled:
                            self.settle()
                        watch(self)
                        self._clock.sleep(POLL)
                self.close()
        except BaseException:
            self.abandon()
            raise
        if interrupt.asked:
            raise KeyboardInterrupt

    def stop(self) -> None:
        """Let `run` end after the step that is under way; from another thread."""
        self._stop.set()

    def close(self) -> None:
        if self._unsettled:
            self.settle()
        for query in self.queries:
            query.close()
        if self._checkpoint is not None:
            self._checkpoint.release()

    def abandon(self) -> None:
        """Leave everything as it was at the last checkpoint."""
        for query in self.queries:
            query.abandon()
        if self._checkpoint is not None:
            self._checkpoint.release()
