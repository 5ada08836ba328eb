"""Saved states: the same state comes back, damage is reported as damage, and nothing that is read is ever run."""

from __future__ import annotations

import dataclasses
import json
import zlib
from collections.abc import Iterator, Sequence
from datetime import timedelta
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.emitted_slides import slide_state
from tests.run_locally import Rows, batch_of
from transom.core.errors import CheckpointError
from transom.core.time import to_datetime
from transom.cql.statements import parse_statements
from transom.kernels.lifetimes import EndRun
from transom.kernels.row_store import FixedColumn
from transom.kernels.slide_join.memory import SlideWork
from transom.kernels.slide_join.slide_join import SlideJoinKernel
from transom.pipeline.consumer import ConsumerSpec
from transom.pipeline.consumer_runner import ConsumerState
from transom.pipeline.driver import Pipeline
from transom.pipeline.group import GROUP_CLASSES, GroupPipeline
from transom.pipeline.registry import STATE_CLASSES
from transom.plan.catalogue import Catalogue, QueryStatement, StreamDefinition, TableDefinition
from transom.plan.options import partitions_of
from transom.planner.plan import plan
from transom.planner.sharing import Request
from transom.planner.sharing_shape import Sharable, sharable
from transom.planner.sharing_windows import SharableWindows, sharable_windows, widened
from transom.state import codec
from transom.state.fifo import Fifo
from transom.state.slots import SlotPool

DECLARATIONS = """
CREATE STREAM s (ts TIMESTAMP INVISIBLE, k INTEGER, v VARCHAR, f DOUBLE, WATERMARK FOR ts AS ts - INTERVAL '3' SECOND);
CREATE TABLE c (ts TIMESTAMP INVISIBLE, op VARCHAR, k INTEGER, WATERMARK FOR ts AS ts) WITH (changes = 'op');
CREATE TABLE names (k INTEGER, label VARCHAR);
"""
PAIRS = "FROM s [RANGE 9 SECONDS] AS a, s [ROWS 3] AS b WHERE a.k = b.k"
QUERIES = {
    "SELECT a.k FROM s [RANGE 9 SECONDS] AS a, s [ROWS 3] AS b WHERE a.k = b.k": "changes",
    "SELECT a.v FROM s [PARTITION BY v ROWS 2 RANGE 9 SECONDS] AS a, names WHERE a.k = names.k": "lifetimes",
    "SELECT s.v, SUM(f), MIN(v), COUNT(DISTINCT f) FROM s [ROWS 5 SLIDE 2], c WHERE s.k = c.k GROUP BY v": "latest",
    "RSTREAM(SELECT DISTINCT k FROM s [RANGE 6 SECONDS SLIDE 4 SECONDS])": "changes",
    "SELECT k FROM ISTREAM(SELECT k FROM s [ROWS 3]) [ROWS 2]": "lifetimes",
    "SET lifetimes = 'negative'; SELECT a.k FROM s [NOW] AS a, s [ROWS 3] AS b WHERE a.k = b.k": "lifetimes",
    f"SET joinagg = 'adaptive'; SET adapt = 'shuffle'; SELECT COUNT(*), SUM(a.f), MIN(b.v) {PAIRS}": "changes",
    f"SET joinagg = 'factorised'; SELECT COUNT(*), SUM(a.f), MIN(b.v) {PAIRS}": "changes",
    f"SET joinagg = 'ic'; SELECT a.v, COUNT(*), SUM(a.f) {PAIRS} GROUP BY a.v": "changes",
    f"SET joinagg = 'tc'; SELECT b.v, SUM(a.f), MIN(b.v) {PAIRS.replace('ROWS 3', 'NOW')} GROUP BY b.v": "changes",
    f"SET multiway = 'mjoin'; SELECT a.v {PAIRS.replace('ROWS 3', 'PARTITION BY v ROWS 2')}": "changes",
    f"SET multiway = 'parallel_mjoin'; SELECT a.v {PAIRS.replace('ROWS 3', 'PARTITION BY v ROWS 2')}": "changes",
    f"SET multiway = 'adaptive'; SET adapt = 'shuffle'; SELECT a.v {PAIRS}": "changes",
    f"SET multiway = 'parallel_tree'; SELECT a.k {PAIRS} AND a.v = b.v": "changes",
    "SET lifetimes = 'negative'; SELECT MIN(s.f) FROM s [PARTITION BY v ROWS 2], c WHERE s.k = c.k": "changes",
    "SET partitions = 2; SELECT k, COUNT(*) FROM s [ROWS 3] GROUP BY k": "changes",
    "SELECT v, COUNT(*) AS n FROM s [RANGE 9 SECONDS] GROUP BY v": "net",
    "SELECT v, RANK() OVER (PARTITION BY k ORDER BY f) AS n FROM s [RANGE 9 SECONDS] QUALIFY n <= 2": "changes",
    "SELECT v FROM s ORDER BY f LIMIT 2": "changes",
    "SELECT a.v FROM s [RANGE 9 SECONDS] AS a LEFT JOIN s [ROWS 3] AS b ON a.k = b.k": "changes",
    "SET lifetimes = 'negative'; SELECT a.v FROM s [RANGE 9 SECONDS] AS a LEFT JOIN c ON a.k = c.k": "changes",
    "SELECT a.v FROM s [RANGE 9 SECONDS] AS a WHERE EXISTS (SELECT 1 FROM c WHERE c.k > a.k)": "changes",
    "SELECT v, window_end FROM HOP(s, ts, 2 SECONDS, 4 SECONDS)": "changes",
    "SELECT k, SUM(f) AS f FROM TUMBLE(s, ts, 5 SECONDS) GROUP BY k, window_end": "changes",
    "SELECT v FROM s [PARTITION BY k SESSION 5 SECONDS]": "changes",
    "SELECT v, window_end FROM SESSION(s PARTITION BY k, ts, 5 SECONDS)": "changes",
    "SELECT v FROM DEDUPLICATE(s PARTITION BY k, v, 5 SECONDS) [ROWS 2]": "changes",
}


