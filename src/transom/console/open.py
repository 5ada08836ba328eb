"""Opens a console: beside a session, beside a run, or over a checkpoint; served by a thread of its own."""

from __future__ import annotations

import asyncio
import secrets
import socket
import threading
from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Final

from transom.console.board import Board, KeptOf, RunBoard, SessionBoard
from transom.core.errors import TransomError
from transom.monitoring.address import Address
from transom.program.planned import Planned
from transom.program.run import Run
from transom.program.workspace import Workspace

if TYPE_CHECKING:
    from transom.console.editor import Editor
    from transom.console.feed import Feed
    from transom.console.quiet_server import QuietServer
    from transom.session import Session

PORT: Final = 4040
_SECONDS_TO_END: Final = 5.0


class Console:
    """A page that is served until `close`. `url` is the address to open, with the token if there is one."""

    def __init__(self, feed: Feed, editor: Editor | None, address: Address, allow_changes: bool) -> None:
        import uvicorn

        from transom.console.guard import RequestGuard
        from transom.console.patience import PatientProtocol
        from transom.console.quiet_server import QuietServer
        from transom.console.server import console_app

        self._socket = _listening(address)
        self.address = address.with_port(int(self._socket.getsockname()[1]))
        self.token = secrets.token_urlsafe(24) if allow_changes else None
        self.feed = feed
        config = uvicorn.Config(
            RequestGuard(console_app(feed, editor, self.token), self.address),
            log_config=None,
            access_log=False,
            lifespan="off",
            loop="asyncio",
            http=PatientProtocol,
            ws="none",
            server_header=False,
            h11_max_incomplete_event_size=16 * 1024,
            timeout_graceful_shutdown=1,
        )
        self._server = QuietServer(config)
        self.threads = [
            threading.Thread(target=_serve, args=(self._server, self._socket), name="transom console", daemon=True),
            threading.Thread(target=feed.run, name="transom console feed", daemon=True),
        ]
        for thread in self.threads:
            thread.start()

    @property
    def url(self) -> str:
        """The address to open, with the token if there is one."""
        return f"http://{self.address}/" + (f"#token={self.token}" if self.token else "")

    def close(self) -> None:
        """Serve nobody any more."""
        self._server.end()
        self.feed.stop()
        for thread in self.threads:
            if thread is not threading.current_thread():
                thread.join(_SECONDS_TO_END)
        self._socket.close()

    def wait(self) -> None:
        """Until it is closed, or somebody interrupts."""
        while self.threads[0].is_alive():
            self.threads[0].join(0.5)

    def __enter__(self) -> Console:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Console {self.url}>"


def session_console(session: Session, workspace: Workspace, address: str, allow_changes: bool) -> Console:
    require()
    from transom.console.editor import Editor
    from transom.console.feed import Feed

    board = SessionBoard(session, workspace)
    return Console(
        Feed(board), Editor(session, workspace, board), Address.read(address or str(PORT), PORT), allow_changes
    )


def run_console(run: Run, planned: Sequence[Planned], workspace: Workspace, address: str, kept_of: KeptOf) -> Console:
    """Beside queries that are about to run: it looks, and changes nothing."""
    from transom.console.feed import Feed

    board = RunBoard(
        run,
        planned,
        workspace.taps,
        lambda: workspace.explain_together(planned),
        workspace.runtime.name,
        kept_of,
    )
    return Console(Feed(board), None, Address.read(address or str(PORT), PORT), False)


def board_console(board: Board, address: str) -> Console:
    """Over what is on the board."""
    require()
    from transom.console.feed import Feed

    return Console(Feed(board), None, Address.read(address or str(PORT), PORT), False)


def require() -> None:
    """What the console needs is not installed with the rest."""
    try:
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        raise TransomError(
            f"the console needs {error.name}, which is not installed here", remedy="pip install 'transom[console]'"
        ) from None


def _listening(address: Address) -> socket.socket:
    with address.taken_is_an_error("the console"):
        family = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)[0][0]
        opened = socket.socket(family, socket.SOCK_STREAM)
        try:
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            opened.bind((address.host, address.port))
            opened.listen(64)
        except OSError:
            opened.close()
            raise
        return opened


def _serve(server: QuietServer, opened: socket.socket) -> None:
    asyncio.run(server.serve(sockets=[opened]))
