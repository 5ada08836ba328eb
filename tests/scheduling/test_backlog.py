"""The backlog, which never looks at a row, does what a scheduler that looks at every row does."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.profile import examples
from transom.scheduling import backlog as module
from transom.scheduling.backlog import Backlog, WorkRun
from transom.scheduling.load import LoadMethod

ENDS = (1, 3, 4)


@dataclass
class EveryRow:
    """Row by row: (moment, side, number) -> queries done."""

    done: dict[tuple[int, int, int], int] = field(default_factory=dict)
    counts: list[int] = field(default_factory=lambda: [0, 0])
    moment: int = 0
    processed: int = 0
    shed: int = 0

    def arrive(self, rows: list[int]) -> None:
        for side, count in enumerate(rows):
            for _ in range(count):
                self.done[self.moment, side, self.counts[side]] = 0
                self.counts[side] += 1
        self.moment += 1

    def leave(self, side: int, target: int) -> int:
        gone = [row for row in self.done if row[1] == side and row[2] < target]
        shed = sum(ENDS[-1] - self.done.pop(row) for row in gone)
        self.shed += shed
        return shed

    def next(self, method: LoadMethod) -> tuple[int, int, int, int] | None:
        """Side, row, queries done and to be done."""
        open_rows = sorted(row for row, done in self.done.items() if done < ENDS[-1])
        if not open_rows:
            return None
        row = open_rows[0] if method is LoadMethod.FIFO else min(open_rows, key=lambda row: self.done[row])
        target = ENDS[-1] if method is LoadMethod.FIFO else next(end for end in ENDS if end > self.done[row])
        done, self.done[row] = self.done[row], target
        self.processed += target - done
        return row[1], row[2], done, target


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("arrive"), st.tuples(st.integers(0, 3), st.integers(0, 3))),
        st.tuples(st.just("leave"), st.tuples(st.integers(0, 1), st.integers(0, 4))),
        st.tuples(st.sampled_from([LoadMethod.FIFO, LoadMethod.MQT]), st.tuples(st.integers(1, 6), st.just(0))),
    ),
    max_size=30,
)


@given(STEPS)
@settings(max_examples=examples(by_day=60, at_night=750), deadline=None)
def test_it_does_what_row_by_row_would_do(steps: list[tuple[str, tuple[int, int]]]) -> None:
    backlog, every = Backlog.empty(ENDS, 2), EveryRow()
    for what, (a, b) in steps:
        if what == "arrive":
            backlog.arrive([a, b])
            every.arrive([a, b])
        elif what == "leave":
            target = min(backlog.sides[a].left + b, backlog.sides[a].arrived)
            reported = backlog.leave(a, target)
            assert sum(run.rows * (run.target - run.done) for run in reported) == every.leave(a, target)
        else:
            do(backlog, every, LoadMethod(what), a)
        assert sum(backlog.processed) == every.processed
        assert sum(backlog.shed) == every.shed
        assert sum(backlog.due) == sum(backlog.processed) + sum(backlog.shed) + sum(backlog.pending)


def do(backlog: Backlog, every: EveryRow, method: LoadMethod, rows: int) -> None:
    while rows:
        run = backlog.oldest_first() if method is LoadMethod.FIFO else backlog.best_first()
        if run is None:
            assert every.next(method) is None
            return
        run = run.cut(rows)
        assert run.rows > 0
        for row in range(run.first, run.stop):
            assert every.next(method) == (run.side, row, run.done, run.target)
        backlog.did(run)
        rows -= run.rows


def test_moments_are_forgotten_and_the_order_is_not() -> None:
    backlog = Backlog.empty((1,), 2)
    kept = module._MOMENTS_KEPT
    for _ in range(3 * kept):
        backlog.arrive([1, 1])
        for side in (0, 1):
            assert backlog.oldest_first() == WorkRun(
                side, backlog.sides[side].arrived - 1, backlog.sides[side].arrived, 0, 1
            )
            backlog.did(backlog.oldest_first() or WorkRun(0, 0, 0, 0, 0))
    assert len(backlog.sides[0].came) <= 2 * kept + 1
    backlog.arrive([2, 0])
    backlog.arrive([0, 2])
    assert [backlog.sides[0].arrived, backlog.sides[1].arrived] == [3 * kept + 2, 3 * kept + 2]
    assert backlog.oldest_first() == WorkRun(0, 3 * kept, 3 * kept + 2, 0, 1)


def test_settled_rows_have_nothing_due() -> None:
    backlog = Backlog.empty(ENDS, 2)
    backlog.arrive([5, 5], settled=True)
    assert backlog.oldest_first() is None
    assert backlog.recent == [0, 0]
    backlog.arrive([1, 0])
    assert backlog.best_first() == WorkRun(0, 5, 6, 0, 1)
    assert sum(backlog.due) == ENDS[-1]
    assert list(backlog.waiting_in(0, 0, 6)) == [1, 1, 1]


def test_a_depth_of_more_groups_than_are_left() -> None:
    """Queries have left since the policy decided it."""
    backlog = Backlog.empty([1], 2)
    backlog.arrive([2, 0])
    assert backlog.oldest_first(depth=3) == WorkRun(side=0, first=0, stop=2, done=0, target=1)
