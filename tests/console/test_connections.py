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


ABSURD = {
    "two hosts": "GET /api/about HTTP/1.1\nHOST\nHost: evil.example\n\n",
    "no host": "GET /api/about HTTP/1.0\n\n",
    "another host in the address": "GET http://evil.example/api/about HTTP/1.1\nHOST\n\n",
    "a tunnel": "CONNECT evil.example:80 HTTP/1.1\nHOST\n\n",
    "a length and pieces": "POST /api/check HTTP/1.1\nHOST\nContent-Type: application/json\nContent-Length: 2\n"
    "Content-Length: 3\n\n{}",
    "a line in a name": "GET /api/about HTTP/1.1\nHOST\nOrigin : http://evil.example\n\n",
    "a byte that is none": "GET /api/about\x00 HTTP/1.1\nHOST\n\n",
}


@pytest.mark.parametrize("sent", ABSURD.values(), ids=ABSURD.keys())
def test_a_request_that_means_two_things_is_not_answered(console: Console, sent: str) -> None:
    with connected(console, sent) as opened:
        head = opened.recv(1 << 16).split(b" ", 2)
    assert head[0] == b"HTTP/1.1" and 400 <= int(head[1]) < 500


def test_who_does_not_read_misses_what_comes_and_has_nothing_kept(console: Console) -> None:
    """A page whose window is asleep is no reason for memory to grow, nor for others to wait."""
    board = console.feed.board
    assert isinstance(board, Fake)
    with ExitStack() as opened:
        asleep = opened.enter_context(socket.socket())
        asleep.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        asleep.connect(("127.0.0.1", console.address.port))
        head = f"GET /api/events?query=q&wants=answer HTTP/1.1\r\nHost: {console.address}\r\n\r\n"
        asleep.sendall(head.encode())
        awake = opened.enter_context(connected(console, "GET /api/events HTTP/1.1\nHOST\n\n"))
        seen, most = 0, 250
        while seen < most:
            if seen % 5 == 0:
                board.write(*(("+", seen * 1000 + at, 10**17 + at) for at in range(1000)))
            seen += awake.recv(1 << 16).count(b'"overview"')
        held = [each.transport.get_write_buffer_size() for each in console._server.server_state.connections]
        assert len(held) == 2 and max(held) < 1_000_000


def test_a_head_that_does_not_end_is_cut_off(console: Console) -> None:
    with connected(console, "GET / HTTP/1.1\nHOST\nx: ") as opened:
        try:
            for _ in range(200):
                opened.sendall(b"y" * 1024)
            found = opened.recv(1 << 16)
        except ConnectionError:
            return
        assert found.startswith(b"HTTP/1.1 400 ")
