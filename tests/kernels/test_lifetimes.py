"""The lazily sorted set and the waiting rows: everything leaves once, in the step that passes its end."""

from __future__ import annotations

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kernels.stepping import ints
from transom.core.delta import NO_OPEN_ID, Ends
from transom.core.time import FOREVER
from transom.kernels.lifetimes import LifetimeSet
from transom.pipeline.registry import STATE_CLASSES
from transom.state import codec


def test_bytes_are_those_of_all_arrays() -> None:
    rows = LifetimeSet()
    for first in range(0, 60, 3):
        ends = [first + 50, first + 90, FOREVER]
        rows.add(ints(range(first, first + 3)), ints(ends), ints([NO_OPEN_ID, NO_OPEN_ID, first]))
        rows.leave(Ends(), first + 1)
    runs = [*rows.runs, *rows.unsorted]
    arrays = [rows.observer, rows.next_observer, *(run.te for run in runs), *(run.slots for run in runs)]
    assert len(runs) > 0 and rows.undetermined == 20
    assert codec.saved_bytes([rows]) == codec.saved_bytes(rows, whole=True) == sum(each.nbytes for each in arrays) > 0


@settings(max_examples=80)
@given(st.integers(0, 10**9))
def test_rows_leave_when_their_end_is_passed(seed: int) -> None:
    random = Random(seed)
    rows = LifetimeSet()
    ends: dict[int, int] = {}  # slot -> known end
    waits: dict[int, int] = {}  # slot -> open row id
    free, unused_open_ids = list(range(200)), list(range(40))
    random.shuffle(free)
    now = 0
    for _ in range(20):
        now += random.choice([1, 1, 3, 10])
        still_open = sorted(set(waits.values()))
        closing = {h: random.randrange(now) for h in still_open if random.random() < 0.3}
        closing |= {999: 1} if random.random() < 0.3 else {}  # somebody else's
        reported = Ends.of(ints(closing), ints(closing.values()))
        reported += reported  # as both sides of a self-join report it
        slots, te = rows.leave(reported, now)
        expected = {slot: end for slot, end in ends.items() if end < now}
        expected |= {slot: closing[open_id] for slot, open_id in waits.items() if open_id in closing}
        assert sorted(zip(slots.tolist(), te.tolist(), strict=True)) == sorted(expected.items())
        for slot in expected:
            ends.pop(slot, None)
            waits.pop(slot, None)
            free.append(slot)
        unused_open_ids += [open_id for open_id in closing if open_id != 999]
        fresh = [free.pop() for _ in range(random.randrange(8))]
        open_id, te_in = [], []
        shared = unused_open_ids.pop() if unused_open_ids else NO_OPEN_ID
        for slot in fresh:
            kind = random.random()
            if kind < 0.3 and shared != NO_OPEN_ID:
                waits[slot] = shared  # several rows may wait for one open row id
            elif kind < 0.9:
                ends[slot] = now + random.choice([0, 1, 2, 7, 30])
            open_id.append(waits.get(slot, NO_OPEN_ID))
            te_in.append(ends.get(slot, FOREVER))
        rows.add(ints(fresh), ints(te_in), ints(open_id))
        if shared != NO_OPEN_ID and shared not in waits.values():
            unused_open_ids.append(shared)
        assert rows.undetermined == len(waits)
        if random.random() < 0.2:
            rows = codec.decode(codec.encode(rows), STATE_CLASSES)
    slots, _ = rows.leave(Ends(), FOREVER)
    assert sorted(slots.tolist()) == sorted(ends)


def test_the_set_is_sorted_only_when_time_reaches_it() -> None:
    rows = LifetimeSet()
    for i in range(10):
        rows.add(ints([i]), ints([100 - i]), ints([NO_OPEN_ID]))
        assert not len(rows.leave(Ends(), 50)[0])
    assert not rows.runs and len(rows.unsorted) == 10 and rows.earliest == 91
    assert rows.leave(Ends(), 92)[0].tolist() == [9]
    assert [run.te.tolist() for run in rows.runs] == [list(range(92, 101))] and not rows.unsorted


def test_runs_stay_few() -> None:
    rows = LifetimeSet()
    random = Random(2)
    for now in range(500):
        rows.add(ints([now]), ints([now + random.choice([1, 50, 400])]), ints([NO_OPEN_ID]))
        rows.leave(Ends(), now)
        assert len(rows.runs) <= 10


def test_forever_is_in_no_set() -> None:
    rows = LifetimeSet()
    rows.add(ints([0, 1]), ints([FOREVER, FOREVER]), ints([NO_OPEN_ID, NO_OPEN_ID]))
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
