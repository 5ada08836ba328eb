"""A server that has nothing to do while nobody asks."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Final

import uvicorn

_SECONDS: Final = 1.0
"""So old the date may be that is sent with an answer."""


class QuietServer(uvicorn.Server):
    """Ends when it is told to. Uvicorn's own looks ten times a second whether it is to: each look takes the
    interpreter from the queries, which run in the same process."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._ending: asyncio.Event | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def main_loop(self) -> None:
        self._ending, self._loop = asyncio.Event(), asyncio.get_running_loop()
        while not await self.on_tick(0):
            with suppress(TimeoutError):
                async with asyncio.timeout(_SECONDS):
                    await self._ending.wait()

    def end(self) -> None:
        """From any thread; a server that has not begun ends when it begins."""
        self.should_exit = True
        if self._ending is not None and self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._ending.set)
