"""The lazily sorted set and the waiting rows: everything leaves once, in the step that passes its end."""

from __future__ import annotations

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kernels.stepping import ints
from transom.core.delta import NO_HOLDER, Ends
from transom.core.time import FOREVER
from transom.kernels.lifetimes import LifetimeSet
from transom.pipeline.registry import STATE_CLASSES
from transom.state import codec


@settings(max_examples=80)
@given(st.integers(0, 10**9))
def test_rows_leave_when_their_end_is_passed(seed: int) -> None:
    random = Random(seed)
    rows = LifetimeSet()
    ends: dict[int, int] = {}  # slot -> known end
    waits: dict[int, int] = {}  # slot -> holder
    free, unused_holders = list(range(200)), list(range(40))
    random.shuffle(free)
    now = 0
    for _ in range(20):
        now += random.choice([1, 1, 3, 10])
        open_holders = sorted(set(waits.values()))
        closing = {h: random.randrange(now) for h in open_holders if random.random() < 0.3}
        closing |= {999: 1} if random.random() < 0.3 else {}  # somebody else's
        told = Ends.of(ints(closing), ints(closing.values()))
        told += told  # as both sides of a self-join tell it
        slots, te = rows.leave(told, now)
        expected = {slot: end for slot, end in ends.items() if end < now}
        expected |= {slot: closing[holder] for slot, holder in waits.items() if holder in closing}
        assert sorted(zip(slots.tolist(), te.tolist(), strict=True)) == sorted(expected.items())
        for slot in expected:
            ends.pop(slot, None)
            waits.pop(slot, None)
            free.append(slot)
        unused_holders += [holder for holder in closing if holder != 999]
        fresh = [free.pop() for _ in range(random.randrange(8))]
        holder, te_in = [], []
        shared = unused_holders.pop() if unused_holders else NO_HOLDER
        for slot in fresh:
            kind = random.random()
            if kind < 0.3 and shared != NO_HOLDER:
                waits[slot] = shared  # several rows may wait for one holder
            elif kind < 0.9:
                ends[slot] = now + random.choice([0, 1, 2, 7, 30])
            holder.append(waits.get(slot, NO_HOLDER))
            te_in.append(ends.get(slot, FOREVER))
        rows.add(ints(fresh), ints(te_in), ints(holder))
        if shared != NO_HOLDER and shared not in waits.values():
            unused_holders.append(shared)
        assert rows.undetermined == len(waits)
        if random.random() < 0.2:
            rows = codec.decode(codec.encode(rows), STATE_CLASSES)
    slots, _ = rows.leave(Ends(), FOREVER)
    assert sorted(slots.tolist()) == sorted(ends)


def test_the_set_is_sorted_only_when_time_reaches_it() -> None:
    rows = LifetimeSet()
    for i in range(10):
        rows.add(ints([i]), ints([100 - i]), ints([NO_HOLDER]))
        assert not len(rows.leave(Ends(), 50)[0])
    assert not rows.runs and len(rows.unsorted) == 10 and rows.earliest == 91
    assert rows.leave(Ends(), 92)[0].tolist() == [9]
    assert [run.te.tolist() for run in rows.runs] == [list(range(92, 101))] and not rows.unsorted


def test_runs_stay_few() -> None:
    rows = LifetimeSet()
    random = Random(2)
    for now in range(500):
        rows.add(ints([now]), ints([now + random.choice([1, 50, 400])]), ints([NO_HOLDER]))
        rows.leave(Ends(), now)
        assert len(rows.runs) <= 10


def test_forever_is_in_no_set() -> None:
    rows = LifetimeSet()
    rows.add(ints([0, 1]), ints([FOREVER, FOREVER]), ints([NO_HOLDER, NO_HOLDER]))
    assert not rows.runs and not rows.unsorted and not rows.undetermined
    assert not len(rows.leave(Ends(), FOREVER)[0])


def test_rows_that_move_are_still_observed() -> None:
    rows = LifetimeSet()
    rows.observe(ints([3, 3, 5]), ints([0, 1, 2]))
    rows.move(ints([0, 1, 2, 3]), ints([10, 11, 12, 13]), 16)
    slots, te = rows.closed(Ends.of(ints([3]), ints([8])))
    assert sorted(slots.tolist()) == [10, 11] and te.tolist() == [8, 8]
    assert rows.closed(Ends.of(ints([5]), ints([9])))[0].tolist() == [12]
    assert rows.undetermined == 0
    rows.move(ints([12]), ints([0]), 64)
    rows.observe(ints([5]), ints([63]))
    assert rows.closed(Ends.of(ints([5]), ints([9])))[0].tolist() == [63]
