"""What comes between a browser and the console: a page on this machine is open to whatever else the browser shows.

Another site can have the browser ask addresses of this machine, and a name that its owner points here makes it the
same site. So a request must name this server as the host it means, and one that comes from a page must come from ours.
"""

from __future__ import annotations

import hmac
import ipaddress
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final

from starlette.exceptions import HTTPException

from transom.monitoring.address import Address

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]

MOST_BODY: Final = 64 * 1024
MOST_TARGET: Final = 2 * 1024

HEADERS: Final = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


def hosts_of(address: Address) -> frozenset[str] | None:
    """What a request may name as its host; None: any address in numbers, of a server that listens on all of them.

    >>> sorted(hosts_of(Address("127.0.0.1", 80))), hosts_of(Address("0.0.0.0", 80))
    (['127.0.0.1:80', '[::1]:80', 'localhost:80'], None)
    """
    if address.host in ("0.0.0.0", "::"):
        return None
    hosts = {str(address).lower()}
    if address.is_local:
        hosts |= {f"{name}:{address.port}" for name in ("127.0.0.1", "localhost", "[::1]")}
    return frozenset(hosts)


class RequestGuard:
    """Answers what is not meant for the app with a word of refusal, and says with every answer what a page may do."""

    def __init__(self, app: App, address: Address) -> None:
        self._app = app
        self._hosts = hosts_of(address)
        self._port = address.port

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        headers: dict[bytes, list[bytes]] = {}
        for name, value in scope["headers"]:
            headers.setdefault(name.lower(), []).append(value)
        rejection = self._rejection(scope, headers)
        if rejection is not None:
            await _answer(send, *rejection)
            return
        read = 0

        async def counted() -> Message:
            nonlocal read
            message = await receive()
            read += len(message.get("body", b""))
            if read > MOST_BODY:  # its head said less, or nothing
                raise HTTPException(413, "the request is too large")
            return message

        async def headed(message: Message) -> None:
            if message["type"] == "http.response.start":
                own = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
                ours = {name for name, _ in own}
                message["headers"] = [*own, *(each for each in message.get("headers", ()) if each[0] not in ours)]
            await send(message)

        await self._app(scope, counted, headed)

    def _rejection(self, scope: Message, headers: dict[bytes, list[bytes]]) -> tuple[int, str] | None:
        if len(scope.get("raw_path") or b"") + len(scope["query_string"]) > MOST_TARGET:
            return 414, "the address is too long"
        hosts = headers.get(b"host", [])
        if len(hosts) != 1 or not self._is_host(hosts[0]):
            return 421, "this host is not served here"
        for origin in headers.get(b"origin", []):
            if origin.lower() != b"http://" + hosts[0].lower():
                return 403, "another site may not ask"
        if any(site.lower() not in (b"same-origin", b"none") for site in headers.get(b"sec-fetch-site", [])):
            return 403, "another site may not ask"
        if scope["method"] not in ("GET", "HEAD", "POST"):
            return 405, "only GET and POST are understood"
        length = headers.get(b"content-length", [b"0"])[0]
        if not length.isdigit() or int(length) > MOST_BODY:
            return 413, "the request is too large"
        if scope["method"] == "POST":
            kinds = headers.get(b"content-type", [b""])
            if kinds[0].split(b";")[0].strip().lower() != b"application/json":
                return 415, "JSON is expected"
        return None

    def _is_host(self, host: bytes) -> bool:
        try:
            text = host.decode("ascii").lower()
        except UnicodeDecodeError:
            return False
        if self._hosts is not None:
            return text in self._hosts
        name, _, port = text.rpartition(":")
        try:
            ipaddress.ip_address(name.strip("[]"))
        except ValueError:
            return name == "localhost" and port == str(self._port)
        return port == str(self._port)


def same_token(expected: str, given: str) -> bool:
    """Whether both are the same token, in a time that does not say how much of it is right."""
    return hmac.compare_digest(expected.encode(), given.encode("utf-8", "replace"))


async def _answer(send: Send, status: int, text: str) -> None:
    body = text.encode()
    headers = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
    headers += [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", str(len(body)).encode())]
    headers.append((b"connection", b"close"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