def running(text: str, emit: str, frontier: int = 12) -> Pipeline:
    """A query in the middle of its work, with rows that wait for progress."""
    catalogue = Catalogue()
    statement = parse_statements(DECLARATIONS + text, catalogue)[-1]
    assert isinstance(statement, QueryStatement)
    pipeline = Pipeline(plan(statement.query, catalogue), catalogue, emit, partitions=partitions_of(catalogue))
    random = Random(7)
    for second in range(frontier):
        at = to_datetime(0) + timedelta(seconds=second)
        rows: dict[str, Rows] = {
            "s": [(at, random.choice([0, 1, None]), random.choice(["a", None, "b" * 30]), random.random())],
            "c": [(at, "+-"[second % 2], 1)],
            "names": [(1, "one")] if second == 0 else [],
        }
        for name in pipeline.names:
            definition = catalogue.relations[name]
            assert isinstance(definition, StreamDefinition | TableDefinition)
            pipeline.push(name, batch_of(definition.columns, rows[name]))
        pipeline.advance()
    pipeline.flush()  # net changes are reported before anything is saved
    return pipeline


def running_leap() -> Pipeline:
    """A query whose time has leapt a month ahead with one row."""
    pipeline = running("SELECT k FROM s [RANGE 5 SECONDS]", "changes")
    columns = pipeline.inputs["s"].definition.columns
    pipeline.push("s", batch_of(columns, [(to_datetime(0) + timedelta(days=30), 1, "a", 0.5)]))
    return pipeline


def running_partitions() -> Pipeline:
    """A query over an input whose partitions are written side by side."""
    pipeline = running("SELECT k FROM s [RANGE 5 SECONDS]", "changes", 0)
    columns = pipeline.inputs["s"].definition.columns
    pipeline.gates.enter("s", ["0", "1"])
    for second, partition in enumerate("0101"):
        row = (to_datetime(0) + timedelta(seconds=second), 1, "a", 0.5)
        pipeline.push("s", batch_of(columns, [row]), partition=partition)
    pipeline.advance()
    return pipeline


