"""A query over real files, read by the connectors and run by the engine in batches, the ledger checked on the way."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.run_locally import Answer, Rows, batch_of
from transom.connectors.open import open_source
from transom.core.schema import Schema
from transom.cql.statements import parse_statements
from transom.pipeline.admission import Ledger
from transom.pipeline.driver import Pipeline
from transom.plan.algebra import Node, Stream
from transom.plan.catalogue import Catalogue, QueryStatement, StreamDefinition, TableDefinition
from transom.planner.plan import plan
from transom.runtimes.reference.history import History, RelationHistory

FORMATS = ("parquet", "csv", "jsonl")


def write(path: Path, columns: Schema, rows: Rows) -> None:
    """Rows as a file of the format that its name says."""
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_batches([batch_of(columns, rows)]), path)
        return
    with path.open("w", encoding="utf-8", newline="") as file:
        if path.suffix == ".csv":
            for line in (columns.names, *rows):
                file.write(",".join(map(_quoted, line)) + "\n")
        else:
            for row in rows:
                values = {name: _plain(value) for name, value in zip(columns.names, row, strict=True)}
                file.write(json.dumps(values) + "\n")


def _quoted(value: Any) -> str:
    """NULL is nothing at all, an empty text has its quotes."""
    return "" if value is None else '"' + str(value).replace('"', '""') + '"'


def _plain(value: Any) -> Any:
    if isinstance(value, datetime | date | Decimal):
        return str(value)
    return str(value) if isinstance(value, float) and value != value else value


@dataclass
class Ran:
    """What came of a query: its answer, and where the rows of each input went."""

    query: Node
    catalogue: Catalogue
    history: History
    ledgers: dict[str, Ledger]
    reasons: dict[str, list[str]] = field(default_factory=dict)


def run(text: str, *, batch_rows: int = 1_000, emit: str = "changes") -> Ran:
    """The last statement of a text, to the end of all its files; rows of every input come in turn."""
    catalogue = Catalogue()
    statement = parse_statements(text, catalogue)[-1]
    assert isinstance(statement, QueryStatement)
    pipeline = Pipeline(plan(statement.query, catalogue), catalogue, emit)
    answer = Answer(isinstance(statement.query, Stream), emit)
    ran = Ran(statement.query, catalogue, RelationHistory(), {})
    sources = {name: _source(catalogue, name) for name in pipeline.names}
    positions: dict[str, Any] = {name: {} for name in sources}
    read = dict.fromkeys(sources, 0)
    while positions:
        for name in [*pipeline.statics, *pipeline.inputs]:
            while name in positions:
                batch = sources[name].read(positions[name], batch_rows)
                positions[name] = batch.position
                read[name] += len(batch.rows) + len(batch.rejected)
                pipeline.reject(name, len(batch.rejected))
                ran.reasons.setdefault(name, []).extend(batch.rejected.column("reason").to_pylist())
                rejected = pipeline.push(name, batch.rows)
                if rejected is not None:
                    ran.reasons[name] += rejected.reasons
                if batch.ended:
                    del positions[name]
                    pipeline.end(name)
                if name in pipeline.inputs:
                    break
        _advance(pipeline, answer, ran)
        for name in sources:
            ledger = pipeline.ledger(name)
            parts = pipeline.state.gates.inputs[name].waiting if name in pipeline.inputs else []
            waiting = sum(len(part.t) for part in parts)
            assert ledger.rows_in == read[name] and ledger.waiting == waiting, (name, ledger)
            assert ledger.late + ledger.rejected == len(ran.reasons[name]), (name, ledger, ran.reasons[name])
    _advance(pipeline, answer, ran)
    assert pipeline.finished or not any(ledger.used for ledger in map(pipeline.ledger, pipeline.inputs))
    ran.ledgers = {name: pipeline.ledger(name) for name in sources}
    ran.history = answer.history()
    return ran


def _advance(pipeline: Pipeline, answer: Answer, ran: Ran) -> None:
    output, rejected = pipeline.advance()
    for name, rows in rejected.items():
        ran.reasons[name] += rows.reasons
    if output is not None:
        answer.add(output.rows)


def _source(catalogue: Catalogue, name: str) -> Any:
    definition = catalogue.relations[name]
    assert isinstance(definition, StreamDefinition | TableDefinition)
    return open_source(definition)
