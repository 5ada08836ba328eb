"""What may hold a connection: not more of them than some, and none that asks for nothing.

Files are open in the same process, and there are only so many numbers for files and connections.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any, Final

from uvicorn.protocols.http.h11_impl import H11Protocol

MOST_CONNECTIONS: Final = 256

PATIENCE: Final = 10.0
"""Seconds for a request to be whole; who takes twice as long is gone for sure."""


_LOG: Final = logging.getLogger("uvicorn.transom")
_LOG.setLevel(logging.ERROR)
"""Whoever asks for nonsense writes nothing to the terminal of a run."""


class PatientProtocol(H11Protocol):
    """A connection that is closed where its request takes long to come; an answer may take as long as it likes."""

    _look: asyncio.TimerHandle | None = None
    _answers = 0
    _answers_before = -1

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self.logger = _LOG

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > MOST_CONNECTIONS:
            transport.abort()
        else:
            self._look_later()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._look is not None:
            self._look.cancel()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        self._answers += 1
        super().on_response_complete()

    def _look_later(self) -> None:
        self._look = self.loop.call_later(PATIENCE, self._look_at)

    def _look_at(self) -> None:
        cycle = self.cycle
        answering = cycle is not None and not cycle.more_body and not cycle.response_complete
        if not answering and self._answers == self._answers_before:
            self.transport.abort()
            return
        self._answers_before = -1 if answering else self._answers
        self._look_later()