def running_slides() -> Pipeline:
    """Groups of a join reported slide by slide, of which something is on disk and a slide is put off and half made."""
    windows = "s [RANGE 6 SECONDS SLIDE 2 SECONDS]"
    text = f"RSTREAM(SELECT a.k, COUNT(*) AS n FROM {windows} AS a, {windows} AS b WHERE a.k = b.k GROUP BY a.k)"
    pipeline = running(f"SET slide_join = 'incremental'; SET memory = '4 MB'; {text}", "changes", 14)
    state = slide_state(pipeline)
    assert state.reader is not None
    next(state.runs).spill(state.reader)
    (kernel,) = (each for kernels in pipeline.part._kernels for each in kernels if isinstance(each, SlideJoinKernel))
    assert kernel.spec.fold is not None
    state.works.append(SlideWork(state.at, put_off=True, groups=kernel.spec.fold.start()))
    return pipeline


def running_group() -> GroupPipeline:
    """Queries that share a join, one of which counts rows."""
    catalogue = Catalogue()
    text = f"{DECLARATIONS} SELECT a.k {PAIRS}; SELECT a.v {PAIRS.replace('ROWS 3', 'NOW')}"
    requests: list[Request] = []
    for statement in parse_statements(text, catalogue)[-2:]:
        assert isinstance(statement, QueryStatement)
        requested = sharable(statement.query, catalogue)
        assert isinstance(requested, Sharable)
        requests.append(requested)
    return _running(requests, catalogue)


def running_windows() -> GroupPipeline:
    """Queries that share a join of windows that slide and differ; tuples wait for the sample that sees them."""
    catalogue = Catalogue()
    join = "SELECT a.k FROM s [RANGE {0} SECONDS SLIDE 5 SECONDS] AS a, s [RANGE {0} SECONDS SLIDE 5 SECONDS] AS b"
    text = f"{DECLARATIONS} {join.format(5)} WHERE a.k = b.k; {join.format(10)} WHERE a.k = b.k"
    requests = []
    for statement in parse_statements(text, catalogue)[-2:]:
        assert isinstance(statement, QueryStatement)
        requested = sharable_windows(statement.query, catalogue)
        assert isinstance(requested, SharableWindows)
        requests.append(requested)
    return _running(widened(requests), catalogue)


def _running(requests: Sequence[Request], catalogue: Catalogue) -> GroupPipeline:
    group = GroupPipeline([ConsumerSpec(str(i), request, "changes") for i, request in enumerate(requests)], catalogue)
    definition = catalogue.relations["s"]
    assert isinstance(definition, StreamDefinition)
    for second in range(12):
        row = (to_datetime(0) + timedelta(seconds=second), second % 2, "a", 0.5)
        group.subplan.push("s", batch_of(definition.columns, [row]))
        group.advance()
    return group


def same(a: Any, b: Any) -> bool:
    """Equal through and through, types and array layouts included."""
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray):
        return bool(a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes())
    if isinstance(a, pa.RecordBatch):
        return bool(a.equals(b, check_metadata=True))
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    if dataclasses.is_dataclass(a):
        return all(same(getattr(a, f.name), getattr(b, f.name)) for f in dataclasses.fields(a))
    return bool(a == b)


def compacted(state: Any) -> Any:
    """As it is written: without the room that it keeps for more."""
    if isinstance(state, list | tuple):
        return type(state)(map(compacted, state))
    if isinstance(state, dict):
        return {key: compacted(item) for key, item in state.items()}
    if isinstance(state, codec.Deferred):
        return state.read()
    if not dataclasses.is_dataclass(state) or isinstance(state, type):
        return state
    state = state.compacted() if hasattr(state, "compacted") else state
    return dataclasses.replace(state, **{f.name: compacted(getattr(state, f.name)) for f in dataclasses.fields(state)})


def classes_in(state: Any) -> Iterator[type]:
    if dataclasses.is_dataclass(state):
        yield type(state)
        for f in dataclasses.fields(state):
            yield from classes_in(getattr(state, f.name))
    elif isinstance(state, list | tuple | dict):
        for item in state.values() if isinstance(state, dict) else state:
            yield from classes_in(item)


