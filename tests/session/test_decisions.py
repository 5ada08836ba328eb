"""A query that resumes from a checkpoint is planned as it was, whatever would be decided by then."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from transom.core.errors import CheckpointError
from transom.kernels.multiway.statistics import Machine
from transom.planner.multiway_choice import MultiwayDecision, read_decisions, written
from transom.runtimes.local.query import LocalQuery
from transom.runtimes.local.run import LocalRun
from transom.session import Session, workspace_of

STREAMS = "abcd"
QUERY = """
    SELECT a.n, b.n AS bn, c.n AS cn, d.n AS dn
    FROM a [10 SECONDS], b [ROWS 7], c [10 SECONDS], d [10 SECONDS]
    WHERE a.k = b.k AND b.k = c.k AND c.k = d.k
"""
HEAVY = " AND ".join(
    f"upper(a.t) || {n}.t || lower(a.t) LIKE '%x%y%' AND {n}.t || a.t NOT LIKE 'q%z{i}'"
    for n in "bcd"
    for i in range(5)
)


def write(folder: Path) -> None:
    for i, name in enumerate(STREAMS):
        times = (datetime(2024, 5, 1) + timedelta(seconds=n + i / 10) for n in range(60))
        lines = [f"{time.isoformat()},{(n + i) % 12},{n},xxyy{n}" for n, time in enumerate(times)]
        (folder / f"{name}.csv").write_text("\n".join(["ts,k,n,t", *lines]) + "\n")


def assembled(folder: Path, where: str = "", rates: dict[str, float] | None = None, more: str = "") -> LocalRun:
    """The run in the folder, with a checkpoint after every third step."""
    session = Session(batch_rows=5)
    for name in STREAMS:
        rate = f", rate = {(rates or {})[name]}" if name in (rates or {}) else ""
        session.execute(f"""
            CREATE STREAM {name} (ts TIMESTAMP, k INTEGER, n INTEGER, t VARCHAR, WATERMARK FOR ts AS ts)
            WITH (connector = 'files', path = '{folder}/{name}.csv'{rate})
        """)
    session.execute(f"CREATE SINK out WITH (connector = 'files', path = '{folder}/out.csv', emit = 'changes')")
    planned = workspace_of(session).prepare(f"{more} INSERT INTO out {QUERY}{where}")
    run = workspace_of(session).assemble(planned, checkpoint=str(folder / "checkpoint"), end=True, every=3)
    assert isinstance(run, LocalRun)
    return run


def decisions(run: LocalRun) -> tuple[MultiwayDecision, ...]:
    (query,) = run.queries
    assert isinstance(query, LocalQuery)
    return query.job.planned.decisions


def stop_half_way(run: LocalRun) -> None:
    for _ in range(20):
        assert run.step()
    run.commit()
    run.abort()


def answer(folder: Path) -> list[str]:
    return sorted((folder / "out.csv").read_text().splitlines())


def on(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("transom.runtimes.local.runtime.this_machine", lambda: machine)


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    both = tmp_path / "broken", tmp_path / "whole"
    for folder in both:
        folder.mkdir()
        write(folder)
    return both


def test_another_number_of_cores_goes_on_with_the_plan_that_was(
    folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    broken, whole = folders
    heavy = f" AND {HEAVY}"
    on(Machine(cores=64, handover_us=1.0), monkeypatch)
    first = assembled(broken, heavy)
    assert decisions(first) == (MultiwayDecision("parallel_mjoin"),)
    stop_half_way(first)
    on(Machine(cores=1), monkeypatch)
    unbroken = assembled(whole, heavy)
    assert decisions(unbroken) != decisions(first)
    unbroken.run()
    second = assembled(broken, heavy)
    assert decisions(second) == (MultiwayDecision("parallel_mjoin"),)
    second.run()
    assert answer(broken) == answer(whole) and len(answer(whole)) > 40


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"a": 1, "b": 1, "c": 1, "d": 1}, {"a": 9000, "b": 1, "c": 1, "d": 1}),
        pytest.param(
            {"a": 1, "b": 1, "c": 9000, "d": 1}, {"a": 9000, "b": 1, "c": 1, "d": 1}, marks=pytest.mark.nightly
        ),
    ],
)
@pytest.mark.parametrize("more", ["", pytest.param("SET multiway = 'tree';", marks=pytest.mark.nightly)])
def test_other_statistics_go_on_with_the_plan_that_was(
    folders: tuple[Path, Path], before: dict[str, float], after: dict[str, float], more: str
) -> None:
    broken, whole = folders
    first = assembled(broken, rates=before, more=more)
    stop_half_way(first)
    unbroken = assembled(whole, rates=after, more=more)
    assert decisions(unbroken) != decisions(first)
    unbroken.run()
    second = assembled(broken, rates=after, more=more)
    assert decisions(second) == decisions(first)
    second.run()
    assert answer(broken) == answer(whole) and len(answer(whole)) > 40


def test_a_tactic_that_is_asked_for_against_the_checkpoint_is_rejected(folders: tuple[Path, Path]) -> None:
    broken, _ = folders
    stop_half_way(assembled(broken, more="SET multiway = 'mjoin';"))
    with pytest.raises(CheckpointError, match="with SET multiway mjoin for query 'out', and it is tree now"):
        assembled(broken, more="SET multiway = 'tree';")
    with pytest.raises(CheckpointError, match="was written by another query"):
        assembled(broken, where=" AND a.n < 50", more="SET multiway = 'mjoin';")
    assembled(broken, more="SET multiway = 'mjoin';").run()
    assert len(answer(broken)) > 40


def test_the_decisions_of_another_query_are_no_plan_for_this_one(folders: tuple[Path, Path]) -> None:
    broken, _ = folders
    run = assembled(broken)
    (query,) = run.queries
    assert isinstance(query, LocalQuery)
    odd: list[tuple[Any, ...]] = [("tree", ((0, 1), 2)), ("tree", None), ("quick", None), ("tree", (0, (0, (1, 2))))]
    for tactic, tree in odd:
        decided = query.job.planned.decided((MultiwayDecision(tactic, tree),))
        assert decided.decisions == query.job.planned.decided(()).decisions
    run.abort()
    assert read_decisions(written(query.job.planned.decisions)) == query.job.planned.decisions
    for text in ("", "{", "[1]", '[["tree", [[0], 1]]]', '[["tree", "x"]]'):
        with pytest.raises(CheckpointError, match="the plan in the checkpoint cannot be read"):
            read_decisions(text)
