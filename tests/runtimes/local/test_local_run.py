from __future__ import annotations

import os
import signal
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.runtimes.local.readings import QUERY, at, declarations, read_rows, sink, start, write_inputs
from transom.connectors.files_sink import FileSink
from transom.connectors.tapped import TappedSink
from transom.core.errors import CheckpointError, SinkError, SourceError
from transom.program.clock import HeldClock
from transom.runtimes.local.intake import POLL
from transom.runtimes.local.run import LocalRun
from transom.session import Session, workspace_of

SECOND_QUERY = "SELECT room, COUNT(*) AS n FROM heat [RANGE 10 SECONDS] GROUP BY room"


def two_queries(folder: Path, out: Path, one: str = "one.csv", two: str = "two", emit: str = "changes") -> str:
    query = QUERY.replace("RANGE 5 SECONDS", "ROWS 6") if emit == "latest" else QUERY  # something is alive at the end
    return (
        declarations(folder, "csv")
        + sink(out, one, emit).replace("out WITH", "one WITH")
        + sink(out, two).replace("out WITH", "two WITH")
        + f"INSERT INTO one {query}; INSERT INTO two {SECOND_QUERY}"
    )


def crash(run: LocalRun) -> None:
    """The process is gone: nothing is tidied up, but the files that it held are closed."""
    assert run._checkpoint is not None
    run._checkpoint.release()
    for query in run.queries:
        for each in query.output.sinks:
            assert isinstance(each.sink, TappedSink)
            sink = each.sink._sink
            if isinstance(sink, FileSink) and sink._writer is not None:
                sink._writer.abort()


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What a run that nothing happens to writes, by the emit of its first query."""
    found: dict[str, Any] = {}
    for emit in ("changes", "latest"):
        folder = tmp_path_factory.mktemp("unbroken")
        write_inputs(folder, "csv")
        run = start(two_queries(folder, folder, emit=emit), dead_letters=str(folder / "side"))
        run.run()
        found[emit] = (read_rows(folder / "one.csv"), read_rows(folder / "two"))
    assert len(found["changes"][0]) > 20 and len(found["changes"][1]) > 20 and found["latest"][0]
    return found


@pytest.mark.parametrize("emit", ["changes", "latest"])
@pytest.mark.parametrize("every", [pytest.param(2, marks=pytest.mark.nightly), 5])
def test_a_run_that_crashes_after_any_step_goes_on_from_its_checkpoint(
    tmp_path: Path, unbroken: dict[str, Any], emit: str, every: int
) -> None:
    write_inputs(tmp_path, "csv")
    text = two_queries(tmp_path, tmp_path, emit=emit)
    steps = 0
    while True:
        run = start(text, checkpoint=str(tmp_path / "kept"), end=True, every=every)
        before = [status.steps for status in run.status()]
        for _ in range(every + 1):  # one more than is kept
            if not run.step():
                break
        if run.finished:
            run.run()
            break
        assert sum(status.steps for status in run.status()) == sum(before) + every + 1
        steps += every
        crash(run)
    assert steps >= 20
    assert (read_rows(tmp_path / "one.csv"), read_rows(tmp_path / "two")) == unbroken[emit]


@pytest.mark.parametrize("emit", ["changes", "latest"])
@pytest.mark.parametrize(
    "moment",
    [
        "after the checkpoint",
        "while one file is made",
        pytest.param("before the checkpoint", marks=pytest.mark.nightly),
    ],
)
def test_a_run_that_crashes_while_it_settles(
    tmp_path: Path, unbroken: dict[str, Any], moment: str, emit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is written is on disk before the checkpoint counts it, and is shown after it."""

    class Gone(BaseException):
        pass

    def gone(*_: object, **__: object) -> None:
        raise Gone

    write_inputs(tmp_path, "csv")
    text = two_queries(tmp_path, tmp_path, emit=emit)
    for turn in range(6):
        run = start(text, checkpoint=str(tmp_path / "kept"), end=True, every=1_000)
        for _ in range(5 if turn < 5 else 1_000):
            run.step()
        with monkeypatch.context() as patch:
            if moment == "before the checkpoint":
                patch.setattr("transom.program.checkpoint_folder.CheckpointFolder.write", gone)
            elif moment == "after the checkpoint":
                patch.setattr("transom.runtimes.local.job.LocalJob.commit", gone)
            else:
                patch.setattr("transom.connectors.file_target.shutil.rmtree", gone)
            with pytest.raises(Gone):
                run.close()
        crash(run)
        if moment == "before the checkpoint":
            assert not (tmp_path / "one.csv").exists()
            again = start(text, checkpoint=str(tmp_path / "kept"), end=True)
            assert sum(status.steps for status in again.status()) == 0
            crash(again)
    start(text, checkpoint=str(tmp_path / "kept"), end=True).run()
    assert (read_rows(tmp_path / "one.csv"), read_rows(tmp_path / "two")) == unbroken[emit]


