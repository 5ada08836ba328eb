"""What the first rows of inputs report of them, which inputs are looked at, and that nothing comes of it but a plan."""

from __future__ import annotations

import os
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from transom.connectors.connector import Limits, Plan, Source
from transom.connectors.memory import MemorySource
from transom.connectors.source import Growing, Position
from transom.cql.statements import bind_query, parse_statements
from transom.kernels.multiway.node import MultiwayJoin
from transom.kernels.multiway.statistics import JoinStatistics, Machine
from transom.plan.catalogue import Catalogue, StreamDefinition, TableDefinition
from transom.planner.plan import plan
from transom.planner.statistics import RATE
from transom.program.inputs import SessionInputs
from transom.program.sample import Peek, peeked
from transom.program.statistics import SampledStatistics
from transom.session import Session, workspace_of

THREE = "a [10 SECONDS], b [10 SECONDS], c [10 SECONDS]"
ONE_KEY = f"SELECT a.k FROM {THREE} WHERE a.k = b.k AND b.k = c.k"


def rows(keys: Any, per_second: float = 10.0, first: float = 0.0) -> pa.Table:
    times = ((first + np.arange(len(keys)) / per_second) * 1e6).astype(np.int64)
    return pa.table(
        {"ts": pa.array(times, pa.timestamp("us")), "k": pa.array(keys, pa.int64()), "v": np.arange(len(keys))}
    )


def statistics(query: str, tables: dict[str, pa.Table], rates: dict[str, float] | None = None) -> JoinStatistics:
    """Of the one join of the query; every input is a stream by its column ts, or a table if it has none."""
    catalogue = Catalogue(options={"multiway": "mjoin"})
    sources: dict[str, MemorySource] = {}
    for name, table in tables.items():
        stream = "ts" in table.column_names
        columns = ", ".join(f"{c} {'TIMESTAMP' if c == 'ts' else 'BIGINT'}" for c in table.column_names)
        rate = f"WITH (rate = {(rates or {})[name]})" if name in (rates or {}) else ""
        text = f"CREATE STREAM {name} ({columns}, WATERMARK FOR ts AS ts) {rate}"
        parse_statements(text if stream else f"CREATE TABLE {name} ({columns})", catalogue)
        definition = catalogue.relations[name]
        assert isinstance(definition, StreamDefinition | TableDefinition)
        sources[name] = MemorySource(definition.columns, time_column="ts" if stream else None)
        for batch in table.to_batches():
            sources[name].append(batch)
    root = plan(bind_query(query, catalogue), catalogue)
    (node,) = [each.node for each in root.walk() if isinstance(each.node, MultiwayJoin)]
    return SampledStatistics(catalogue, lambda d: sources[d.name], Machine).join(node)


def test_rates_windows_and_matches_are_those_of_the_rows() -> None:
    random = np.random.default_rng(1)
    tables = {"a": rows(random.integers(0, 50, 1000)), "b": rows(random.integers(0, 50, 1000)),
              "c": rows(random.integers(0, 50, 4000), 40)}  # fmt: skip
    of_join = statistics(ONE_KEY, tables)
    assert [of_input.origin for of_input in of_join.inputs] == ["sampled"] * 3
    assert [round(of_input.rate) for of_input in of_join.inputs] == [10, 10, 40]
    assert [round(of_input.alive) for of_input in of_join.inputs] == [100, 100, 400]
    assert 1.6 < of_join.found_by(0, 0b011) < 2.4 and 6.5 < of_join.found_by(0, 0b101) < 9.5
    assert 100 < of_join.alive(0b011) < 300 and 12 < of_join.found_by(0, 0b111) < 20


def test_keys_that_move_on_with_time_are_found_by_the_last_of_their_rows() -> None:
    counter = {name: rows(np.arange(1000), first=i / 100) for i, name in enumerate("abc")}
    of_join = statistics(ONE_KEY, counter)
    assert 90 < of_join.alive(0b111) <= 101
    assert 9 < of_join.births(0b111) < 12  # once a round, not once a row


def test_a_window_longer_than_the_sample_is_reckoned_up() -> None:
    hour = ONE_KEY.replace("10 SECONDS", "1 HOUR")
    random = np.random.default_rng(2)
    few = statistics(hour, {name: rows(random.integers(0, 50, 3000)) for name in "abc"})
    assert 400 < few.found_by(0, 0b011) < 1000  # of 36,000 rows with 50 keys 720
    counter = statistics(hour, {name: rows(np.arange(3000), first=i / 100) for i, name in enumerate("abc")})
    assert counter.found_by(0, 0b011) < 2


def test_filters_row_windows_and_tables_count() -> None:
    query = """
        SELECT a.k FROM a [ROWS 20], b [PARTITION BY k ROWS 2], c
        WHERE a.k = b.k AND b.k = c.k AND a.v % 4 = 0 AND b.v < c.v
    """
    tables = {"a": rows(np.arange(1000) % 10), "b": rows(np.arange(1000) % 10)}
    tables["c"] = pa.table({"k": np.arange(10), "v": np.full(10, 500)})
    of_join = statistics(query, tables)
    assert of_join.inputs[0].rate == pytest.approx(2.5, rel=0.1) and of_join.inputs[0].alive == 5
    assert of_join.inputs[1].alive == 20 and (of_join.inputs[2].rate, of_join.inputs[2].alive) == (0, 10)
    ((over, share),) = of_join.residual
    assert over == 0b110 and 0.4 < share < 0.6


