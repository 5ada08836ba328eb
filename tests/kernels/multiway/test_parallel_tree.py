"""Parallel trees by definition: any graph, lifetimes, cuts, restarts and threads; and nothing is left behind."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from threading import Event, current_thread, main_thread
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kernels.multiway import tuples
from tests.kernels.multiway.tuples import ID, SHAPES, TYPES, F, K, M, Shape, T
from tests.kernels.stepping import Relation, Stepped
from tests.profile import examples
from transom.core.time import FOREVER
from transom.kernels import shorter_steps
from transom.kernels.multiway import parallel_tree
from transom.kernels.multiway.kept_tuples import KeptTuples
from transom.kernels.multiway.parallel_tree import ParallelTreeKernel
from transom.kernels.multiway.tuple_growth import CELL_ROOM, ROOM
from transom.kernels.worker_pool import WorkerPool


def kernel(
    shape: Shape, last: bool = False, growing: tuple[bool, ...] = (), order: tuple[int, ...] = ()
) -> ParallelTreeKernel:
    plain = tuples.kernel(shape, last, growing)
    return ParallelTreeKernel(plain.graph, plain.schema, order=order)


@pytest.fixture(scope="module")
def worker_pool() -> Iterator[WorkerPool]:
    """Several threads, whatever the machine has."""
    found = WorkerPool(3)
    yield found
    found.close()


def check_empty(kept: KeptTuples) -> None:
    """Nothing is alive, and everything can be used again."""
    assert not kept.counts.any() and (kept.heads == -1).all() and (kept.first == -1).all()
    assert kept.sizes[ROOM] == len(kept.tuples) and kept.sizes[CELL_ROOM] == len(kept.cells)
    assert sorted(kept.free) == list(range(len(kept.tuples)))
    assert sorted(kept.free_cells) == list(range(len(kept.cells)))


@pytest.mark.parametrize("name", SHAPES)
@settings(max_examples=examples(by_day=6, at_night=60))
@given(seed=st.integers(0, 2**48))
def test_every_tuple_once_for_as_long_as_all_its_members_live(name: str, seed: int, worker_pool: WorkerPool) -> None:
    random = Random(f"{name} {seed}")
    shape = SHAPES[name]
    growing = tuple(random.random() < 0.5 for _ in range(shape.inputs))
    nulls = random.random() < 0.3
    most = {2: 12, 3: 9, 4: 7, 5: 5}[shape.inputs]
    inputs = [tuples.relation(random, most, nulls, known) for known in growing]
    order = random.sample(range(shape.inputs), shape.inputs) if random.random() < 0.5 else ()
    join = kernel(shape, random.random() < 0.3, growing, tuple(order))
    stepped = Stepped(join, restart=random.random() < 0.5, worker_pool=worker_pool if random.random() < 0.5 else None)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parallel_tree, "PART", random.choice([1, 3, 1 << 13]))
        patch.setattr(shorter_steps, "SLICE", random.choice([1, 3, 1 << 10]))
        patch.setattr(parallel_tree, "BLOCK", random.choice([shape.inputs + 3, 40, 1 << 20]))
        for frontier in tuples.cuts(random):
            stepped.feed(inputs, [frontier])
    worker_pool.drain()
    assert stepped.all_lives() == tuples.by_definition(shape, [relation.lives for relation in inputs])
    assert stepped.state.open_tuples.slots.in_use == len(stepped.open)


@pytest.mark.parametrize("rings", [False, True])
@pytest.mark.parametrize("name", ["one key", "one text", "composite", "chain", "cycle", "two islands", "cross"])
def test_what_ended_is_forgotten(name: str, rings: bool) -> None:
    """Tuples, their cells and the numbers of texts are used again: after many windows there is room for one alone."""
    shape = SHAPES[name]
    random = Random(7)
    stepped = Stepped(kernel(shape, growing=(rings,) * shape.inputs))
    sizes = []
    for turn in range(30):
        begin = turn * 100
        inputs = []
        for _ in range(shape.inputs):
            made = tuples.relation(random, most=5, nulls=False, growing=rings)
            lives = [
                (values, begin + ta, begin + (60 if te is None or te >= FOREVER else te))
                for values, ta, te in made.lives
            ]
            inputs.append(Relation(lives, TYPES, made.open))
        stepped.feed(inputs, [begin + 30, begin + 99])
        state = stepped.state
        assert [own.alive for own in state.inputs] == [0] * shape.inputs
        assert state.open_tuples.slots.in_use == 0 and not stepped.open
        check_empty(state.kept)
        assert not any(numbers.index.slots.in_use for numbers in state.keys.numbers if numbers is not None)
        assert state.soonest == stepped.kernel.next_timer(state) == FOREVER
        sizes.append(len(state.kept.tuples))
    assert sizes[-1] == max(sizes[:10]) and stepped.lives


def test_an_open_tuple_ends_with_the_first_of_its_members() -> None:
    shape = SHAPES["one key"]
    row = (1, None, None, None, 0)
    a = Relation([(row, 2, 9)], TYPES, frozenset({0}))
    b = Relation([(row, 3, 12)], TYPES, frozenset({0}))
    c = Relation([(row, 4, 11), (row, 5, 8), (row, 5, 6)], TYPES)
    stepped = Stepped(kernel(shape))
    seen = {}
    for frontier in (3, 6, 8, 9, 10):
        stepped.feed((a, b, c), [frontier])
        seen[frontier] = len(stepped.open), len(stepped.lives)
    assert seen == {3: (0, 0), 6: (2, 1), 8: (2, 1), 9: (1, 2), 10: (0, 3)}
    assert stepped.all_lives() == tuples.by_definition(shape, [a.lives, b.lives, c.lives])
    # Those of a and c went with c, and with a.
    assert stepped.state.kept.counts.tolist() == [0, 1, 1, 1, 0, 0]


@pytest.mark.parametrize("rings", [False, True])
def test_rows_do_not_meet_those_that_ended_in_the_same_step(rings: bool) -> None:
    """The end of an open row is emitted in the step that brings a row after it: kept tuples must know it at once."""
    shape = SHAPES["one key"]
    row = (1, None, None, None, 0)
    a = Relation([(row, 2, 9)], TYPES, frozenset({0}))
    b = Relation([(row, 3, 30)], TYPES)
    c = Relation([(row, 8, 20), (row, 9, 21), (row, 10, 22)], TYPES)
    stepped = Stepped(kernel(shape, growing=(rings,) * 3)).feed((a, b, c), [5, 12])
    assert [(ta, te) for _, ta, te in stepped.all_lives()] == [(8, 9)]


def test_a_row_of_a_self_join_meets_itself() -> None:
    shape = Shape(3, ({0: K, 1: K, 2: K},))
    own = Relation([((1, None, None, None, 0), 1, 7), ((1, None, None, None, 1), 2, 5)], TYPES, frozenset({0, 1}))
    stepped = Stepped(kernel(shape))
    for frontier in (3, 6, 9):
        delta = own.delta(stepped.open_ids, stepped.before, frontier)
        stepped.step((delta, delta, delta), frontier)
    assert stepped.all_lives() == tuples.by_definition(shape, [own.lives] * 3)
    assert len(stepped.lives) == 8 and not stepped.open


def test_rows_that_nothing_can_come_of_are_not_kept() -> None:
    """Those with a NULL in a key, and those that fail a predicate by themselves."""
    shape = Shape(3, (dict.fromkeys(range(3), T),), same=(((1, K), (1, M)),))
    rows = [((0, 0, "a", 0.0, 0), 1, 50), ((0, 0, None, 0.0, 1), 1, 50), ((0, 1, "a", 0.0, 2), 1, 50)]
    stepped = Stepped(kernel(shape)).feed([Relation(rows, TYPES) for _ in range(3)], [10])
    assert [own.alive for own in stepped.state.inputs] == [2, 1, 2]
    assert stepped.state.keys.numbers[0].rows[:2].tolist() == [5, 0]
    assert len(stepped.all_lives()) == 4


@pytest.mark.parametrize("rings", [False, True])
@pytest.mark.parametrize("threads", [False, True])
def test_everything_grows(rings: bool, threads: bool, worker_pool: WorkerPool) -> None:
    """In several steps, so that rows move that are alive and open; by words that are hashes and by numbers."""
    shape = Shape(3, ({0: K, 1: K}, {1: T, 2: T}), less=(((0, ID), (1, F)),))
    count = 1200
    lives: list[Any] = [((i, 0, f"t{i}" * (i % 9), 2.0 * count, i), 1 + i // 400, 100 + i // 400) for i in range(count)]
    inputs = [Relation(lives, TYPES, frozenset(range(0, count, 7))) for _ in range(3)]
    stepped = Stepped(kernel(shape, growing=(rings,) * 3), worker_pool=worker_pool if threads else None)
    stepped.feed(inputs, [2, 3, 50])
    worker_pool.drain()
    empty = sum(not life[0][T] for life in lives)  # the texts that are the same
    assert len(stepped.all_lives()) == count - empty + empty * empty
    kept = stepped.state.kept
    assert kept.counts.tolist() == [count, count, count, count - empty + empty * empty, count]
    assert len(kept.heads) >= kept.counts.sum() and kept.alive == int(kept.counts[3:].sum())
    stepped.feed(inputs, [200])
    worker_pool.drain()
    check_empty(stepped.state.kept)
    assert not stepped.open and not stepped.open_ids.in_use


def test_the_answer_does_not_wait_for_what_is_kept(worker_pool: WorkerPool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The nodes are brought up to date by another thread, however long that takes; the next step waits for it."""
    resume = Event()
    monkeypatch.setattr(WorkerPool, "hook", lambda: current_thread() is main_thread() or resume.wait())
    nothing = Relation([], TYPES)
    stepped = Stepped(kernel(SHAPES["one key"]), worker_pool=worker_pool)
    counts = stepped.state.kept.counts
    seen = []
    for turn in range(3):
        row = Relation([((1, None, None, None, turn), 1 + turn, 50)], TYPES)
        resume.clear()
        stepped.feed([row if i == turn else nothing for i in range(3)], [2 + turn])
        worker_pool.go()
        seen.append((counts.tolist(), len(stepped.lives)))
        resume.set()
        worker_pool.drain()
    assert seen == [([0, 0, 0, 0, 0, 0], 0), ([1, 0, 0, 0, 0, 0], 0), ([1, 1, 0, 0, 0, 1], 1)]
    assert counts.tolist() == [1, 1, 1, 1, 1, 1]


