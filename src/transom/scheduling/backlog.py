"""What is still to be done: for every group of queries, the rows that wait for it.

Older rows are never behind younger ones: FIFO finishes the oldest row, MQT takes a group's oldest. So all there is to
know of a side is, for each group, the first row that it was not done for; and a run of many rows is one step.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

_MOMENTS_KEPT: Final = 1_024


@dataclass(frozen=True)
class WorkRun:
    """Rows `first` to `stop` of a side, all with `done` queries done, to be taken up to `target` queries, one by
    one."""

    side: int
    first: int
    stop: int
    done: int
    target: int

    @property
    def rows(self) -> int:
        return self.stop - self.first

    def cut(self, rows: int) -> WorkRun:
        """The first so many rows of it."""
        return WorkRun(self.side, self.first, min(self.stop, self.first + rows), self.done, self.target)


@dataclass
class BacklogSide:
    """Rows are numbered as they come. `waiting[g]` is the first row that group g was not done for."""

    waiting: list[int]
    arrived: int = 0
    left: int = 0
    came: list[int] = field(default_factory=list)  # rows so far, after each moment that is remembered


@dataclass
class Backlog:
    """The sides of a join; `ends` are the ends of the groups. The counts are of (row, query) pairs, one a group."""

    ends: list[int]
    sides: list[BacklogSide]
    due: list[int]
    processed: list[int]
    shed: list[int]
    recent: list[int]  # rows of each side that came since the load was last measured

    @classmethod
    def empty(cls, ends: Sequence[int], sides: int) -> Backlog:
        due, processed, shed = ([0] * len(ends) for _ in range(3))
        return cls(list(ends), [BacklogSide([0] * len(ends)) for _ in range(sides)], due, processed, shed, [0] * sides)

    @property
    def pending(self) -> list[int]:
        """Counted from the rows, not from the other counts."""
        sizes = self._sizes()
        return [
            size * sum(side.arrived - side.waiting[group] for side in self.sides) for group, size in enumerate(sizes)
        ]

    def arrive(self, rows: Sequence[int], settled: bool = False) -> None:
        """One moment: so many rows of each side. Rows that are `settled` have nothing due."""
        for number, (side, count) in enumerate(zip(self.sides, rows, strict=True)):
            side.arrived += count
            side.came.append(side.arrived)
            if settled:
                side.waiting = [side.arrived] * len(self.ends)
            else:
                self.recent[number] += count
        if not settled:
            for group, size in enumerate(self._sizes()):
                self.due[group] += size * sum(rows)
        if len(self.sides[0].came) > 2 * _MOMENTS_KEPT:
            self._forget_moments()

    def leave(self, number: int, target: int) -> list[WorkRun]:
        """Rows of a side before `target` are gone. What was still to be done for them is shed, and reported."""
        side = self.sides[number]
        side.left = max(side.left, target)
        runs_found = []
        for group, (begin, end) in enumerate(zip((0, *self.ends), self.ends, strict=False)):
            first = side.waiting[group]
            if first < target:
                self.shed[group] += (end - begin) * (target - first)
                side.waiting[group] = target
                runs_found.append(WorkRun(number, first, target, begin, end))
        return runs_found

    def did(self, run: WorkRun) -> None:
        """All of this run was done."""
        waiting, begin = self.sides[run.side].waiting, run.done
        for group in range(bisect_right(self.ends, run.done), bisect_right(self.ends, run.target)):
            waiting[group] = run.stop
            self.processed[group] += (self.ends[group] - begin) * run.rows
            begin = self.ends[group]

    def oldest_first(self, depth: int = 0) -> WorkRun | None:
        """The oldest row with anything to do, all of it; and the rows after it for which the same holds.

        With a depth only so many groups of every row, and the rest when all rows have them. There may be fewer groups
        than that: queries leave, and the policy decides anew only when the interval is over.
        """
        last = min(depth or len(self.ends), len(self.ends)) - 1
        heads = [
            (number, side.waiting[last], side.arrived)
            for number, side in enumerate(self.sides)
            if side.waiting[last] < side.arrived
        ]
        head = self._oldest(heads)
        if head is None:
            return self.oldest_first() if depth else None
        number, first, stop = head
        done = 0
        for end, reached in zip(self.ends, self.sides[number].waiting, strict=True):
            if reached <= first:
                break
            done, stop = end, min(stop, reached)
        return WorkRun(number, first, stop, done, self.ends[last])

    def best_first(self) -> WorkRun | None:
        """The first group that any row waits for, oldest row first."""
        for group, end in enumerate(self.ends):
            heads = []
            for number, side in enumerate(self.sides):
                stop = side.waiting[group - 1] if group else side.arrived
                if side.waiting[group] < stop:
                    heads.append((number, side.waiting[group], stop))
            head = self._oldest(heads)
            if head is not None:
                return WorkRun(*head, self.ends[group - 1] if group else 0, end)
        return None

    def waiting_in(self, number: int, first: int, stop: int) -> Iterator[int]:
        """For each group, how many of these rows wait for it."""
        for reached in self.sides[number].waiting:
            yield max(0, stop - max(first, reached))

    def _sizes(self) -> list[int]:
        return [end - begin for begin, end in zip((0, *self.ends), self.ends, strict=False)]

    def _oldest(self, heads: list[tuple[int, int, int]]) -> tuple[int, int, int] | None:
        """Of (side, first, stop) the one whose first row came first, up to the first row of another.

        Of one moment, the rows of the first side go first.
        """
        if len(heads) < 2:
            return heads[0] if heads else None
        first_heads = sorted((bisect_right(self.sides[head[0]].came, head[1]), *head) for head in heads)
        (_, number, first, stop), (moment, other, *_) = first_heads[:2]
        came = self.sides[number].came
        before = came[moment] if number < other else came[moment - 1]
        return number, first, min(stop, before)

    def _forget_moments(self) -> None:
        """Moments that no waiting row came at; the last of them stays, to say where the next begins."""
        old = min(bisect_right(side.came, side.waiting[-1]) for side in self.sides) - 1
        if old > 0:
            for side in self.sides:
                del side.came[:old]
