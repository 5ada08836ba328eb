"""Open ends across an exchange: a row travels once, then only the number of its holder and the end."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from tests.pipeline.buckets import laid_out
from transom.core.delta import NO_HOLDER, Delta, Ends, StreamDelta
from transom.core.time import FOREVER
from transom.kernels.kernel import Step
from transom.pipeline.cargo import CargoPart
from transom.pipeline.exchange import FeedState, relation_of, stream_of
from transom.pipeline.feed import sent, unpacked
from transom.pipeline.layout import Port
from transom.pipeline.routes import Routes
from transom.state.holders import HolderPool

BUCKETS = 4
(BY_K,) = laid_out("SELECT k, COUNT(*) AS n FROM s [ROWS 3] GROUP BY k", BUCKETS).ports_from(1)
(INTO_ONE,) = laid_out("SELECT COUNT(*) AS n FROM s [RANGE 3 SECONDS]", BUCKETS).ports_from(1)
SCHEMA = pa.schema([("k", pa.int32())])


def delta(rows: Iterable[tuple[int, int, int]], ends: Iterable[tuple[int, int]] = (), chunks: int = 1) -> Delta:
    """Rows are (k, ta, holder or -1), ends (holder, te)."""
    k, ta, holder = (np.array([row[i] for row in rows], dtype=np.int64) for i in range(3))
    holders, te = (np.array([end[i] for end in ends], dtype=np.int64) for i in range(2))
    values = pa.RecordBatch.from_arrays([pa.array(k, pa.int32())], schema=SCHEMA)
    closed = Ends()
    for _ in range(chunks):
        closed += Ends.of(holders, te)
    return Delta(values, ta, np.where(holder < 0, ta + 5, FOREVER), holder, 100, closed)


class Receiver:
    """The buckets behind a port, told of by the k of every open row."""

    def __init__(self, port: Port = BY_K, in_time_order: bool = False) -> None:
        self.port = port
        self.in_time_order = in_time_order
        self.pools = [HolderPool() for _ in range(BUCKETS)]
        self.feeds = [FeedState() for _ in range(BUCKETS)]
        self.open: list[dict[int, list[int]]] = [{} for _ in range(BUCKETS)]
        self.routes = [Routes() for _ in range(BUCKETS)]

    def step(self, *given: Delta, backwards: bool = False) -> tuple[list[int], list[tuple[int, int]]]:
        """What every sending bucket gave; the keys that came, and the keys that ended with their ends."""
        parts: list[list[CargoPart]] = [[] for _ in range(BUCKETS)]
        for bucket, one in enumerate(given):
            for to, part in sent(self.port, one, bucket, BUCKETS, self.routes[bucket]):
                parts[to].append(part)
        came, ended = [], []
        for b in range(BUCKETS):
            step = Step(0, 100, 0, self.pools[b])
            mine = parts[b][::-1] if backwards else parts[b]
            found = relation_of(self.feeds[b], *unpacked(mine), SCHEMA, step, self.in_time_order)
            for holder, te in zip(*(array.tolist() for array in found.ends.arrays()), strict=True):
                ended += [(k, te) for k in self.open[b].pop(holder)]
            keys = found.values.column(0).to_pylist()
            came += keys
            for k, holder in zip(keys, found.holder.tolist(), strict=True):
                if holder != NO_HOLDER:
                    self.open[b].setdefault(holder, []).append(k)
            self.pools[b].finish_step()
            assert self.pools[b].in_use == len(self.open[b])
        return sorted(came), sorted(ended)


def test_an_end_reaches_the_row_wherever_it_is_and_nobody_else() -> None:
    receiver = Receiver()
    assert receiver.step(delta([(k, k, k) for k in range(9)])) == (list(range(9)), [])
    assert receiver.step(delta([], [(3, 30), (8, 31)])) == ([], [(3, 30), (8, 31)])
    assert sum(pool.in_use for pool in receiver.pools) == 7


def test_an_end_is_told_to_those_who_have_the_row() -> None:
    """A holder may have rows in several buckets; when it has ended it may be used again, for other buckets."""
    port, routes = BY_K, Routes()
    went = [
        {to for to, part in sent(port, delta(rows, ends), 0, BUCKETS, routes) if part.kind == kind}
        for rows, ends, kind in [
            ([(k, 0, 5) for k in range(9)] + [(3, 0, 6), (3, 1, 6)], (), "delta"),
            ([], [(6, 2)], "ends"),
            ([(3, 3, 5)], [(5, 3), (77, 3)], "ends"),
            ([], [(5, 4)], "ends"),
        ]
    ]
    (home,) = went[1]
    assert went[0] == went[2] == set(range(BUCKETS)) and went[3] == {home}
    assert routes.nodes.in_use == 0
    routes.check()


def test_senders_number_their_holders_without_knowing_of_each_other() -> None:
    receiver = Receiver()
    receiver.step(delta([(1, 0, 5), (2, 0, 0)]), delta([(1, 0, 0), (2, 0, 5)]))
    assert receiver.step(delta([], [(5, 7)]), delta([])) == ([], [(1, 7)])
    assert receiver.step(delta([]), delta([], [(5, 8), (0, 9)])) == ([], [(1, 9), (2, 8)])


def test_the_number_of_a_closed_holder_serves_another_row() -> None:
    receiver = Receiver()
    receiver.step(delta([(1, 0, 0)]))
    receiver.step(delta([], [(0, 10)]))
    receiver.step(delta([(2, 11, 0)]))
    assert receiver.step(delta([], [(0, 20)])) == ([], [(2, 20)])


def test_an_end_that_comes_together_with_a_new_row_of_that_number_is_the_old_rows() -> None:
    receiver = Receiver()
    receiver.step(delta([(1, 0, 0)]))
    assert receiver.step(delta([(1, 11, 0)], [(0, 10)]), backwards=True) == ([1], [(1, 10)])
    assert receiver.step(delta([], [(0, 20)])) == ([], [(1, 20)])


def test_several_rows_under_one_holder_end_together_each_in_its_bucket() -> None:
    receiver = Receiver()
    receiver.step(delta([(k, 0, 7) for k in range(6)]))
    receiver.step(delta([(6, 1, 7)]))
    assert receiver.step(delta([], [(7, 9)])) == ([], [(k, 9) for k in range(7)])


def test_both_inputs_of_a_union_tell_the_same_end_and_it_is_written_once() -> None:
    receiver = Receiver()
    receiver.step(delta([(1, 0, 0), (1, 0, 0), (2, 0, 1)]))
    assert receiver.step(delta([], [(0, 9)], chunks=2)) == ([], [(1, 9), (1, 9)])
    assert receiver.step(delta([(3, 10, 0), (4, 10, 2)])) == ([3, 4], [])
    assert receiver.step(delta([], [(0, 19)])) == ([], [(3, 19)]), "no two rows share what was given back"


def test_rows_with_a_known_end_need_no_holder() -> None:
    receiver = Receiver()
    assert receiver.step(delta([(1, 0, -1), (2, 0, 3)])) == ([1, 2], [])
    assert sum(pool.in_use for pool in receiver.pools) == 1


def test_what_comes_from_many_is_in_time_order_where_the_reader_relies_on_it() -> None:
    assert INTO_ONE.exchange.partitioning.kind == "single"
    one, other = delta([(1, 3, -1), (2, 9, -1)]), delta([(3, 1, -1), (4, 9, -1)])
    parts = [part for bucket, d in enumerate((one, other)) for _, part in sent(INTO_ONE, d, bucket, 1, Routes())]
    found = relation_of(FeedState(), *unpacked(parts), SCHEMA, Step(0, 100, 0, HolderPool()), in_time_order=True)
    assert found.ta.tolist() == [1, 3, 9, 9] and found.te.tolist() == [6, 8, 14, 14]
    assert found.values.column(0).to_pylist() == [3, 1, 2, 4]


def stream(*rows: tuple[int, int]) -> StreamDelta:
    values = pa.RecordBatch.from_arrays([pa.array([k for k, _ in rows], pa.int32())], schema=SCHEMA)
    return StreamDelta(values, np.array([t for _, t in rows], dtype=np.int64), 100)


def test_rows_of_a_stream_are_in_time_order_and_those_of_one_instant_by_value() -> None:
    (port,) = laid_out("SELECT MAX(k) AS m FROM ISTREAM(SELECT k FROM s [NOW]) [ROWS 3]", BUCKETS).ports_from(1)
    parts = []
    for bucket, given in enumerate([stream((1, 3), (9, 3), (5, 8)), stream(), stream((4, 3), (0, 9))]):
        parts += [part for _, part in sent(port, given, bucket, 1, Routes())]
    for order in (parts, parts[::-1]):
        found = stream_of(unpacked(order)[0], SCHEMA, 100)
        assert (found.values.column(0).to_pylist(), found.t.tolist()) == ([1, 4, 9, 5, 0], [3, 3, 3, 8, 9])
    assert len(stream_of([], SCHEMA, 100)) == 0


def test_rows_that_may_be_anywhere_stay_where_they_are() -> None:
    text = "SELECT k FROM s [RANGE 3 SECONDS] UNION ALL SELECT MAX(k) AS k FROM t [ROWS 3]"
    (port,) = [port for port in laid_out(text, BUCKETS, emit="lifetimes").ports if port.exchange.fragment is not None]
    assert port.exchange.partitioning.kind == "any"
    assert [to for to, _ in sent(port, delta([(1, 0, -1), (2, 0, -1)]), 3, BUCKETS, Routes())] == [3]
    assert [to for to, _ in sent(port, delta([(1, 0, -1)], [(0, 1)]), 3, 2, Routes())] == [1]
