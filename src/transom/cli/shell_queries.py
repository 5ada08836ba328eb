"""The queries of a shell: each runs in a thread of its own, and can be looked at and stopped."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Final

from transom.cli.display import Display
from transom.cli.messages import message_of
from transom.cli.summary import summary
from transom.core.errors import QueryError
from transom.plan.catalogue import SinkDefinition
from transom.program.planned import path_of
from transom.program.run import Run, until_full
from transom.program.status import Status

_SECONDS_BETWEEN_LOOKS: Final = 0.2
_SECONDS_BETWEEN_KEYS: Final = 0.1


class ShellQuery:
    """A run with a number. `status` is how it was a moment ago: a run is only looked at between two of its steps."""

    def __init__(
        self,
        number: int,
        text: str,
        sink: SinkDefinition | None,
        run: Run,
        display: Display | None,
        ended: Callable[[ShellQuery], None],
    ) -> None:
        self.number = number
        self.text = " ".join(text.split())
        self.sink = sink
        self.state = "running"
        self.error: BaseException | None = None
        self.status: Status = run.status()[0]
        self._run = run
        self._display = display
        self._report_end = ended
        self._polled_at = 0.0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._work, name=f"query {number}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    @property
    def running(self) -> bool:
        return not self._ended.is_set()

    def stop(self) -> None:
        self._run.stop()

    def wait(self) -> None:
        """Until it has ended; Ctrl-C interrupts the waiting, not the query."""
        while not self._ended.wait(_SECONDS_BETWEEN_KEYS):
            pass

    def outcome(self) -> str:
        """How it ended, for people."""
        return message_of(self.error) if self.error is not None else summary([self.status])

    def _work(self) -> None:
        try:
            self._run.run(until_full(self._watch))
            self.state = "finished" if self._run.finished else "stopped"
        except Exception as error:  # it is reported by whoever looks after the query
            self.state, self.error = "failed", error
        self.status = self._run.status()[0]
        try:
            self._report_end(self)
        finally:
            self._ended.set()

    def _watch(self, run: Run) -> None:
        if time.monotonic() - self._polled_at >= _SECONDS_BETWEEN_LOOKS:
            self._polled_at = time.monotonic()
            self.status = run.status()[0]
        if self._display is not None:
            self._display.watch(run)


def reject_shared_sink(sink: SinkDefinition, queries: Sequence[ShellQuery]) -> None:
    """Two queries cannot write to one place at a time."""
    span = path_of(sink) or sink.name.lower()
    for other in queries:
        if other.running and other.sink is not None and span == (path_of(other.sink) or other.sink.name.lower()):
            raise QueryError(
                f"query {other.number} writes to the sink '{other.sink.name}'",
                remedy=f"STOP {other.number} first, or wait for its end",
            )
