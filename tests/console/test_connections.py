"""What may hold the connections of a console: a real server, and whoever is rude to it."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

pytest.importorskip("starlette", reason="the console is an extra: pip install 'transom[console]'")

from tests.console.test_feed import Fake
from transom.console import feed, patience
from transom.console.feed import Feed
from transom.console.open import Console
from transom.monitoring.address import Address

PATIENCE = 0.3
MOST = 12


@pytest.fixture
def console(monkeypatch: pytest.MonkeyPatch) -> Iterator[Console]:
    monkeypatch.setattr(patience, "PATIENCE", PATIENCE)
    monkeypatch.setattr(patience, "MOST_CONNECTIONS", MOST)
    monkeypatch.setattr(feed, "MOST_CLIENTS", 3)
    with Console(Feed(Fake(), tick=0.02, share=1.0), None, Address("127.0.0.1", 0), False) as console:
        yield console


def connected(console: Console, sent: str) -> socket.socket:
    opened = socket.create_connection(("127.0.0.1", console.address.port), timeout=20)
    opened.sendall(sent.replace("\n", "\r\n").replace("HOST", f"Host: {console.address}").encode())
    return opened


RUDE = {
    "nothing": "",
    "half a head": "GET / HTTP/1.1\nHo",
    "half a body": "POST /api/check HTTP/1.1\nHOST\nContent-Type: application/json\nContent-Length: 99\n\n{",
    "an answer, and nothing more": "HEAD / HTTP/1.1\nHOST\n\n",
}


@pytest.mark.parametrize("sent", RUDE.values(), ids=RUDE.keys())
def test_who_asks_for_nothing_is_let_go(console: Console, sent: str) -> None:
    with connected(console, sent) as opened:
        try:
            while opened.recv(1 << 16):
                pass
        except ConnectionResetError:
            pass


def test_who_drips_is_let_go(console: Console) -> None:
    with connected(console, "GET / HTTP/1.1\n") as opened, pytest.raises(OSError):
        for _ in range(400):
            opened.sendall(b"x: y\r\n")
            time.sleep(PATIENCE / 10)


def test_who_listens_may_stay(console: Console) -> None:
    with connected(console, "GET /api/events HTTP/1.1\nHOST\n\n") as opened:
        end = time.monotonic() + 5 * PATIENCE
        while time.monotonic() < end:
            assert opened.recv(1 << 16)


def test_connections_are_bounded_and_come_free(console: Console) -> None:
    with ExitStack() as opened:
        for _ in range(3 * MOST):
            opened.enter_context(connected(console, ""))
        end = time.monotonic() + 20
        while not served(console):
            assert time.monotonic() < end
            time.sleep(PATIENCE)


def served(console: Console) -> bool:
    try:
        return bool(urlopen(console.url, timeout=5).status == 200)
    except OSError:
        return False


def test_no_more_listen_than_may(console: Console) -> None:
    with ExitStack() as opened:
        for _ in range(3):
            one = opened.enter_context(connected(console, "GET /api/events HTTP/1.1\nHOST\n\n"))
            while b"overview" not in one.recv(1 << 16):
                pass
        with pytest.raises(HTTPError, match="503"):
            urlopen(f"{console.url}api/events", timeout=20)
        assert served(console)


@pytest.mark.parametrize("sent", ["NONSENSE\n\n", "GET / HTTP/1.1\nHOST\nUpgrade: websocket\nConnection: Upgrade\n\n"])
def test_nonsense_writes_nothing_to_the_terminal(
    console: Console, sent: str, capfd: pytest.CaptureFixture[str]
) -> None:
    with connected(console, sent) as opened:
        assert opened.recv(1 << 16).startswith(b"HTTP/1.1 ")
    assert capfd.readouterr().err == ""


def test_a_head_that_does_not_end_is_cut_off(console: Console) -> None:
    with connected(console, "GET / HTTP/1.1\nHOST\nx: ") as opened:
        try:
            for _ in range(200):
                opened.sendall(b"y" * 1024)
            found = opened.recv(1 << 16)
        except ConnectionError:
            return
        assert found.startswith(b"HTTP/1.1 400 ")
