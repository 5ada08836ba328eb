from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Iterator

import pytest

from tests.monitoring.test_metrics import parsed, value
from transom import Session
from transom.core.errors import OptionError
from transom.monitoring.address import Address
from transom.monitoring.http import MonitoringServer


@pytest.fixture
def session() -> Iterator[Session]:
    with Session() as made:
        made.stream("s", [{"t": "2024-05-01", "k": "x"}, {"t": None, "k": "y"}], time="t")
        made.start("SELECT k FROM s [RANGE 1 SECOND]", name="all of it").await_termination(60)
        yield made


def get(server: MonitoringServer, path: str, method: str = "GET", **headers: str) -> tuple[int, str]:
    connection = http.client.HTTPConnection(server.address.host, server.address.port, timeout=30)
    try:
        connection.request(method, path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def test_a_query_is_seen_from_outside(session: Session) -> None:
    server = session.serve_metrics("127.0.0.1:0")
    session.monitor.look()
    code, text = get(server, "/metrics")
    assert code == 200 and value(parsed(text), "transom_sink_rows_total", query="all of it") == 2
    code, text = get(server, "/status?query=all%20of%20it")
    (of_query,) = json.loads(text)["queries"]
    assert (code, of_query["state"], of_query["rows_in"], of_query["inputs"][0]["rejected"]) == (200, "finished", 2, 1)
    assert json.loads(get(server, "/status?query=other")[1]) == {"queries": []}
    code, text = get(server, "/history?seconds=60")
    assert code == 200 and len(json.loads(text)["all of it"]["time"]) >= 1


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "[", "a@localhost", ""])
def test_a_foreign_name_that_leads_here_is_rejected(session: Session, host: str) -> None:
    """As a page does whose name somebody points at this machine."""
    assert get(session.serve_metrics("127.0.0.1:0"), "/metrics", Host=host)[0] == 403


@pytest.mark.parametrize("path", ["/", "/status/../../etc/passwd", "/etc/passwd", "//[", "/history?seconds=-1"])
def test_there_is_nothing_else(session: Session, path: str) -> None:
    code, text = get(session.serve_metrics("127.0.0.1:0"), path)
    assert code in (400, 404) and "root" not in text


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS"])
def test_nothing_can_be_changed(session: Session, method: str) -> None:
    assert get(session.serve_metrics("127.0.0.1:0"), "/status", method)[0] == 501


def test_it_listens_on_this_machine_alone(session: Session) -> None:
    assert session.serve_metrics("0").address.host == "127.0.0.1"


def test_a_port_that_is_taken_is_a_kind_error(session: Session) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        with pytest.raises(OptionError, match=r"cannot listen on 127.0.0.1:[0-9]+"):
            session.serve_metrics(f"127.0.0.1:{other.getsockname()[1]}")


@pytest.mark.parametrize("text", ["query.cql", "127.0.0.1:70000", "a:b", "1:2:x", "../x", "localhost:-1", ""])
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(OptionError, match="no address"):
        Address.read(text, 9464)


def test_it_is_closed_with_its_session(session: Session) -> None:
    server = session.serve_metrics("127.0.0.1:0")
    session.close()
    with pytest.raises(OSError):
        get(server, "/metrics")
