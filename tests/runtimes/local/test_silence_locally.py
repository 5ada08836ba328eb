"""Time that goes on while nothing comes, in this process: what expires is reported, and nothing is done in between."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.runtimes.local.readings import at
from transom.core.time import SECOND, from_datetime
from transom.program.checkpoint_folder import STATE
from transom.program.clock import HeldClock
from transom.runtimes.local.intake import POLL, Intake
from transom.runtimes.local.query import LocalQuery
from transom.runtimes.local.run import LocalRun
from transom.session import Session, workspace_of

BEATS = "CREATE STREAM beats (host VARCHAR) WITH (connector = 'memory', time = 'arrival');"
DEAD = "DSTREAM(SELECT DISTINCT host FROM beats [RANGE 5 SECONDS])"
ORDERS = """
    SET batch_rows = 2;
    CREATE STREAM orders (ts TIMESTAMP, id INTEGER, WATERMARK FOR ts AS ts) WITH (connector = 'memory');
    CREATE STREAM refunds (ts TIMESTAMP, id INTEGER, WATERMARK FOR ts AS ts - INTERVAL '2' SECOND)
        WITH (connector = 'memory', {0}, late = 'dead_letter');
"""
KEPT = "ISTREAM(SELECT id FROM orders [NOW] EXCEPT SELECT id FROM refunds [RANGE 1 HOUR])"
BY_THE_CLOCK = ["heartbeat = '1 SECOND'", "idle = '10 SECONDS'"]


class Followed:
    """A run that follows its inputs by a clock that the test holds; `restart` resumes from its checkpoint."""

    def __init__(self, declared: str, text: str, folder: Path | None = None, **run_options: Any) -> None:
        self.session, self.clock = Session(), HeldClock(from_datetime(at(0)))
        self.session.execute(declared)
        self._again: Callable[[], Any] = lambda: workspace_of(self.session).assemble(
            workspace_of(self.session).prepare(text),
            follow=True,
            clock=self.clock,
            checkpoint=None if folder is None else str(folder / "kept"),
            **run_options,
        )
        self.run: Any = self._again()

    @property
    def query(self) -> LocalQuery:
        (query,) = self.run.queries
        assert isinstance(query, LocalQuery)
        return query

    def steps(self) -> int:
        """Until there is nothing to do for now."""
        count = 0
        while self.run.step():
            count += 1
        return count

    def sleep(self, seconds: float) -> int:
        self.clock.sleep(round(seconds * SECOND))
        return self.steps()

    def send(self, name: str, *rows: dict[str, Any]) -> None:
        self.session.append(name, list(rows))
        self.sleep(POLL / SECOND)

    def restart(self) -> None:
        self.run.close()
        self.run = self._again()
        self.steps()

    def answer(self) -> list[Any]:
        return [tuple(row.values())[1] for query in self.run.queries for row in query.table().to_pylist()]

    def late(self, name: str) -> int:
        return {one.name: one.late for one in self.query.status().inputs}[name]


# --- arrival ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("partitions", [1, 3])
def test_a_host_that_falls_silent_is_reported_though_nothing_comes(partitions: int) -> None:
    followed = Followed(f"SET partitions = {partitions}; {BEATS}", DEAD)
    followed.send("beats", {"host": "a"}, {"host": "b"})
    followed.sleep(4)
    assert followed.answer() == []
    followed.sleep(1.1)
    assert sorted(followed.answer()) == ["a", "b"]


@pytest.mark.parametrize("partitions", [1, 3])
@pytest.mark.parametrize("emit", ["changes", "latest"])
def test_nothing_is_done_while_nothing_is_due(emit: Any, partitions: int, tmp_path: Path) -> None:
    declared = f"SET partitions = {partitions}; {BEATS}"
    followed = Followed(declared, "SELECT DISTINCT host FROM beats [RANGE 5 SECONDS]", tmp_path, emit=emit)
    followed.send("beats", {"host": "a"})
    followed.run.commit()
    (tmp_path / "kept" / STATE).unlink()
    before = followed.query.status()
    assert [followed.sleep(0.5) for _ in range(8)] == [0] * 8
    after = followed.query.status()
    assert after.steps == before.steps and not (tmp_path / "kept" / STATE).exists(), "nor is anything saved"
    assert after.progress >= before.progress + 4 * SECOND - POLL, "but time goes on"
    assert followed.sleep(2) == 1
    assert [followed.sleep(0.5) for _ in range(8)] == [0] * 8


def test_a_restart_tells_what_expired_meanwhile_and_tells_it_once(tmp_path: Path) -> None:
    followed = Followed(BEATS, DEAD, tmp_path)
    followed.send("beats", {"host": "a"})
    followed.sleep(3)
    followed.restart()
    assert followed.answer() == []
    followed.clock.sleep(3600 * SECOND)
    followed.restart()
    assert followed.answer() == ["a"]
    followed.restart()
    assert followed.answer() == []


def test_a_run_that_does_not_follow_its_input_stands_where_its_rows_ended(tmp_path: Path) -> None:
    session, clock = Session(), HeldClock(from_datetime(at(0)))
    session.execute(BEATS)
    session.append("beats", [{"host": "a"}])
    planned = workspace_of(session).prepare("SELECT host FROM beats [RANGE 5 SECONDS]")
    run = workspace_of(session).assemble(planned, clock=clock, end=False, checkpoint=str(tmp_path))
    assert isinstance(run, LocalRun)
    run.step()
    clock.sleep(60 * SECOND)
    run.step()
    assert run.status()[0].progress == from_datetime(at(0)) + 1


def test_queries_that_share_a_join_are_reported_of_silence() -> None:
    declared = "".join(f"CREATE STREAM {n} (k INTEGER) WITH (connector = 'memory', time = 'arrival');" for n in "ab")
    text = "".join(
        f"DSTREAM(SELECT a.k FROM a [RANGE {n} SECONDS], b [RANGE {n} SECONDS] WHERE a.k = b.k);" for n in (5, 9)
    )
    followed = Followed(declared, text)
    assert len(followed.run.jobs) == 1
    followed.send("a", {"k": 1})
    followed.send("b", {"k": 1})
    assert [followed.sleep(0.5) for _ in range(8)] == [0] * 8 and followed.answer() == []
    followed.sleep(2)
    assert followed.answer() == [1]
    followed.sleep(9)
    assert followed.answer() == [1, 1]


# --- one of two inputs is silent -------------------------------------------------------------------------------------


@pytest.mark.parametrize("declared", BY_THE_CLOCK)
@pytest.mark.parametrize("restarted", [False, True])
def test_orders_go_on_though_no_refund_comes_for_an_hour(declared: str, restarted: bool, tmp_path: Path) -> None:
    followed = Followed(ORDERS.format(declared), KEPT, tmp_path)
    followed.send("orders", {"ts": at(1), "id": 1})
    followed.send("refunds", {"ts": at(1), "id": 1})
    reported: list[int] = []
    for minute in range(1, 60):
        followed.clock.sleep(60 * SECOND)
        if restarted and minute % 20 == 0:
            reported += followed.answer()
            followed.restart()
        followed.send("orders", {"ts": at(60 * minute), "id": minute + 1})
    reported += followed.answer()
    assert reported == list(range(2, 60)), "the last one waits for what else may happen at its time"
    # What the clock said is not taken back, so a refund of then is late.
    followed.sleep(60)
    followed.send("refunds", {"ts": at(60), "id": 2})
    assert followed.late("refunds") == 1
    reason = "late" if "heartbeat" in declared else "idle"
    (only,) = followed.session.dead_letters.to_pylist()
    assert only["reason"].startswith(reason)


def test_without_them_they_wait() -> None:
    followed = Followed(ORDERS.format("rate = 1"), KEPT)
    followed.send("refunds", {"ts": at(1), "id": 1})
    followed.send("orders", {"ts": at(60), "id": 2})
    followed.sleep(3600)
    assert followed.answer() == [] and followed.query.status().held_back_by == "refunds"


@pytest.mark.parametrize("declared", BY_THE_CLOCK)
def test_what_came_while_nobody_ran_is_not_late(declared: str, tmp_path: Path) -> None:
    followed = Followed(ORDERS.format(declared), KEPT, tmp_path)
    followed.send("orders", {"ts": at(1), "id": 1})
    followed.send("refunds", {"ts": at(1), "id": 1})
    followed.sleep(1)
    followed.run.close()
    minutes = range(1, 30)
    for name in ("orders", "refunds"):
        followed.session.append(name, [{"ts": at(60 * n), "id": n if name == "orders" else n + 50} for n in minutes])
    followed.clock.sleep(3600 * SECOND)
    followed.restart()
    assert (followed.late("orders"), followed.late("refunds")) == (0, 0)
    followed.sleep(30)
    assert followed.answer() == [*minutes][1:-1], "the first was refunded, the last waits for what else is of its time"


def test_streams_that_are_all_silent_are_left_behind_as_well() -> None:
    declared = ORDERS.format("idle = '10 SECONDS'").replace("'memory')", "'memory', idle = '10 SECONDS')")
    followed = Followed(declared, KEPT)
    followed.send("refunds", {"ts": at(1), "id": 1})
    followed.send("orders", {"ts": at(1), "id": 1}, {"ts": at(60), "id": 2})
    assert followed.answer() == []
    followed.sleep(10)
    assert followed.answer() == [] and followed.query.status().progress == from_datetime(at(60))


def test_time_does_not_go_back_when_a_run_is_stopped_in_silence(tmp_path: Path) -> None:
    declared = """CREATE STREAM s (ts TIMESTAMP, k INTEGER, WATERMARK FOR ts AS ts - INTERVAL '1' SECOND)
        WITH (connector = 'memory', heartbeat = '1 SECOND', late = 'dead_letter')"""
    followed = Followed(declared, "ISTREAM(SELECT k FROM s [RANGE 2 SECONDS])", tmp_path, every=1)
    followed.send("s", {"ts": at(0), "k": 1})
    followed.sleep(20)
    followed.sleep(20)  # of which nothing comes
    reported = followed.query.status().progress
    followed.restart()
    assert followed.query.status().progress >= reported
    followed.send("s", {"ts": at(30), "k": 2})
    assert [(one.used, one.late) for one in followed.query.status().inputs] == [(1, 1)]
    followed.run.close()


def test_a_silent_stream_is_left_behind_though_another_takes_long_to_read(monkeypatch: pytest.MonkeyPatch) -> None:
    followed = Followed(
        """CREATE STREAM a (ts TIMESTAMP, k INTEGER, WATERMARK FOR ts AS ts) WITH (connector = 'memory');