def test_what_is_declared_has_the_word_and_what_nobody_knows_is_like_the_others() -> None:
    tables = {"a": rows(np.arange(100)), "b": rows(np.arange(100)), "c": rows([])}
    of_join = statistics(ONE_KEY, tables, {"a": 500})
    assert [(of_input.rate, of_input.origin) for of_input in of_join.inputs[:1]] == [(500.0, "declared")]
    assert of_join.inputs[1].origin == "sampled" and of_join.inputs[1].rate == pytest.approx(10, rel=0.1)
    assert of_join.inputs[2].origin == "assumed" and of_join.inputs[2].rate == pytest.approx(255, rel=0.1)
    nothing = statistics(ONE_KEY, dict.fromkeys("abc", rows([])))
    assert [of_input.rate for of_input in nothing.inputs] == [RATE] * 3 and not nothing.has_facts


def test_streams_of_another_time_are_taken_to_begin_together() -> None:
    far = {
        "a": rows(np.arange(500) % 7),
        "b": rows(np.arange(500) % 7, first=1e6),
        "c": rows(np.arange(500) % 7, first=9e6),
    }
    assert 12 < statistics(ONE_KEY, far).found_by(0, 0b011) < 17


class Broken(MemorySource):
    def plan(self, position: Position, limits: Limits, *, growing: Growing = False) -> Plan:
        raise OSError("gone")


@pytest.mark.parametrize("error", ["source", "predicate"])
def test_what_goes_wrong_is_no_error(error: str) -> None:
    if error == "predicate":
        tables = dict.fromkeys("abc", rows(np.full(50, 2**62)))
        of_join = statistics(ONE_KEY + " AND a.k + b.k > c.k", tables)
        assert of_join.has_facts and 0 < of_join.residual[0][1] < 1
        return
    catalogue = Catalogue(options={"multiway": "mjoin"})
    for name in "abc":
        parse_statements(f"CREATE STREAM {name} (ts TIMESTAMP, k BIGINT, WATERMARK FOR ts AS ts)", catalogue)
    root = plan(bind_query(ONE_KEY, catalogue), catalogue)
    (node,) = [each.node for each in root.walk() if isinstance(each.node, MultiwayJoin)]
    broken: Peek = lambda definition: Broken(definition.columns, time_column=None)  # noqa: E731
    assert not SampledStatistics(catalogue, broken, Machine).join(node).has_facts


# --- which sources are looked at -------------------------------------------------------------------------------------


def test_a_generator_of_the_program_is_not_consumed() -> None:
    read: list[int] = []

    def numbers(name: str) -> Any:
        for i in range(20):
            read.append(i)
            yield {"ts": datetime(2024, 5, 1) + timedelta(seconds=i), "k": i % 3}

    session = Session()
    for name in "abc":
        session.stream(name, numbers(name), time="ts")
    polled_at = len(read)
    reported = session.explain(ONE_KEY)
    assert "rates 100, 100, 100 rows a second (assumed)" in reported and len(read) == polled_at
    assert len(session.run(ONE_KEY)) > 0 and len(read) == 60


def test_only_a_join_of_many_inputs_is_looked_into(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    peek = SessionInputs.peek

    def reported(self: Any, definition: StreamDefinition | TableDefinition) -> Source | None:
        opened.append(definition.name)
        return peek(self, definition)

    monkeypatch.setattr("transom.program.inputs.SessionInputs.peek", reported)
    session = Session()
    for name in "abc":
        session.stream(name, rows(np.arange(30)), time="ts")
    session.explain("SELECT a.k FROM a [NOW], b [NOW] WHERE a.k = b.k")
    session.explain(f"SET multiway = 'mjoin'; {ONE_KEY}")
    assert opened == []
    session.explain(f"SET multiway = 'auto'; {ONE_KEY}")
    assert sorted(opened) == ["a", "b", "c"]


def test_pipes_and_live_rows_are_left_alone(tmp_path: Path) -> None:
    catalogue = Catalogue()
    pipe, file = tmp_path / "pipe.csv", tmp_path / "file.csv"
    os.mkfifo(pipe)
    file.write_text("k\n1\n")
    declared = {
        "pipe": f"connector = 'files', path = '{pipe}'",
        "file": f"connector = 'files', path = '{file}'",
        "live": "connector = 'generator', live = 'true'",
        "made": "connector = 'generator'",
    }
    for name, options in declared.items():
        parse_statements(f"CREATE STREAM {name} (k BIGINT) WITH (time = 'arrival', {options})", catalogue)
    definitions = [catalogue.relations[name] for name in declared]
    assert [peeked(d) is not None for d in definitions if isinstance(d, StreamDefinition)] == [False, True, False, True]


def test_explain_and_a_run_decide_alike(tmp_path: Path) -> None:
    random = np.random.default_rng(3)
    session = Session()
    session.stream("a", rows(random.integers(0, 40, 4000), 100), time="ts")
    for name in "bc":
        session.stream(name, rows(random.integers(0, 40, 40), 1), time="ts")
    (explained,) = workspace_of(session).prepare(f"EXPLAIN {ONE_KEY}")
    (run,) = workspace_of(session).prepare(ONE_KEY)
    assert explained.decisions == run.decisions and len(run.decisions) == 1
    assert "(sampled)" in session.explain(ONE_KEY)