def test_a_finished_run_may_be_run_again_and_changes_nothing(tmp_path: Path, unbroken: dict[str, Any]) -> None:
    write_inputs(tmp_path, "csv")
    for emit in ("changes", "latest"):
        out = tmp_path / emit
        text = two_queries(tmp_path, out, emit=emit)
        for _ in range(3):
            run = start(text, checkpoint=str(out / "kept"), end=True)
            run.run()
            assert (read_rows(out / "one.csv"), read_rows(out / "two")) == unbroken[emit]


def test_rejected_rows_are_written_once_through_crashes(tmp_path: Path) -> None:
    write_inputs(tmp_path, "csv")
    for row, text in ((5, "x"), (9, "y"), (12, "z")):
        path = tmp_path / "heat" / "1.csv"
        lines = path.read_text().splitlines()
        lines[row] = lines[row].rpartition(",")[0] + "," + text
        path.write_text("\n".join(lines) + "\n")
    query = declarations(tmp_path, "csv") + sink(tmp_path, "out") + "INSERT INTO out " + QUERY
    while True:
        run = start(query, checkpoint=str(tmp_path / "kept"), end=True, every=2, dead_letters=str(tmp_path / "side"))
        for _ in range(3):
            run.step()
        if run.finished:
            run.run()
            break
        crash(run)
    rows = read_rows(tmp_path / "side" / "out")
    assert [row[2] for row in rows] == ["1.csv, line 6", "1.csv, line 10", "1.csv, line 13"]
    assert [row[1].rpartition(" ")[2] for row in rows] == ["'x'", "'y'", "'z'"]


def test_queries_take_turns(tmp_path: Path) -> None:
    write_inputs(tmp_path, "csv")
    run = start(two_queries(tmp_path, tmp_path))
    while run.step():
        one, two = run.status()
        if not one.finished and not two.finished:
            assert abs(one.steps - two.steps) <= 1
    assert run.finished
    run.close()


def test_an_interrupted_run_shows_what_it_has_and_can_go_on(tmp_path: Path, unbroken: dict[str, Any]) -> None:
    write_inputs(tmp_path, "csv")
    text = two_queries(tmp_path, tmp_path)
    seen = 0

    def interrupt(run: LocalRun) -> None:
        nonlocal seen
        seen += 1
        if seen == 20:
            signal.raise_signal(signal.SIGINT)
        assert seen <= 20, "the run goes on after Ctrl-C"

    with pytest.raises(KeyboardInterrupt):
        start(text, checkpoint=str(tmp_path / "kept"), end=True).run(interrupt)
    so_far = read_rows(tmp_path / "one.csv")
    assert 0 < len(so_far) < len(unbroken["changes"][0])
    assert so_far == unbroken["changes"][0][: len(so_far)]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    again = start(text, checkpoint=str(tmp_path / "kept"), end=True, every=5)  # goes on, and crashes before it ends
    for _ in range(7):
        again.step()
    crash(again)
    start(text, checkpoint=str(tmp_path / "kept"), end=True).run()
    assert (read_rows(tmp_path / "one.csv"), read_rows(tmp_path / "two")) == unbroken["changes"]


def test_a_run_in_another_thread_needs_no_signals(tmp_path: Path, unbroken: dict[str, Any]) -> None:
    write_inputs(tmp_path, "csv")
    thread = threading.Thread(target=start(two_queries(tmp_path, tmp_path)).run)
    thread.start()
    thread.join()
    assert read_rows(tmp_path / "one.csv") == unbroken["changes"][0]


def test_a_run_that_fails_leaves_what_was_settled(tmp_path: Path, unbroken: dict[str, Any]) -> None:
    write_inputs(tmp_path, "csv")
    text = two_queries(tmp_path, tmp_path, one="one")
    run = start(text, checkpoint=str(tmp_path / "kept"), end=True, every=4)
    for _ in range(20):
        run.step()
    os.rename(tmp_path / "smoke.csv", tmp_path / "gone.csv")
    with pytest.raises(SourceError):
        run.run()
    so_far = read_rows(tmp_path / "one")
    assert so_far and so_far == unbroken["changes"][0][: len(so_far)]
    os.rename(tmp_path / "gone.csv", tmp_path / "smoke.csv")
    start(text, checkpoint=str(tmp_path / "kept"), end=True).run()
    assert read_rows(tmp_path / "one") == unbroken["changes"][0]