CREATE STREAM b (ts TIMESTAMP, k INTEGER, WATERMARK FOR ts AS ts) WITH (connector = 'memory', idle = '1 SECOND');
        SET batch_rows = 1""",
        "ISTREAM(SELECT k FROM a [NOW] UNION ALL SELECT k FROM b [NOW])",
    )
    read = Intake.read

    def slow(intake: Intake, name: str) -> Any:
        found = read(intake, name)
        followed.clock.sleep(2 * POLL if name == "a" else 0)
        return found

    monkeypatch.setattr(Intake, "read", slow)
    followed.session.append("b", [{"ts": at(0), "k": 0}])
    followed.session.append("a", [{"ts": at(second), "k": second} for second in range(1, 40)])
    for _ in range(30):
        followed.run.step()
    assert len(followed.answer()) > 10
    followed.run.abort()


def test_a_change_that_is_rejected_in_silence_is_shown(tmp_path: Path) -> None:
    followed = Followed(
        """CREATE TABLE t (ts TIMESTAMP, c VARCHAR, k INTEGER, WATERMARK FOR ts AS ts - INTERVAL '5' SECOND)
            WITH (connector = 'memory', changes = 'c', heartbeat = '1 SECOND')""",
        "SELECT k FROM t",
        tmp_path,
        every=1,
    )
    followed.send("t", {"ts": at(0), "c": "+", "k": 1}, {"ts": at(1), "c": "-", "k": 9})
    before = followed.query.status().steps
    followed.sleep(20)
    status = followed.query.status()
    assert status.inputs[0].rejected == 1 and status.steps > before
    assert followed.session.dead_letters["reason"].to_pylist() == ["a '-' without its row"]
    followed.run.close()
