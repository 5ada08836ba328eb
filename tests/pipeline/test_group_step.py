"""A step of queries that share a join: answers go out one by one, and what fails halfway is not gone on from."""

from __future__ import annotations

import weakref

import pyarrow as pa
import pytest

from tests.pipeline.test_group import CATALOGUE, answers, by_time, feed, spec
from transom.core.errors import CheckpointError
from transom.pipeline.group import GroupPipeline
from transom.pipeline.part import Part
from transom.pipeline.scheduled import ScheduledGroup
from transom.planner.scheduling import Schedule


def group_of(*seconds: int) -> GroupPipeline:
    group = GroupPipeline([spec(f"q{i}", by_time(i)) for i in seconds], CATALOGUE)
    feed(group.subplan, 0, 20)
    return group


def scheduled(budget: int) -> ScheduledGroup:
    """Every look at the clock takes a microsecond."""
    looks = iter(range(1_000_000))
    schedule = Schedule("mqt", "block", 5_000, budget)
    specs = [spec(f"q{i}", by_time(i).replace("s.k = t.k", "s.k < t.k")) for i in (3, 40, 9)]
    group = ScheduledGroup(specs, CATALOGUE, schedule, lambda: next(looks))
    feed(group.subplan, 0, 60)
    return group


@pytest.mark.parametrize("ordered", [False, True])
def test_an_answer_is_gone_before_the_next_is_made(ordered: bool) -> None:
    group = scheduled(50_000) if ordered else group_of(3, 40, 9)
    alive: list[weakref.ref[pa.RecordBatch]] = []
    made: list[list[int]] = []

    def emit_rows(index: int, rows: pa.RecordBatch) -> None:
        assert all(other() is None for other in alive)
        alive.append(weakref.ref(rows))
        made.append([i for i, runner in enumerate(group.runners) if runner.state.rows_out])

    assert group.advance(emit_rows)
    assert made == [[0], [0, 1], [0, 1, 2]]
    assert not group.advance(emit_rows) and len(made) == 3


def test_a_query_whose_work_waits_is_reported_nothing_and_stands_where_its_rows_were_written_up_to() -> None:
    group = scheduled(1)
    reported: list[int] = []
    passed = 0

    def reached() -> list[int | None]:
        return [group.progress_of(runner.spec.name) for runner in group.runners]

    def emit_rows(index: int, rows: pa.RecordBatch) -> None:
        assert reached()[index] == before[index]
        reported.append(index)

    before = reached()
    while group.advance(emit_rows):
        moved = [index for index, frontier in enumerate(reached()) if frontier != before[index]]
        assert sorted(reported) == moved
        passed += 0 < len(moved) < 3
        before = reached()
        reported.clear()
    assert passed and group.at_rest


def test_what_fails_halfway_is_neither_saved_nor_gone_on_from() -> None:
    expected = answers(group_of(5, 9))
    group = group_of(5, 9)
    saved = group.snapshot()

    def reject(index: int, rows: pa.RecordBatch) -> None:
        if index == 1:
            raise OSError("no room")

    with pytest.raises(OSError, match="no room"):
        group.advance(reject)
    with pytest.raises(CheckpointError, match="halfway"):
        group.snapshot()
    with pytest.raises(AssertionError):
        group.advance()
    group.restore(saved)
    assert answers(group) == expected and all(map(len, expected))
    group.snapshot()


def test_threads_begin_what_was_left_for_later_when_all_answers_are_out(monkeypatch: pytest.MonkeyPatch) -> None:
    group = group_of(5, 9)
    seen: list[object] = []
    monkeypatch.setattr(Part, "answered", lambda part: seen.append(part))
    group.advance(lambda index, rows: seen.append(index))
    assert seen == [0, 1, group.subplan.part, *(runner.part for runner in group.runners)]
    group.advance()
    assert len(seen) == 5  # time has not gone on
