"""Tables: static rows from the origin on, and rows that come and go by their changes or are replaced by their key."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kernels.stepping import Life, Stepped, batch, ints
from transom.core.delta import StreamDelta, no_int64s
from transom.core.time import FOREVER
from transom.kernels.kernel import Step
from transom.kernels.scan.table import ChangesTable, StaticTable
from transom.runtimes.reference.history import canonical, grouped

TYPES = (pa.float64(), pa.string())
SCHEMA = pa.schema([("k", TYPES[0]), ("v", TYPES[1])])
Change = tuple[int, float | None, str | None, str]  # time, key, value, sign

KEYS = st.sampled_from([1.0, -0.0, 0.0, float("nan"), None])
LAST = 30


def changes_to(text: str) -> Any:
    row = st.tuples(st.integers(0, 20), KEYS, st.sampled_from(["x", "y", None]), st.sampled_from(text))
    return st.lists(row, max_size=20).map(lambda rows: sorted(rows, key=lambda row: row[0]))


CUTS = st.sets(st.integers(1, LAST - 1), max_size=8).map(lambda cuts: [*sorted(cuts), LAST])


class Table:
    """A `ChangesTable` run as a kernel, with the changes it rejected."""

    def __init__(self, kernel: ChangesTable) -> None:
        self.kernel = kernel
        self.rejected: list[Change] = []
        self.taken: list[Change] = []

    def start(self) -> Any:
        return self.kernel.start()

    def step(self, state: Any, inputs: tuple[list[Change]], step: Step) -> Any:
        (changes,) = inputs
        types = [*TYPES, pa.string()] if self.kernel.has_change_column else list(TYPES)
        rows = [change[1:] if self.kernel.has_change_column else change[1:3] for change in changes]
        delta = StreamDelta(batch(rows, types), ints(change[0] for change in changes), step.frontier)
        out, rejected = self.kernel.apply(state, delta, step)
        self.rejected += [changes[i] for i in rejected.tolist()]
        return out


def run(kernel: ChangesTable, changes: list[Change], cuts: list[int], restart: bool) -> tuple[Stepped, list[Change]]:
    table = Table(kernel)
    stepped = Stepped(table, restart=restart)
    for frontier in cuts:
        stepped.step(([c for c in changes if stepped.before <= c[0] < frontier],), frontier)
    return stepped, table.rejected


def by_definition(changes: list[Change], identity: tuple[int, ...], upsert: bool) -> tuple[list[Life], list[Change]]:
    alive: dict[Any, list[Change]] = {}
    lives: list[Life] = []
    rejected: list[Change] = []
    for change in changes:
        t, key, value, sign = change
        rows = alive.setdefault(grouped((key, value)[i] for i in identity), [])
        if rows and (upsert or sign == "-"):
            old = rows.pop()
            lives.append((canonical(old[1:3]), old[0], t))
        elif sign == "-":
            rejected.append(change)
        if sign == "+":
            rows.append(change)
    lives += [(canonical(row[1:3]), row[0], None) for rows in alive.values() for row in rows]
    return sorted([life for life in lives if life[2] is None or life[1] < life[2]], key=repr), rejected


@pytest.mark.parametrize(("upsert", "signed"), [(False, True), (True, False), (True, True)])
def test_rows_live_from_their_plus_to_their_minus(upsert: bool, signed: bool) -> None:
    identity = (0,) if upsert else (0, 1)
    kernel = ChangesTable(SCHEMA, identity, upsert, signed)

    @settings(max_examples=40)
    @given(changes_to("+++--" if signed else "+"), CUTS, st.booleans())
    def check(changes: list[Change], cuts: list[int], restart: bool) -> None:
        stepped, rejected = run(kernel, changes, cuts, restart)
        lives, wrong = by_definition(changes, identity, upsert)
        assert stepped.all_lives() == lives
        assert repr(rejected) == repr(wrong)
        assert stepped.state.slots.in_use == len(stepped.open) == stepped.open_ids.in_use
        keys = {grouped(row[i] for i in identity) for row, _, te in lives if te is None}
        assert stepped.state.keys.slots.in_use == len(keys)

    check()


def test_the_last_upsert_of_an_instant_wins() -> None:
    changes: list[Change] = [(3, 1.0, "first", "+"), (3, 1.0, "second", "+"), (5, 1.0, "third", "+")]
    stepped, _ = run(ChangesTable(SCHEMA, (0,), True, False), changes, [4, 9], restart=False)
    assert stepped.all_lives() == [((1.0, "second"), 3, 5), ((1.0, "third"), 5, None)]


def test_memory_is_that_of_the_rows_alive() -> None:
    changes: list[Change] = [(t, float(t // 2), f"value {t // 2}", "+-"[t % 2]) for t in range(2_000)]
    stepped, rejected = run(ChangesTable(SCHEMA, (0, 1), False, True), changes, list(range(7, 2_003, 7)), restart=False)
    assert not rejected and not stepped.open and len(stepped.lives) == 1_000
    assert stepped.state.nodes.shape[1] <= 64 and len(stepped.state.top) <= 64 and stepped.open_ids.slots.high <= 8


def test_static_rows_live_from_the_origin_forever() -> None:
    stepped = Stepped(StaticTable(), origin=-5)
    rows = StreamDelta(batch([(1.0, "a"), (None, None)], TYPES), no_int64s(), 3)
    stepped.step((rows,), 3)
    assert stepped.all_lives() == [((1.0, "a"), -5, FOREVER), ((None, None), -5, FOREVER)]
    nothing = StreamDelta(batch([], TYPES), np.empty(0, dtype=np.int64), 9)
    assert len(stepped.step((nothing,), 9)) == 0