@pytest.fixture(scope="module")
def pipelines() -> list[Pipeline]:
    return [
        *(running(text, emit) for text, emit in QUERIES.items()),
        running_slides(),
        running_leap(),
        running_partitions(),
    ]


def test_every_class_of_state_comes_back_as_it_was(pipelines: list[Pipeline]) -> None:
    seen: set[type] = set()
    for pipeline in pipelines:
        back = codec.decode(codec.encode(pipeline.state), STATE_CLASSES)
        assert same(back, compacted(pipeline.state))
        seen.update(classes_in(pipeline.state))
    for group in (running_group(), running_windows()):
        for state in (group.subplan.state.part, *(branch.state for branch in group.runners)):
            assert same(codec.decode(codec.encode(state), GROUP_CLASSES), compacted(state))
            seen.update(classes_in(state))
    assert seen == {*STATE_CLASSES, ConsumerState}


ARRAYS = st.sampled_from([np.int64, np.uint8, np.float32]).flatmap(
    lambda dtype: st.lists(st.integers(0, 200), max_size=6).map(lambda values: np.array(values, dtype=dtype))
)
LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | ARRAYS
TREES = st.recursive(
    LEAVES | ARRAYS.map(lambda data: FixedColumn(data)),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3) | st.tuples(inner, inner),
    max_leaves=10,
)


@settings(max_examples=80)
@given(TREES)
def test_any_tree_comes_back(tree: Any) -> None:
    assert same(codec.decode(codec.encode(tree), STATE_CLASSES), tree)


def test_structured_and_empty_and_strided_arrays_come_back() -> None:
    pairs = np.array([(1, -2), (3, 4)], dtype=[("lo", np.uint64), ("hi", np.int64)])
    for array in (pairs, np.zeros((4, 0), dtype=np.int64), np.arange(24).reshape(2, 3, 4)[:, ::2], np.array(7)):
        back = codec.decode(codec.encode(array), ())
        assert back.dtype == array.dtype and back.shape == array.shape and (back == array).all()
        assert back.flags.writeable and back.flags.owndata


def test_slices_of_batches_are_saved_without_what_is_around_them() -> None:
    batch = pa.record_batch({"a": ["x" * 1_000] * 100, "b": list(range(100))})
    saved = codec.encode([batch.slice(7, 2)])
    assert len(saved) < 5_000
    assert codec.decode(saved, ())[0].to_pylist() == batch.slice(7, 2).to_pylist()


def test_a_thing_that_is_no_state_is_rejected_when_it_is_saved() -> None:
    with pytest.raises(TypeError):
        codec.encode({"a": object()})


# --- damage ----------------------------------------------------------------------------------------------------------


def test_a_flipped_bit_anywhere_is_damage(pipelines: list[Pipeline]) -> None:
    saved = codec.encode(pipelines[2].state)
    random = Random(11)
    for _ in range(150):
        damaged = bytearray(saved)
        damaged[random.randrange(len(saved))] ^= 1 << random.randrange(8)
        with pytest.raises(CheckpointError):
            codec.decode(bytes(damaged), STATE_CLASSES)


