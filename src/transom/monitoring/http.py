"""`/metrics`, `/status` and `/history` over HTTP, read-only, on this machine unless another address is given.

A page of somebody else's in a browser must not read them either: where we listen on this machine alone, the Host of a
request has to be this machine, so that no foreign name leads here.
"""

from __future__ import annotations

import ipaddress
import json
import socket
import threading
import time
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from transom.monitoring.address import Address
from transom.monitoring.metrics import CONTENT_TYPE, metrics_text
from transom.monitoring.monitor import Monitor

PORT: Final = 9464
"""Unless another one is given."""

_SECONDS_OF_PATIENCE: Final = 10
_MOST_AT_ONCE: Final = 32
_MOST_SECONDS: Final = 86_400


class MonitoringServer:
    """Listens until it is closed.

    >>> monitor = Monitor("local", lambda: [])
    >>> with MonitoringServer(monitor, Address("127.0.0.1", 0)) as server:
    ...     server.url.startswith("http://127.0.0.1:")
    True
    """

    def __init__(self, monitor: Monitor, address: Address) -> None:
        handler = type("_Handler", (_Request,), {"monitor": monitor, "local": address.is_local})
        with address.taken_is_an_error("--metrics"):
            self._server = _Server(address, handler)
        self.address = Address(address.host, self._server.server_address[1])
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.1}, name="transom metrics", daemon=True
        )
        self._thread.start()

    @property
    def url(self) -> str:
        """The address to ask."""
        return f"http://{self.address}"

    def close(self) -> None:
        """Answer nobody any more."""
        if not self._thread.is_alive():
            return
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def __enter__(self) -> MonitoringServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Server(ThreadingHTTPServer):
    """A thread a request, and not more than some at a time."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, address: Address, handler: type[BaseHTTPRequestHandler]) -> None:
        self.address_family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
        self._free = threading.BoundedSemaphore(_MOST_AT_ONCE)
        super().__init__((address.host, address.port), handler)

    def server_bind(self) -> None:
        """Bind without asking who we are by name, which can take long."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])

    def process_request(self, request: Any, client_address: Any) -> None:
        if not self._free.acquire(blocking=False):
            self.shutdown_request(request)
            return
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Whoever sent it has gone."""


class _Request(BaseHTTPRequestHandler):
    monitor: Monitor
    local: bool
    timeout = _SECONDS_OF_PATIENCE
    server_version, sys_version = "transom", ""

    def do_GET(self) -> None:
        if self.local and not _is_this_machine(self.headers.get("Host", "")):
            self._answer(HTTPStatus.FORBIDDEN, "text/plain", "the Host of the request is not this machine\n")
            return
        try:
            target = urlsplit(self.path)
            given = {name: values[-1] for name, values in parse_qs(target.query, max_num_fields=8).items()}
        except ValueError:
            self._answer(HTTPStatus.BAD_REQUEST, "text/plain", "that is no address of ours\n")
            return
        match target.path:
            case "/metrics":
                self._answer(HTTPStatus.OK, CONTENT_TYPE, metrics_text(self.monitor.snapshots()))
            case "/status":
                snapshots = self.monitor.snapshots()
                if "query" in given:
                    snapshots = [each for each in snapshots if each["name"] == given["query"]]
                self._json({"queries": snapshots})
            case "/history":
                self._history(given)
            case _:
                self._answer(HTTPStatus.NOT_FOUND, "text/plain", "there are /metrics, /status and /history\n")

    def _history(self, given: dict[str, str]) -> None:
        seconds = given.get("seconds", "600")
        if not seconds.isdecimal() or len(seconds) > 6:
            self._answer(
                HTTPStatus.BAD_REQUEST, "text/plain", "seconds is a whole number, as in ?query=a&seconds=600\n"
            )
            return
        names = [str(each["name"]) for each in self.monitor.snapshots()]
        names = [name for name in names if given.get("query", name) == name]
        last = min(int(seconds), _MOST_SECONDS)
        self._json({name: self.monitor.history.of(name, last, time.time()) for name in names})

    def _json(self, content: object) -> None:
        self._answer(HTTPStatus.OK, "application/json", json.dumps(content) + "\n")

    def _answer(self, code: HTTPStatus, kind: str, text: str) -> None:
        body = text.encode("utf-8", "replace")
        self.send_response(code)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: nobody reads a line for every look."""


def _is_this_machine(host: str) -> bool:
    """Whether the Host of a request is an address or the name of this machine, with a port or without.

    >>> [_is_this_machine(host) for host in ("localhost:9464", "127.0.0.1", "[::1]:80", "evil.example:9464", "")]
    [True, True, True, False, False]
    """
    if not host or "/" in host or "@" in host:
        return False
    try:
        name = urlsplit(f"//{host}").hostname or ""
        return name == "localhost" or ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
