"""A display of a notebook that renews itself while a query runs."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any, Final, Protocol

from transom.program.live_answer import LiveView
from transom.program.notebook import live_html, running_html
from transom.program.run import Run
from transom.program.streaming_query import StreamingQuery

_SECONDS: Final = 1.0


class DisplayHandle(Protocol):
    """What IPython's display gives: it can be shown anew in its place."""

    def update(self, obj: Any) -> None: ...


Show = Callable[[Any], DisplayHandle]


class Html:
    """Something to be shown, as IPython asks for it."""

    def __init__(self, text: str) -> None:
        self._text = text

    def _repr_html_(self) -> str:
        return self._text


class LiveDisplay:
    """The status of a query, renewed about once a second by a thread until it is over; the last look stays."""

    def __init__(self, query: StreamingQuery, view: LiveView, show: Show, seconds: float = _SECONDS) -> None:
        self._query, self._view, self._seconds = query, view, seconds
        self._shown = show(Html(self.html()))
        self._thread = threading.Thread(target=self._renew, name=f"display of {query.name}", daemon=True)
        self._thread.start()

    def html(self) -> str:
        query = self._query
        error = query.exception()
        state = "running" if query.is_active else "over" if error is None else f"failed: {error}"
        return live_html(query.status, self._view.look(time.time_ns() // 1000), f"{query.name}: {state}")

    def wait(self, timeout: float | None = None) -> None:
        """Until it is not renewed any more."""
        self._thread.join(timeout)

    def _renew(self) -> None:
        while self._query.is_active:
            time.sleep(self._seconds)
            self._shown.update(Html(self.html()))
        self._shown.update(Html(self.html()))


class Running:
    """Renewed while queries are run to their end by whoever watches; of a run that is over at once nothing is seen."""

    def __init__(self, show: Show, seconds: float = _SECONDS) -> None:
        self._show, self._seconds = show, seconds
        self._shown: DisplayHandle | None = None
        self._began = self._looked = time.monotonic()

    def watch(self, run: Run) -> None:
        now = time.monotonic()
        if now - self._looked >= self._seconds:
            self._looked = now
            self._renew(run)

    def end(self, run: Run) -> None:
        if self._shown is not None:
            self._renew(run)

    def _renew(self, run: Run) -> None:
        html = Html(running_html(run.status(), time.monotonic() - self._began))
        if self._shown is None:
            self._shown = self._show(html)
        else:
            self._shown.update(html)
