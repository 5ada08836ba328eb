"""Parallel MJoin by definition, with threads and without; that these change nothing; and that they are there."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from itertools import cycle
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kernels.multiway import tuples
from tests.kernels.multiway.tuples import ID, SHAPES, TYPES, F, K, Shape
from tests.kernels.stepping import Relation, Stepped
from tests.profile import examples
from transom.core.delta import Delta
from transom.core.time import FOREVER
from transom.kernels import shorter_steps
from transom.kernels.compiled_threads import COUNT
from transom.kernels.multiway import mjoin, pace, parallel_mjoin, probing
from transom.kernels.multiway.match_sets import MatchSets
from transom.kernels.multiway.parallel_mjoin import ParallelMJoinKernel
from transom.kernels.multiway.predicate_check import PredicateCheck
from transom.kernels.multiway.probe_wave import help_probing
from transom.kernels.worker_pool import WorkerPool


def kernel(shape: Shape, last: bool = False, growing: tuple[bool, ...] = ()) -> ParallelMJoinKernel:
    plain = tuples.kernel(shape, last, growing)
    return ParallelMJoinKernel(plain.graph, plain.schema)


@pytest.fixture(scope="module")
def worker_pool() -> Iterator[WorkerPool]:
    found = WorkerPool(3)
    yield found
    found.close()


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything goes by waves, and over threads where there are any."""
    monkeypatch.setattr(parallel_mjoin, "FEW", 0)
    at_once(monkeypatch, lambda: True)


def at_once(monkeypatch: pytest.MonkeyPatch, decide: Callable[[], bool]) -> None:
    """What is decided in place of prices: with threads at once, or in turn."""
    monkeypatch.setattr(probing, "measured_call", lambda: 0.0 if decide() else 1e15)
    monkeypatch.setattr(pace, "sooner", lambda *of: decide())


def stir(state: mjoin.MJoinState, random: Random) -> None:
    """Counts that speak for another order of probes, from the next row on."""
    state.order.probes[:] = 1
    state.order.matches[:] = [[random.randrange(100) for _ in row] for row in state.order.matches]
    state.order.due[:] = 0