def test_a_checkpoint_is_for_one_run_at_a_time_and_for_its_own_queries(tmp_path: Path) -> None:
    write_inputs(tmp_path, "csv")
    text = two_queries(tmp_path, tmp_path)
    run = start(text, checkpoint=str(tmp_path / "kept"), end=True)
    run.step()
    with pytest.raises(CheckpointError, match="in use by another run"):
        start(text, checkpoint=str(tmp_path / "kept"), end=True)
    run.close()
    with pytest.raises(CheckpointError, match="other queries"):
        start(text.rpartition(";")[0], checkpoint=str(tmp_path / "kept"), end=True)
    with pytest.raises(CheckpointError, match="another query"):
        start(text.replace("10 SECONDS", "11 SECONDS"), checkpoint=str(tmp_path / "kept"), end=True)


def test_a_damaged_checkpoint_is_never_taken_for_a_good_one(tmp_path: Path) -> None:
    write_inputs(tmp_path, "csv")
    text = two_queries(tmp_path, tmp_path)
    run = start(text, checkpoint=str(tmp_path / "kept"), end=True, every=1)
    for _ in range(9):
        run.step()
    crash(run)
    path = tmp_path / "kept" / "checkpoint.arrow"
    whole = path.read_bytes()
    for damaged in (b"", whole[:100], whole[: len(whole) - 9], b"x" * 400):
        path.write_bytes(damaged)
        with pytest.raises(CheckpointError):
            start(text, checkpoint=str(tmp_path / "kept"), end=True)
    path.write_bytes(whole)
    again = start(text, checkpoint=str(tmp_path / "kept"), end=True)
    assert sum(status.steps for status in again.status()) == 9
    again.close()


def test_a_checkpoint_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    write_inputs(tmp_path, "csv")
    with pytest.raises(CheckpointError, match="cannot use"):
        start(two_queries(tmp_path, tmp_path), checkpoint=str(tmp_path / "file" / "kept"))


def test_a_followed_run_shows_its_rows_whenever_it_falls_silent() -> None:
    session, clock = Session(), Stopping(HeldClock(), after=3)
    session.stream("s", [{"ts": at(i), "a": i} for i in range(3)], time="ts")
    run = workspace_of(session).assemble(
        workspace_of(session).prepare("ISTREAM(SELECT a FROM s)"), follow=True, clock=clock
    )
    assert isinstance(run, LocalRun)
    clock.watched = run
    with pytest.raises(KeyboardInterrupt):
        run.run()
    assert clock.rows == [2, 2, 2]
    assert not run.finished


class Patient(HeldClock):
    """A clock by which a run sleeps until somebody wakes it."""

    def __init__(self) -> None:
        super().__init__()
        self.asleep = threading.Event()

    def sleep(self, micros: int, woken: threading.Event | None = None) -> None:
        assert woken is not None
        self.asleep.set()
        assert woken.wait(60), "nobody has woken the run"


def test_what_is_requested_of_a_run_that_sleeps_is_done_at_once() -> None:
    session, clock = Session(), Patient()
    session.stream("s", [{"ts": at(i), "a": i} for i in range(3)], time="ts")
    run = workspace_of(session).assemble(
        workspace_of(session).prepare("ISTREAM(SELECT a FROM s)"), follow=True, clock=clock
    )
    assert isinstance(run, LocalRun)
    thread = threading.Thread(target=run.run)
    thread.start()
    for work in (lambda: None, run.stop):
        assert clock.asleep.wait(60)
        clock.asleep.clear()
        run.submit(work).result(timeout=60)
    thread.join(60)
    assert not thread.is_alive()


class Stopping:
    """A clock that looks at the answer whenever the run sleeps, and in the end presses Ctrl-C."""

    def __init__(self, clock: HeldClock, after: int) -> None:
        self._clock = clock
        self._after = after
        self.watched: LocalRun | None = None
        self.rows: list[int] = []

    def now(self) -> int:
        return self._clock.now()

    def sleep(self, micros: int, woken: threading.Event | None = None) -> None:
        assert micros == POLL
        self._clock.sleep(micros)
        assert self.watched is not None and self.watched._uncommitted == 0
        self.rows.append(len(self.watched.queries[0].table()))
        if len(self.rows) == self._after:
            signal.raise_signal(signal.SIGINT)


def test_a_sink_that_cannot_be_written_fails_the_run(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    write_inputs(tmp_path, "csv")
    with pytest.raises(SinkError, match="cannot be written"):
        start(two_queries(tmp_path, tmp_path, one="file/one.csv")).run()
