"""How a run is looked at from outside: metrics and status over HTTP, a status file, and lines in a log."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Final, TextIO

from transom.cli.notices import notice
from transom.cli.query_file import UsageError, absolute
from transom.core.errors import OptionError
from transom.core.text import visible
from transom.flight.server import PORT as FLIGHT_PORT
from transom.monitoring.address import Address
from transom.monitoring.http import PORT, MonitoringServer
from transom.monitoring.logs import LogFormat, QueryLog, logging_to
from transom.monitoring.monitor import Monitor
from transom.monitoring.status_file import StatusFile
from transom.monitoring.watched import RunWatch
from transom.session import Session

SECONDS_OF_SILENCE: Final = 30.0
"""Where there is no display and no log, a line for each query after so many seconds."""


@dataclass(frozen=True)
class Watching:
    """What the options ask for; paths begin at the folder where the command was given."""

    runtime: str
    metrics: Address | None
    status: str | None
    log: LogFormat | None
    log_file: str | None
    flight: Address | None = None

    @staticmethod
    def of(options: argparse.Namespace) -> Watching:
        log: LogFormat | None = options.log or (None if options.log_file is None else "text")
        metrics = _address("--metrics", options.metrics, PORT)
        flight = _address("--flight", options.flight, FLIGHT_PORT)
        return Watching(options.runtime, metrics, absolute(options.status), log, absolute(options.log_file), flight)

    @property
    def logs_here(self) -> bool:
        """Whether lines go to standard error, where a display would be in their way."""
        return self.log is not None and self.log_file is None

    def serve(self, session: Session) -> None:
        """Serve before queries are made: whoever asks for answers hears of all that they write."""
        if self.flight is not None:
            server = session.serve_sql(str(self.flight))
            notice(f"answers by SQL at {server.url}")

    @contextmanager
    def over(self, session: Session, silent: bool) -> Iterator[RunWatch]:
        """Within it a run is looked at, once the watch knows it; `silent`: nothing else says how it goes."""
        seen = RunWatch()
        if not (silent or self.metrics or self.status or self.log):
            yield seen
            return
        monitor = Monitor(self.runtime, seen.queries)
        monitor.kept = session.kept_of
        with ExitStack() as stack:
            if self.log is not None or silent:
                stream = sys.stderr if self.log_file is None else stack.enter_context(_appended(self.log_file))
                stack.enter_context(logging_to(stream, self.log or "text"))
                every = None if self.log is not None else SECONDS_OF_SILENCE
                monitor.after.append(QueryLog(batches=self.log is not None, every=every))
            if self.status is not None:
                monitor.after.append(StatusFile(self.status, monitor).write)
            if self.metrics is not None:
                server = stack.enter_context(MonitoringServer(monitor, self.metrics))
                notice(f"metrics at {server.url}/metrics, status at {server.url}/status")
            monitor.start()
            seen.when_over = monitor.close
            yield seen


def _address(option: str, text: str | None, port: int) -> Address | None:
    try:
        return None if text is None else Address.read(text, port)
    except OptionError as error:
        raise UsageError(error.what, remedy=f"{error.remedy}; or put {option} behind the query file") from None


def _appended(path: str) -> TextIO:
    try:
        return open(path, "a", encoding="utf-8", errors="backslashreplace", buffering=1)
    except OSError as error:
        raise UsageError(
            f"cannot write the log to '{visible(path)}': {error.strerror or error}",
            remedy="give a file in a folder that is there and can be written to",
        ) from None
