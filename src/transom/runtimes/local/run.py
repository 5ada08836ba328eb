"""Several standing queries run together, a step of each in turn, with a checkpoint to go on from after a crash.

At a checkpoint everything that was written is first put on disk, then the checkpoint is put in the place of the last
one, and then what was written is shown. Whenever the process dies, the run that goes on from the checkpoint shows the
very rows that an unbroken run would have shown.
"""

from __future__ import annotations

import fcntl
import os
import threading
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from transom.core.errors import CheckpointError
from transom.program.clock import Clock, RealClock
from transom.program.interrupt import Interrupt
from transom.runtimes.local.query import POLL, LocalQuery
from transom.program.status import Status
from transom.state import codec

EVERY: Final = 16
"""Steps between two checkpoints, unless told otherwise."""

_NAME: Final = "checkpoint.arrow"


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
        self._checkpoint = None if checkpoint is None else _Checkpoint(checkpoint)
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
        saved = None if self._checkpoint is None else self._checkpoint.read()
        if saved is None:
            return False
        if not isinstance(saved, list) or len(saved) != len(self.queries):
            raise CheckpointError(
                "the checkpoint was written by other queries",
                remedy="run the queries that wrote it, or start with an empty checkpoint folder",
            )
        for query, data in zip(self.queries, saved, strict=True):
            query.restore(data.tobytes())
        return True

    def step(self) -> bool:
        """A step of the next query that has something to do; False when none has, for good or for now."""
        for _ in self.queries:
            query = self.queries[self._turn]
            self._turn = (self._turn + 1) % len(self.queries)
            if query.step():
                self._unsettled += 1
                if self._unsettled >= self._every:
                    self.settle()
                return True
        return False

    def settle(self) -> None:
        """Make sure of all that was done, and show it."""
        if self._checkpoint is not None:
            self._checkpoint.write([np.frombuffer(query.save(), np.uint8) for query in self.queries])
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


class _Checkpoint:
    """A folder with one checkpoint, for one run at a time."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._path = os.path.join(folder, _NAME)
        try:
            os.makedirs(folder, exist_ok=True)
            self._lock: int | None = os.open(os.path.join(folder, ".lock"), os.O_CREAT | os.O_RDWR)
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.release()
            raise CheckpointError(
                f"the checkpoint folder '{folder}' is in use by another run",
                remedy="wait for it to end, or choose another folder",
            ) from None
        except OSError as error:
            raise _cannot("use", folder, error) from None

    def read(self) -> Any:
        try:
            with open(self._path, "rb") as file:
                return codec.decode(file.read(), ())
        except FileNotFoundError:
            return None
        except OSError as error:
            raise _cannot("read", self._path, error) from None

    def write(self, saved: list[Any]) -> None:
        """In the place of the last one, whole or not at all."""
        fresh = self._path + ".new"
        try:
            with open(fresh, "wb") as file:
                file.write(codec.encode(saved))
                file.flush()
                os.fsync(file.fileno())
            os.replace(fresh, self._path)
            folder = os.open(self._folder, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
        except OSError as error:
            raise _cannot("write", self._path, error) from None

    def release(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def _cannot(what: str, path: str, error: OSError) -> CheckpointError:
    return CheckpointError(
        f"cannot {what} the checkpoint '{path}': {error.strerror or error}",
        remedy="check that the folder may be read and written and that the disk has room",
    )