@pytest.mark.parametrize("name", SHAPES)
@settings(max_examples=examples(by_day=6, at_night=60))
@given(seed=st.integers(0, 2**48))
def test_every_tuple_once_for_as_long_as_all_its_members_live(name: str, seed: int, worker_pool: WorkerPool) -> None:
    random = Random(f"{name} {seed}")
    shape = SHAPES[name]
    growing = tuple(random.random() < 0.5 for _ in range(shape.inputs))
    inputs = [tuples.relation(random, most=24 // shape.inputs, growing=known) for known in growing]
    stepped = Stepped(kernel(shape, random.random() < 0.3, growing), restart=random.random() < 0.5)
    stepped.worker_pool = random.choice([None, worker_pool])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mjoin, "PART", random.choice([1, 3, 1 << 13]))
        patch.setattr(shorter_steps, "SLICE", random.choice([1, 3, 1 << 10]))
        patch.setattr(mjoin, "BLOCK", random.choice([shape.inputs + 2, 40, 1 << 20]))
        patch.setattr(parallel_mjoin, "FEW", random.choice([0, 0, 30]))
        at_once(patch, lambda: random.random() < 0.7)
        for frontier in tuples.cuts(random):
            if random.random() < 0.7:
                stir(stepped.state, random)
            stepped.feed(inputs, [frontier])
    assert stepped.all_lives() == tuples.by_definition(shape, [relation.lives for relation in inputs])
    assert stepped.state.open_tuples.slots.in_use == len(stepped.open)


def reported(out: Delta) -> str:
    ends = [part.tolist() for part in out.ends.arrays()]
    return repr([out.values.to_pylist(), out.ta.tolist(), out.te.tolist(), out.open_id.tolist(), ends])


def crowded(random: Random) -> Relation:
    """Rows that often meet some, and seldom all."""
    lives = []
    for n, ta in enumerate(sorted(random.randint(0, 30) for _ in range(16))):
        values = random.choice([0, 0, 1, 2, 3]), random.choice([0, 0, 1, 2]), random.choice("aab"), 0.5, n
        lives.append((values, ta, ta + random.randint(1, 60)))
    return Relation(lives, TYPES, frozenset(random.sample(range(16), 6)))


@pytest.mark.parametrize("name", ["one key of five", "chain", "star", "cycle", "a key and a predicate", "two islands"])
def test_who_does_it_changes_nothing(name: str, worker_pool: WorkerPool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even the order of what comes out, or that of probes to come: a step may be taken again anywhere."""
    shape = SHAPES[name]
    random = Random(3)
    lives = [crowded(random) for _ in range(shape.inputs)]
    monkeypatch.setattr(parallel_mjoin, "FEW", 20)

    def run(worker_pool: WorkerPool | None, sooner: Iterator[bool], block: int) -> tuple[int, list[str]]:
        at_once(monkeypatch, lambda: next(sooner))
        monkeypatch.setattr(mjoin, "BLOCK", block)
        inputs = [Relation(own.lives, TYPES, own.open) for own in lives]
        stepped = Stepped(kernel(shape), worker_pool=worker_pool)
        found: list[str] = []
        for frontier in (5, 9, 20, 21, 30, 60):
            deltas = tuple(relation.delta(stepped.open_ids, stepped.before, frontier) for relation in inputs)
            found.append(reported(stepped.step(deltas, frontier)))
            found.append(repr(stepped.state.order.probes.tolist()))
        return len(stepped.lives), found

    alone = run(None, cycle([True]), 1 << 20)
    assert alone[0] > 20
    monkeypatch.setattr(WorkerPool, "hook", lambda: time.sleep(1e-4))
    assert run(worker_pool, cycle([True]), 1 << 20) == alone
    assert run(worker_pool, cycle([False, False, True]), 1 << 20) == alone
    assert run(worker_pool, cycle([True, False]), shape.inputs + 2) == alone


def test_predicates_over_two_inputs_are_asked_at_once(
    worker_pool: WorkerPool, always: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of the three waits for the others: one after the other they would never get there."""
    together = threading.Barrier(3, timeout=60)
    ask = PredicateCheck.pairs

    def checked(*of: Any) -> Any:
        together.wait()
        return ask(*of)

    monkeypatch.setattr(PredicateCheck, "pairs", checked)
    own = tuple(((0, ID), (i, ID)) for i in (1, 2, 3))
    shape = Shape(4, (dict.fromkeys(range(4), K),), less=own)
    row = [
        Relation([((1, None, None, None, 10 * (i > 0) + n), 1 + (i == 0), 9) for n in range(3)], TYPES)
        for i in range(4)
    ]
    stepped = Stepped(kernel(shape), worker_pool=worker_pool)
    stepped.feed(row, [2])
    assert not stepped.lives
    stepped.feed(row, [3])
    assert len(stepped.lives) == 81


def test_a_failure_in_a_probe_comes_to_the_caller(
    worker_pool: WorkerPool, always: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probing, "probe_wave", lambda *of: 1 / 0)
    row = Relation([((1, 1, "a", 0.0, 0), 1, 9)], TYPES)
    with pytest.raises(ZeroDivisionError):
        Stepped(kernel(SHAPES["one key"]), worker_pool=worker_pool).feed((row, row, row), [5])


def test_who_finds_the_threads_busy_does_it_alone(always: None) -> None:
    lives = [Relation([((n % 3, 0, "", 0.0, n), 1, 50) for n in range(30)], TYPES) for _ in range(3)]
    worker_pool = WorkerPool(2)
    threads = worker_pool.compiled(help_probing)
    stepped = Stepped(kernel(SHAPES["one key"]), worker_pool=worker_pool)
    with threads.leading:
        stepped.feed(lives, [2])
    assert len(stepped.lives) == 3 * 10**3 and not threads.sheet[COUNT]
    assert threads.leading.acquire(blocking=False)
    worker_pool.close()


@pytest.mark.parametrize("asked", [False, True])
def test_others_do_their_share(asked: bool, worker_pool: WorkerPool, always: None) -> None:
    """Of probes that are long enough for them to wake up; each tuple that passes is there once."""
    same = tuple(((0, F), (i, F)) for i in (1, 2, 3) if asked)
    shape = Shape(4, (dict.fromkeys(range(4), K),), same=same)
    stepped = Stepped(kernel(shape), worker_pool=worker_pool)
    crowd = [((n, 0, "", float(n if n % 2 else -1), n), 1, 10**6) for n in range(400)]
    stepped.feed([Relation(crowd * (i > 0), TYPES) for i in range(4)], [2])
    before, now = worker_pool.submitted, 2
    while worker_pool.submitted == before and now < 1000:
        rows = [((n, 0, "", float(n), n), now, 10**6) for n in range(400)]
        stepped.feed([Relation(rows * (i == 0), TYPES) for i in range(4)], [now + 1])
        now += 1
    assert worker_pool.submitted > before
    assert len(stepped.lives) == (200 if asked else 400) * (now - 2)


@pytest.mark.parametrize("name", ["one key of five", "one text", "composite", "star"])
def test_where_nothing_is_asked_no_tuple_is_written_down(
    name: str, worker_pool: WorkerPool, always: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of rows of the first input, which shares keys with all others."""
    monkeypatch.setattr(MatchSets, "blocks", None)
    shape = SHAPES[name]
    lives = [((1, 1, "a", 0.5, n), 1 + n, 20) for n in range(4)]
    later = Relation([(values, ta + 5, te) for values, ta, te in lives], TYPES, frozenset({1}))
    stepped = Stepped(kernel(shape), worker_pool=worker_pool)
    stepped.feed([later, *(Relation(lives, TYPES, frozenset({0, 2})) for _ in range(shape.inputs - 1))], [6, 30])
    assert len(stepped.lives) == 4**shape.inputs and not stepped.open


def test_few_rows_are_left_to_mjoin_and_many_are_not(worker_pool: WorkerPool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel_mjoin, "Meeting", lambda *of: 1 / 0)
    stepped = Stepped(kernel(SHAPES["one key"]), worker_pool=worker_pool)
    few = [Relation([((n, 0, "", 0.0, n), 1, 50) for n in range(9)], TYPES) for _ in range(3)]
    stepped.kernel.__dict__["_checks"] = False
    stepped.feed(few, [2])
    assert len(stepped.lives) == 9
    many = Relation([((n, 0, "", 0.0, n), 2, 50) for n in range(2000)], TYPES)
    with pytest.raises(ZeroDivisionError):
        stepped.feed([many, few[1], few[2]], [3])


@pytest.mark.parametrize("rings", [False, True])
@pytest.mark.parametrize("name", ["one key", "chain", "cycle"])
def test_what_ended_is_forgotten(name: str, rings: bool, worker_pool: WorkerPool, always: None) -> None:
    shape = SHAPES[name]
    random = Random(7)
    stepped = Stepped(kernel(shape, growing=(rings,) * shape.inputs), worker_pool=worker_pool)
    for turn in range(20):
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
        assert [own.alive for own in stepped.state.inputs] == [0] * shape.inputs
        assert stepped.state.open_tuples.slots.in_use == 0 and not stepped.open
    assert max(own.capacity for own in stepped.state.inputs) == 64 and stepped.lives
