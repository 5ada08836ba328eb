"""Prefetches rows of this process for tasks: what a program hands over, and what it makes as it goes, laid out in
files."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final

from transom.connectors.connector import Source
from transom.connectors.open import declaration_of
from transom.connectors.spool import Spool
from transom.plan.catalogue import StreamDefinition, TableDefinition
from transom.program.run import Ending
from transom.program.unread import reject_grown

_ROWS: Final = 1 << 16
_SECONDS: Final = 0.1
AHEAD: Final = 1 << 20
"""So many rows a prefetcher may be ahead of the query: rows that never end would fill the disk otherwise."""


class Prefetcher:
    """Reads a source into a spool: at once if all its rows are here, otherwise in a thread of its own.

    Where a folder has rows already, from before a restart, it goes on behind them: the spool knows how far the source
    had been read. It is closed when nothing will ever follow: the source says so, or `ending` says that the input ends
    with the run. `used` says how many rows the query has read so far.
    """

    def __init__(
        self,
        source: Source,
        folder: str,
        definition: StreamDefinition | TableDefinition,
        ending: Ending,
        used: Callable[[], int],
    ) -> None:
        self._spool = Spool(folder, definition.columns, stamped=declaration_of(definition).stamped)
        self._source = source
        static = definition.time is None
        self._ends = static or ending == "end"
        self._growing = not static and ending == "stopped"
        self.closes = self._ends or source.closes
        """Whether it closes the spool in this run; whoever reads it to its end waits for that."""
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None
        self.folder = folder
        self.used = used
        self._position = self._spool.offset
        self.error: BaseException | None = None
        """What went wrong in the thread: the program's own rows may raise anything."""
        if self._spool.closed:
            if not source.closes:
                reject_grown(definition, source, self._position)
            return
        if self._growing or source.closes:
            self._thread = threading.Thread(target=self._try, name="transom-prefetcher", daemon=True)
            self._thread.start()
        else:
            self._work(ahead=None)

    def stop(self) -> None:
        """An iterable may keep it waiting for the next row; for that nobody waits long."""
        self._stopped.set()
        if self._thread is not None:
            self._thread.join(1.0)

    def _try(self) -> None:
        try:
            self._work(AHEAD)
        except BaseException as error:
            self.error = error

    def _work(self, ahead: int | None) -> None:
        first = self._spool.rows - self.used()
        while not self._stopped.is_set():
            if ahead is not None and self._spool.rows - first - self.used() >= ahead:
                self._stopped.wait(_SECONDS)
                continue
            batch = self._source.read(self._position, _ROWS, growing=self._growing)
            self._spool.append(batch.rows, batch.rejected, batch.position)
            self._position = batch.position
            self._source.settle(self._spool.offset)
            if batch.over or (batch.ended and self._ends):
                self._spool.close(batch.position)
                return
            if batch.ended and not self._growing and not self.closes:
                return
            if batch.ended:
                self._stopped.wait(_SECONDS)
