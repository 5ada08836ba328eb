"""Looks at queries about once a second, and keeps what it saw for whoever wants to know: nobody waits for a query.

A look is what the handle of a query says of it between two steps; nothing is done for a row.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable, Sequence
from typing import Any, Final

from transom.core.time import BEGINNING
from transom.monitoring.history import SeriesHistory
from transom.monitoring.rate import Rate
from transom.monitoring.silence import Silence
from transom.monitoring.snapshot import state_of, status_json
from transom.monitoring.watched import Watched
from transom.program.progress import Progress
from transom.program.status import Status

SECONDS_BETWEEN_LOOKS: Final = 1.0
MOST_ENDED: Final = 100
"""Queries that ended are still shown, as many as this."""

Sight = tuple[dict[str, Any], Sequence[Progress]]
"""A query as it was found, and its batches since the look before."""


class Monitor:
    """`watched` gives the queries there are. Those that have gone are shown as they were last.

    It looks by itself from `start` on, in a thread of its own.
    """

    def __init__(self, runtime: str, watched: Callable[[], Sequence[Watched]]) -> None:
        self.runtime = runtime
        self.history = SeriesHistory()
        self.after: list[Callable[[list[Sight]], None]] = []
        """Called after every look, with what it saw."""
        self.kept: Callable[[str], dict[str, Any] | None] = lambda name: None
        """What is kept of the answers of a query that were."""
        self._watched = watched
        self._views: dict[str, _View] = {}
        self._looking = threading.Lock()
        self._seen: list[dict[str, Any]] = []
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Look about once a second from now on."""
        if self._thread is None:
            self._thread = threading.Thread(
                target=_look_now_and_then, args=(weakref.ref(self), self._stop), name="transom monitor", daemon=True
            )
            self._thread.start()

    def close(self) -> None:
        """Close the monitor after a last look."""
        self._stop.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()
        self.look()

    def snapshots(self) -> list[dict[str, object]]:
        """The queries as they were at the last look, each as `status_json` has it."""
        return list(self._seen)

    def look(self) -> None:
        """Look at all queries, now."""
        with self._looking:
            now = time.time()
            there = {each.name: each for each in self._watched()}
            for name, each in there.items():
                view = self._views.get(name)
                if view is None or not view.is_of(each):
                    self._views.pop(name, None)
                    self._views[name] = _View(each)
            sights = [view.look(self, now) for view in self._views.values() if not view.ended]
            ended = [name for name, view in self._views.items() if view.ended and name not in there]
            for name in ended[: max(len(ended) - MOST_ENDED, 0)]:
                del self._views[name]
            self._seen = [view.last for view in self._views.values()]
            for snapshot, _ in sights:
                self.history.add(snapshot["name"], now, _numbers(snapshot))
            for callback in self.after:
                callback(sights)


def _look_now_and_then(reference: weakref.ref[Monitor], stop: threading.Event) -> None:
    """The thread does not hold whom it looks for, so that a forgotten session can go."""
    while (monitor := reference()) is not None:
        monitor.look()
        del monitor
        if stop.wait(SECONDS_BETWEEN_LOOKS):
            return


class _View:
    """What is known of one query; it is held until it has ended, and not longer."""

    def __init__(self, query: Watched) -> None:
        self._query: Watched | None = query
        self._query_ref = weakref.ref(query)
        self._rates = Rate(), Rate()
        self._silence = Silence()
        self._steps = 0
        self._busy = 0.0
        self._batch_seconds: float | None = None
        self._batch: int | None = None
        self._status_then: Status | None = None
        self.last: dict[str, Any] = {}

    @property
    def ended(self) -> bool:
        return self._query is None

    def is_of(self, query: Watched) -> bool:
        return query is self._query_ref()

    def look(self, monitor: Monitor, now: float) -> Sight:
        query = self._query
        assert query is not None
        active, error = query.is_active, query.exception()  # before its status: what it is at its end is final
        status = self._status(query, error)
        batches = self._new(query.recent_progress)
        rate, rate_out = self._rates
        self.last = status_json(
            status,
            runtime=monitor.runtime,
            state=state_of(active, status.finished, error),
            now=int(now * 1e6),
            rows_per_second=rate.of(sum(each.rows_in for each in status.inputs), now),
            rows_out_per_second=rate_out.of(status.rows_out, now),
            batch_seconds=self._took(monitor.runtime, status, batches),
            history=monitor.kept(status.name),
            error=error,
        )
        self._silence.mark(self.last, now)
        if not active:
            self._query = None
        return self.last, batches

    def _status(self, query: Watched, error: BaseException | None) -> Status:
        """The status of a query; of one that broke off in the middle of something, that of the look before."""
        try:
            self._status_then = query.status
        except Exception:
            if error is None and self._status_then is None:
                raise
        return self._status_then or Status(query.name, (), (), BEGINNING, None, 0, 0, False)

    def _new(self, recent: Sequence[Progress]) -> list[Progress]:
        """Batches since the look before; the first look takes the last one alone."""
        batches = list(recent)
        last = self._batch
        new = batches[-1:] if last is None else [each for each in batches if each.batch > last]
        if batches:
            self._batch = batches[-1].batch
        return new

    def _took(self, runtime: str, status: Status, batches: Sequence[Progress]) -> float | None:
        """Seconds of the last batch on Spark; in one process the operators' work of a step, since the look before."""
        if runtime == "spark":
            self._batch_seconds = batches[-1].seconds if batches else self._batch_seconds
            return self._batch_seconds
        busy = sum(operator.seconds for operator in status.operators)
        if status.steps > self._steps:
            self._batch_seconds = max(busy - self._busy, 0.0) / (status.steps - self._steps)
        self._steps, self._busy = status.steps, busy
        return self._batch_seconds


def _numbers(snapshot: dict[str, Any]) -> dict[str, float | None]:
    """What a look brings to the history."""
    inputs, operators, held = snapshot["inputs"], snapshot["operators"], snapshot["held_back_by"]
    return {
        "rows_per_second": snapshot["rows_per_second"],
        "rows_out_per_second": snapshot["rows_out_per_second"],
        "lag_seconds": snapshot["lag_seconds"],
        "held_back_seconds": None if held is None else held["seconds"],
        "rows_waiting": sum(each["waiting"] for each in inputs),
        "rows_late": sum(each["late"] for each in inputs),
        "rows_rejected": sum(each["rejected"] for each in inputs),
        "state_rows": sum(each["state_rows"] for each in operators),
        "state_bytes": sum(each["state_bytes"] for each in operators),
        "batch_seconds": snapshot["batch_seconds"],
    }
