"""MJoin by definition: any graph, lifetimes, cuts, restarts and orders of probes; and nothing is left behind."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kernels.multiway import tuples
from tests.kernels.multiway.tuples import SHAPES, TYPES, K, Shape, T
from tests.kernels.stepping import Relation, Stepped
from transom.core.time import FOREVER
from transom.kernels import shorter_steps
from transom.kernels.multiway import mjoin


def stir(state: mjoin.MJoinState, random: Random) -> None:
    """Counts that speak for another order of probes, from the next row on."""
    state.order.probes[:] = 1
    state.order.matches[:] = [[random.randrange(100) for _ in row] for row in state.order.matches]
    state.order.due[:] = 0


@pytest.mark.parametrize("name", SHAPES)
@settings(max_examples=12)
@given(seed=st.integers(0, 2**48))
def test_every_tuple_once_for_as_long_as_all_its_members_live(name: str, seed: int) -> None:
    random = Random(f"{name} {seed}")
    shape = SHAPES[name]
    growing = tuple(random.random() < 0.5 for _ in range(shape.inputs))
    inputs = [tuples.relation(random, most=24 // shape.inputs, growing=known) for known in growing]
    stepped = Stepped(tuples.kernel(shape, random.random() < 0.3, growing), restart=random.random() < 0.5)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mjoin, "PART", random.choice([1, 3, 1 << 13]))
        patch.setattr(shorter_steps, "SLICE", random.choice([1, 3, 1 << 10]))
        patch.setattr(mjoin, "BLOCK", random.choice([shape.inputs + 2, 40, 1 << 20]))
        patch.setattr(mjoin, "AT_ONCE", random.choice([0, 1 << 10]))
        for frontier in tuples.cuts(random):
            if random.random() < 0.7:
                stir(stepped.state, random)
            stepped.feed(inputs, [frontier])
    assert stepped.all_lives() == tuples.by_definition(shape, [relation.lives for relation in inputs])
    assert stepped.state.open_tuples.slots.in_use == len(stepped.open)


@pytest.mark.parametrize("rings", [False, True])
@pytest.mark.parametrize("name", ["one key", "composite", "chain", "cycle", "two islands"])
def test_what_ended_is_forgotten(name: str, rings: bool) -> None:
    """Slots are used again, and texts are not kept: after many windows there is room for one alone."""
    shape = SHAPES[name]
    random = Random(7)
    stepped = Stepped(tuples.kernel(shape, growing=(rings,) * shape.inputs))
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
        assert [own.alive for own in stepped.state.inputs] == [0] * shape.inputs
        assert stepped.state.open_tuples.slots.in_use == 0 and not stepped.open
        assert all(not own.rows.columns[2].alive for own in stepped.state.inputs)
        sizes.append([own.capacity for own in stepped.state.inputs])
    assert max(map(max, sizes)) == 64
    assert stepped.lives and (stepped.state.open_tuples.slots.high > 0 or name != "one key")


def test_an_open_tuple_ends_with_the_first_of_its_members() -> None:
    shape = SHAPES["one key"]
    row = (1, None, None, None, 0)
    a = Relation([(row, 2, 9)], TYPES, frozenset({0}))
    b = Relation([(row, 3, 12)], TYPES, frozenset({0}))
    c = Relation([(row, 4, 11), (row, 5, 8), (row, 5, 6)], TYPES)
    stepped = Stepped(tuples.kernel(shape))
    seen = {}
    for frontier in (3, 6, 8, 9, 10):
        stepped.feed((a, b, c), [frontier])
        seen[frontier] = len(stepped.open), len(stepped.lives)
    # The end at 6 is known at 6 whatever the open rows do; that at 8 is not, and that at 11 never comes to be.
    assert seen == {3: (0, 0), 6: (2, 1), 8: (2, 1), 9: (1, 2), 10: (0, 3)}
    assert stepped.all_lives() == tuples.by_definition(shape, [a.lives, b.lives, c.lives])
    assert stepped.open_ids.in_use == 1  # that of b


def test_a_row_of_a_self_join_meets_itself() -> None:
    """The same rows with the same open row ids on every input."""
    shape = Shape(3, ({0: K, 1: K, 2: K},))
    own = Relation([((1, None, None, None, 0), 1, 7), ((1, None, None, None, 1), 2, 5)], TYPES, frozenset({0, 1}))
    stepped = Stepped(tuples.kernel(shape))
    for frontier in (3, 6, 9):
        delta = own.delta(stepped.open_ids, stepped.before, frontier)
        stepped.step((delta, delta, delta), frontier)
    assert stepped.all_lives() == tuples.by_definition(shape, [own.lives] * 3)
    assert len(stepped.lives) == 8 and not stepped.open


def test_null_keys_are_not_kept() -> None:
    shape = SHAPES["star"]
    alive = Relation([((0, 0, "a", 0.0, 0), 1, 50)], TYPES)
    null = Relation([((0, 0, None, 0.0, 0), 1, 50), ((0, 0, "a", 0.0, 1), 1, 50)], TYPES)
    stepped = Stepped(tuples.kernel(shape)).feed((null, alive, null, null), [10])
    # Input 3 has no text among its keys: there NULL may be.
    assert [own.alive for own in stepped.state.inputs] == [1, 1, 1, 2]
    assert len(stepped.all_lives()) == 2


def test_the_order_of_probes_follows_what_they_find() -> None:
    """Many matches on input 1 and none on input 2: rows of input 0 learn to ask input 2 first, and to change again."""
    kernel = tuples.kernel(SHAPES["one key"])
    stepped = Stepped(kernel)
    assert stepped.state.order.orders[0].tolist() == [0, 1, 2]

    def rows(count: int, key: int, ta: int, te: int = FOREVER) -> Relation:
        return Relation([((key, None, None, None, i), ta, te) for i in range(count)], TYPES)

    stepped.feed((rows(0, 0, 0), rows(8, 1, 1), rows(1, 2, 1, 20)), [2])
    for frontier in range(3, 8):
        stepped.feed((rows(40, 1, frontier - 1), rows(0, 0, 0), rows(0, 0, 0)), [frontier])
    assert stepped.state.order.orders[0].tolist() == [0, 2, 1]
    probes, matches = stepped.state.order.probes, stepped.state.order.matches
    # After two batches it is known: from then on nothing gets so far as to be probed on input 1.
    assert probes[0].tolist() == [0, 80, 8 * 80 + 3 * 40] and matches[0].tolist() == [0, 8 * 80, 0]
    stepped.feed((rows(0, 0, 0), rows(0, 0, 0), rows(50, 2, 8)), [9])
    for frontier in range(10, 20):
        stepped.feed((rows(40, 2, frontier - 1), rows(0, 0, 0), rows(0, 0, 0)), [frontier])
    assert stepped.state.order.orders[0].tolist() == [0, 1, 2]


def test_an_input_shared_by_several_keys_has_one_table_for_each_set_of_them() -> None:
    indexes = {name: tuples.kernel(shape).graph.indexes for name, shape in SHAPES.items()}
    assert indexes["one key of five"] == [[(0,)]] * 5
    assert indexes["composite"] == [[(0, 1)]] * 3
    assert indexes["chain"] == [[(0,)], [(0,), (1,)], [(1,), (2,)], [(2,), (3,)], [(3,)]]
    assert indexes["some share more"] == [[(0,), (0, 1)], [(0,), (0, 1), (0, 2)], [(0,)], [(0,), (0, 2)]]
    assert indexes["cross"] == [[()]] * 3
    assert indexes["two islands"] == [[(), (0,)], [(), (0,)], [(), (1,)], [(), (1,)]]


@pytest.mark.parametrize("rings", [False, True])
def test_tables_grow_with_their_rows(rings: bool) -> None:
    """In several steps, so that rows move that are alive and open; tables by hash alone and by the bytes of keys."""
    shape = Shape(3, ({0: K, 1: K}, {1: T, 2: T}))
    count = 1200
    lives = [((i, 0, f"t{i}" * (i % 9), 0.0, i), 1 + i // 400, 100 + i // 400) for i in range(count)]
    inputs = [Relation(lives, TYPES, frozenset(range(0, count, 7))) for _ in range(3)]
    stepped = Stepped(tuples.kernel(shape, growing=(rings,) * 3)).feed(inputs, [2, 3, 50])
    found = stepped.all_lives()
    empty = sum(not life[0][T] for life in lives)  # the texts that are the same
    assert len(found) == count - empty + empty * empty and len(stepped.open) > count // 7
    assert all(values[0] == values[5] and values[7] == values[12] for values, _, _ in found)
    stepped.feed(inputs, [200])
    own = stepped.state.inputs
    assert [each.alive for each in own] == [0, 0, 0] and not stepped.open and not stepped.open_ids.in_use
    assert all((each.first_open == -1).all() for each in own)
    assert rings or all((table.head == -1).all() for each in own for table in each.tables)