def test_it_says_when_something_is_due_and_never_too_late(worker_pool: WorkerPool) -> None:
    lives: list[Any] = [((1, None, None, None, i), 1 + i, 20 + 3 * i) for i in range(5)]
    for growing in (False, True):
        alone = Stepped(kernel(SHAPES["two"], growing=(growing,) * 2))
        helped = Stepped(kernel(SHAPES["two"], growing=(growing,) * 2), worker_pool=worker_pool)
        for frontier in range(2, 40):
            for stepped in (alone, helped):
                relations = [Relation(lives, TYPES), Relation(lives, TYPES)]
                stepped.feed(relations, [frontier])
            begun = [te for _, ta, te in lives if ta < frontier <= te]
            assert alone.kernel.next_timer(alone.state) == min(begun, default=FOREVER)
            assert helped.kernel.next_timer(helped.state) <= min(begun, default=FOREVER)
        worker_pool.drain()


def test_only_the_columns_that_are_picked_are_given() -> None:
    join = kernel(SHAPES["one key"])
    picked = join.picking([11, 4, 4], _schema(join, [11, 4, 4]))
    again = picked.picking([1, 0], _schema(picked, [1, 0]))
    lives: list[Any] = [((1, 5, "x", 0.5, 7), 1, 50)]
    for found, expected in ((picked, (5, 7, 7)), (again, (7, 5))):
        stepped = Stepped(found).feed([Relation(lives, TYPES) for _ in range(3)], [9])
        assert stepped.lives == [(expected, 1, 50)]


def _schema(join: ParallelTreeKernel, picks: list[int]) -> pa.Schema:
    return pa.schema([join.schema.field(at).with_name(f"p{n}") for n, at in enumerate(picks)])
