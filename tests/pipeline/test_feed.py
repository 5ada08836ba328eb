"""Open ends across an exchange: a row travels once, then only the number of its open row id and the end."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import pyarrow as pa

from tests.pipeline.spread_queries import laid_out
from transom.core.delta import NO_OPEN_ID, Delta, Ends, StreamDelta, no_int64s
from transom.core.time import FOREVER
from transom.kernels.kernel import Step
from transom.pipeline.exchange import FeedState, Sent, relation_of, stream_of
from transom.pipeline.feed import sent, unpacked
from transom.pipeline.frames import Frame
from transom.pipeline.layout import Channel
from transom.pipeline.routes import Routes
from transom.state.open_ids import OpenIdPool

PARTITIONS = 4
(BY_K,) = laid_out("SELECT k, COUNT(*) AS n FROM s [ROWS 3] GROUP BY k", PARTITIONS).channels_from(1)
(INTO_ONE,) = laid_out("SELECT COUNT(*) AS n FROM s [RANGE 3 SECONDS]", PARTITIONS).channels_from(1)
SCHEMA = pa.schema([("k", pa.int32())])


def delta(rows: Iterable[tuple[int, int, int]], ends: Iterable[tuple[int, int]] = (), chunks: int = 1) -> Delta:
    """Rows are (k, ta, open row id or -1), ends (open row id, te)."""
    k, ta, open_id = (np.array([row[i] for row in rows], dtype=np.int64) for i in range(3))
    open_ids, te = (np.array([end[i] for end in ends], dtype=np.int64) for i in range(2))
    values = pa.RecordBatch.from_arrays([pa.array(k, pa.int32())], schema=SCHEMA)
    closed = Ends()
    for _ in range(chunks):
        closed += Ends.of(open_ids, te)
    return Delta(values, ta, np.where(open_id < 0, ta + 5, FOREVER), open_id, 100, closed)


class Receiver:
    """The partitions behind a channel, notified of by the k of every open row."""

    def __init__(self, channel: Channel = BY_K, in_time_order: bool = False) -> None:
        self.channel = channel
        self.in_time_order = in_time_order
        self.pools = [OpenIdPool() for _ in range(PARTITIONS)]
        self.feeds = [FeedState() for _ in range(PARTITIONS)]
        self.open: list[dict[int, list[int]]] = [{} for _ in range(PARTITIONS)]
        self.routes = [Routes() for _ in range(PARTITIONS)]

    def step(self, *given: Delta, backwards: bool = False) -> tuple[list[int], list[tuple[int, int]]]:
        """What every sending partition gave; the keys that came, and the keys that ended with their ends."""
        parts: list[list[Frame]] = [[] for _ in range(PARTITIONS)]
        for partition, one in enumerate(given):
            for to, part in sent(self.channel, one, partition, PARTITIONS, self.routes[partition]):
                parts[to].append(part)
        came, ended = [], []
        for b in range(PARTITIONS):
            step = Step(0, 100, 0, self.pools[b])
            mine = parts[b][::-1] if backwards else parts[b]
            found = relation_of(self.feeds[b], *unpacked(mine), SCHEMA, step, self.in_time_order)
            for open_id, te in zip(*(array.tolist() for array in found.ends.arrays()), strict=True):
                ended += [(k, te) for k in self.open[b].pop(open_id)]
            keys = found.values.column(0).to_pylist()
            came += keys
            for k, open_id in zip(keys, found.open_id.tolist(), strict=True):
                if open_id != NO_OPEN_ID:
                    self.open[b].setdefault(open_id, []).append(k)
            self.pools[b].finish_step()
            assert self.pools[b].in_use == len(self.open[b])
        return sorted(came), sorted(ended)


def test_an_end_reaches_the_row_wherever_it_is_and_nobody_else() -> None:
    receiver = Receiver()
    assert receiver.step(delta([(k, k, k) for k in range(9)])) == (list(range(9)), [])
    assert receiver.step(delta([], [(3, 30), (8, 31)])) == ([], [(3, 30), (8, 31)])
    assert sum(pool.in_use for pool in receiver.pools) == 7


def test_an_end_is_reported_to_those_who_have_the_row() -> None:
    """An open row id may have rows in several partitions; when it has ended it may be used again, for other
    partitions."""
    channel, routes = BY_K, Routes()
    went = [
        {to for to, part in sent(channel, delta(rows, ends), 0, PARTITIONS, routes) if part.kind == kind}
        for rows, ends, kind in [
            ([(k, 0, 5) for k in range(9)] + [(3, 0, 6), (3, 1, 6)], (), "delta"),
            ([], [(6, 2)], "ends"),
            ([(3, 3, 5)], [(5, 3), (77, 3)], "ends"),
            ([], [(5, 4)], "ends"),
        ]
    ]
    (home,) = went[1]
    assert went[0] == went[2] == set(range(PARTITIONS)) and went[3] == {home}
    assert routes.nodes.in_use == 0
    routes.check()


def test_senders_number_their_open_ids_without_knowing_of_each_other() -> None:
    receiver = Receiver()
    receiver.step(delta([(1, 0, 5), (2, 0, 0)]), delta([(1, 0, 0), (2, 0, 5)]))
    assert receiver.step(delta([], [(5, 7)]), delta([])) == ([], [(1, 7)])
    assert receiver.step(delta([]), delta([], [(5, 8), (0, 9)])) == ([], [(1, 9), (2, 8)])


def test_the_number_of_a_closed_open_id_serves_another_row() -> None:
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


def test_several_rows_under_one_open_id_end_together_each_in_its_partition() -> None:
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


def test_within_a_process_the_end_that_both_inputs_of_a_union_tell_is_sent_once() -> None:
    given = delta([], [(3, 9), (0, 8)], chunks=2)
    (ends,) = Sent(0, given, [no_int64s()] * PARTITIONS).ends
    assert (ends.open_id.tolist(), ends.te.tolist()) == ([0, 3], [8, 9])


def test_rows_with_a_known_end_need_no_open_id() -> None:
    receiver = Receiver()
    assert receiver.step(delta([(1, 0, -1), (2, 0, 3)])) == ([1, 2], [])
    assert sum(pool.in_use for pool in receiver.pools) == 1


def test_what_comes_from_many_is_in_time_order_where_the_reader_relies_on_it() -> None:
    assert INTO_ONE.exchange.partitioning.kind == "single"
    one, other = delta([(1, 3, -1), (2, 9, -1)]), delta([(3, 1, -1), (4, 9, -1)])
    parts = [part for partition, d in enumerate((one, other)) for _, part in sent(INTO_ONE, d, partition, 1, Routes())]
    found = relation_of(FeedState(), *unpacked(parts), SCHEMA, Step(0, 100, 0, OpenIdPool()), in_time_order=True)
    assert found.ta.tolist() == [1, 3, 9, 9] and found.te.tolist() == [6, 8, 14, 14]
    assert found.values.column(0).to_pylist() == [3, 1, 2, 4]


def test_what_begins_at_one_instant_is_in_the_order_of_its_ends() -> None:
    """Rows of a sliding window: those of the second partition end first, and a ring gives them back in this order."""
    ends = {1: 20, 2: 16, 3: 16, 4: 20}
    parts = []
    for partition, ks in enumerate(([1, 4], [2, 3])):
        d = delta([(k, 12, -1) for k in ks])
        d = replace(d, te=np.array([ends[k] for k in ks]))
        parts += [part for _, part in sent(INTO_ONE, d, partition, 1, Routes())]
    found = relation_of(FeedState(), *unpacked(parts), SCHEMA, Step(0, 100, 0, OpenIdPool()), in_time_order=True)
    assert found.te.tolist() == [16, 16, 20, 20] and found.values.column(0).to_pylist() == [2, 3, 1, 4]


def stream(*rows: tuple[int, int]) -> StreamDelta:
    values = pa.RecordBatch.from_arrays([pa.array([k for k, _ in rows], pa.int32())], schema=SCHEMA)
    return StreamDelta(values, np.array([t for _, t in rows], dtype=np.int64), 100)


def test_rows_of_a_stream_are_in_time_order_and_those_of_one_instant_by_value() -> None:
    (channel,) = laid_out("SELECT MAX(k) AS m FROM ISTREAM(SELECT k FROM s [NOW]) [ROWS 3]", PARTITIONS).channels_from(
        1
    )
    parts = []
    for partition, given in enumerate([stream((1, 3), (9, 3), (5, 8)), stream(), stream((4, 3), (0, 9))]):
        parts += [part for _, part in sent(channel, given, partition, 1, Routes())]
    for order in (parts, parts[::-1]):
        found = stream_of(unpacked(order)[0], SCHEMA, 100)
        assert (found.values.column(0).to_pylist(), found.t.tolist()) == ([1, 4, 9, 5, 0], [3, 3, 3, 8, 9])
    assert len(stream_of([], SCHEMA, 100)) == 0


def test_rows_that_may_be_anywhere_stay_where_they_are() -> None:
    text = "SELECT k FROM s [RANGE 3 SECONDS] UNION ALL SELECT MAX(k) AS k FROM t [ROWS 3]"
    (channel,) = [
        channel
        for channel in laid_out(text, PARTITIONS, emit="lifetimes").channels
        if channel.exchange.fragment is not None
    ]
    assert channel.exchange.partitioning.kind == "any"
    assert [to for to, _ in sent(channel, delta([(1, 0, -1), (2, 0, -1)]), 3, PARTITIONS, Routes())] == [3]
    assert [to for to, _ in sent(channel, delta([(1, 0, -1)], [(0, 1)]), 3, 2, Routes())] == [1]