def test_what_was_cut_short_or_grew_is_damage(pipelines: list[Pipeline]) -> None:
    saved = codec.encode(pipelines[0].state)
    for size in [0, 1, 7, 16, 17, *range(100, len(saved), len(saved) // 60), len(saved) - 1]:
        with pytest.raises(CheckpointError):
            codec.decode(saved[:size], STATE_CLASSES)
    for other in (saved + b"\0", b"ARROW1" + saved, b"not a state at all", saved[::-1]):
        with pytest.raises(CheckpointError):
            codec.decode(other, STATE_CLASSES)


def sealed(tree: Any, blobs: list[bytes] | None = None) -> bytes:
    """Bytes of the right form that say whatever they like."""
    return b"".join(codec.sealed(tree if isinstance(tree, bytes) else json.dumps(tree).encode(), blobs or []))


def with_sizes(data: bytes, sizes: bytes, length: int | None = None) -> bytes:
    """What was sealed, with something else at its end of how long the parts are."""
    end = len(data) - 12
    before = data[: end - int.from_bytes(data[end : end + 8], "little")]
    lies = before + sizes + (len(sizes) if length is None else length).to_bytes(8, "little")
    return lies + zlib.crc32(lies).to_bytes(4, "little")


ARRAY = {"array": "<i8", "shape": [1], "at": 0}


@pytest.mark.parametrize(
    "tree",
    [
        b"{", b"\xff", [], 5, None, {}, {"array": 0}, {**ARRAY, "shape": [2]}, {**ARRAY, "shape": [-1, 3]},
        {**ARRAY, "shape": "x"}, {**ARRAY, "array": "|O"}, {**ARRAY, "array": "no type"}, {**ARRAY, "array": [["a"]]},
        {**ARRAY, "at": 9}, {**ARRAY, "at": "0"}, {"batch": True, "at": 0}, {"batch": True, "at": 4},
        {"list": 3}, {"list": [{}]},
        {"dict": [1]}, {"dict": [[[], {"v": 1}]]}, {"class": "SlotPool"}, {"class": ["SlotPool"], "version": 1},
        {"class": "SlotPool", "version": 1, "fields": {"no_such_field": {"v": 1}}},
        {"class": "EndRun", "version": 1, "fields": {}}, {"class": "os.system", "version": 1, "fields": {}},
        b'{"list": [' * 100_000,
    ],
    ids=lambda tree: str(tree)[:40],
)  # fmt: skip
def test_bytes_that_lie_are_damage(tree: Any) -> None:
    with pytest.raises(CheckpointError):
        codec.decode(sealed(tree, [bytes(8)]), (SlotPool, EndRun))


def test_bytes_of_another_form_are_rejected() -> None:
    assert codec.decode(sealed({"v": 1}), ()) == 1
    with pytest.raises(CheckpointError, match="not a saved state"):
        codec.decode(sealed({"v": 1}).replace(codec.FORMAT, b"transom-state-0\n"), ())
    right = sealed(ARRAY, [bytes(8)])
    assert with_sizes(right, b"[8]") == right
    for sizes in (b"[-8]", b"[16]", b"[7]", b"[8, 8]", b"8", b'["8"]', b"[4, 4]", b"", b"{"):
        with pytest.raises(CheckpointError):
            codec.decode(with_sizes(right, sizes), ())
    for length in (0, 2, 4, 1 << 30):
        with pytest.raises(CheckpointError):
            codec.decode(with_sizes(right, b"[8]", length), ())


def test_a_class_that_is_not_on_the_list_is_rejected() -> None:
    with pytest.raises(CheckpointError, match="Fifo"):
        codec.decode(codec.encode(Fifo.of(1)), (SlotPool,))


def test_another_version_of_a_class_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    saved = codec.encode(SlotPool())
    monkeypatch.setattr(SlotPool, "STATE_VERSION", 2, raising=False)
    with pytest.raises(CheckpointError, match="version 1, this program reads 2"):
        codec.decode(saved, (SlotPool,))
    assert codec.decode(codec.encode(SlotPool()), (SlotPool,)).high == 0


def test_a_query_rejects_damage_and_stays_as_it_was(pipelines: list[Pipeline]) -> None:
    pipeline = pipelines[0]
    before = pipeline.snapshot()
    for wrong in (before[:-5], codec.encode([1, 2]), codec.encode({"plan": None}), codec.encode("x")):
        with pytest.raises(CheckpointError):
            pipeline.restore(wrong)
    assert same(codec.decode(before, STATE_CLASSES)["state"], compacted(pipeline.state))


def test_what_is_elsewhere_is_read_when_its_bytes_are_due() -> None:
    """So no more of it than one batch is in memory."""
    happened: list[str] = []

    def deferred(number: int) -> codec.Deferred:
        def read() -> pa.RecordBatch:
            happened.append(f"read {number}")
            return pa.record_batch({"n": [number] * 1_000})

        return codec.Deferred(read)

    data = b""
    for buffer in codec.buffers([deferred(1), deferred(2)]):
        if len(buffer) > 1_000:
            happened.append("written")
        data += buffer
    assert happened == ["read 1", "written", "read 2", "written"]
    assert [batch.column(0)[0].as_py() for batch in codec.decode(data, ())] == [1, 2]
