"""What a checkpoint names: the queries that wrote it, what they read and where they write, and a format version.

State is resumed under the law that it was made under, or not at all: so everything on which an answer depends must
be what it was. What changes no answer may change from run to run: how many rows or files a step takes, how fast the
disk is said to be, and the rate of a stream, on which plans rest (a plan that is in use stays as it is).

It is written as JSON that people can read; a difference is rejected by the name that it has there.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from transom.core.errors import CheckpointError
from transom.core.location import local_path, real_path, storage_path
from transom.core.schema import Column, Schema, sql_name
from transom.core.secrets import taken
from transom.core.time import format_duration, format_instant
from transom.cql.type_text import type_of_name
from transom.kernels.operator import scanned
from transom.plan.algebra import StreamScan, TableScan
from transom.plan.catalogue import InsertStatement, QueryStatement, StreamDefinition, TableDefinition
from transom.plan.options import OPTIONS
from transom.plan.python_function import functions_in
from transom.program.run import QuerySpec
from transom.program.taken_columns import TakenColumns

FORMAT: Final = 4
"""The version of everything that is written into a checkpoint folder; another one is rejected."""

MAY_CHANGE: Final = frozenset(
    {"batch_rows", "batch_files", "disk_speed", "latency", "partitions", "step_budget", "tasks"}
)
"""Options on which no answer depends; a query that goes on has as many partitions as it had."""

Facts = dict[str, Any]

_ANEW: Final = "start with an empty checkpoint folder"


@dataclass(frozen=True)
class Manifest:
    """What each query is, by its name; and by their names what its inputs, its options and its sink are.

    `columns` are those that were taken from files, by the name of the input: the path, and names with their types.
    To an `open` run queries come while it goes on, and leave it.
    """

    runtime: str
    queries: dict[str, dict[str, Facts]]
    columns: dict[str, Facts] = field(default_factory=dict)
    open: bool = False

    def text(self) -> str:
        return json.dumps({"format": FORMAT, **vars(self)}, indent=2, ensure_ascii=False) + "\n"

    @staticmethod
    def of(
        runtime: str, specs: Sequence[QuerySpec], shared: Collection[str] = (), *, is_open: bool = False
    ) -> Manifest:
        """`shared` are the queries that share a join with others, of which any but one may come and go."""
        columns = {
            name: _taken(definition) for spec in specs for name, definition in _inputs(spec) if definition.of_files
        }
        queries = {spec.name: _facts_of(spec, spec.name in shared) for spec in specs}
        return Manifest(runtime, queries, columns, is_open)

    @staticmethod
    def read(text: str, folder: str) -> Manifest:
        """What was written into a folder; rejected if this version cannot know what it means."""
        try:
            written = json.loads(text)
            if written["format"] != FORMAT:
                raise CheckpointError(
                    f"the checkpoint in '{folder}' has format {written['format']}, and this version of Transom reads "
                    f"format {FORMAT}",
                    remedy=f"go on with the version of Transom that wrote it, or {_ANEW}",
                )
            queries = {
                name: {about: dict(facts) for about, facts in facts_of.items()} for name, facts_of in _items(written)
            }
            return Manifest(
                str(written["runtime"]), queries, written.get("columns", {}), bool(written.get("open", False))
            )
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            raise CheckpointError(
                f"what the checkpoint in '{folder}' is for cannot be read: its manifest is damaged",
                remedy=f"put it back from a copy, or {_ANEW}",
            ) from None

    def reject_another(self, other: Manifest) -> None:
        """Raise for whatever of this one, which was written, is not so in the other one."""
        if self.open != other.open:
            which = "queries that come and go" if self.open else "queries that begin together"
            raise CheckpointError(
                f"the checkpoint was written by {which}, and is to be resumed by others",
                remedy=f"{'add them within session.together(..)' if self.open else 'start them as before'}, or {_ANEW}",
            )
        for having, lacking, gone in ((self, other, "is not there now"), (other, self, "was not there")):
            names = [
                name for name in having.queries if name not in lacking.queries and not having._comes_and_goes(name)
            ]
            if names:
                text = ", ".join(f"'{name}'" for name in names)
                raise CheckpointError(
                    f"the checkpoint was written by other queries: {text} {gone}",
                    remedy=f"run the queries that wrote it, or {_ANEW}",
                )
        differences = list(dict.fromkeys(self._differences(other)))
        if differences:
            raise CheckpointError(
                f"the checkpoint was written {'; and '.join(differences)}", remedy=f"write it as it was, or {_ANEW}"
            )

    def after(self, before: Manifest) -> Manifest:
        """The manifest with queries that have left sinks with rows: whoever comes by their names goes on there."""
        sunk = {
            name: about for name, about in before.queries.items() if any(fact.startswith("sink ") for fact in about)
        }
        return Manifest(self.runtime, sunk | self.queries, self.columns, self.open)

    def taken(self) -> dict[str, TakenColumns]:
        """The columns that were taken from files."""
        return {
            name: TakenColumns(
                facts["path"], Schema(tuple(Column(each, type_of_name(kind)) for each, kind in facts["columns"]))
            )
            for name, facts in self.columns.items()
        }

    def _comes_and_goes(self, name: str) -> bool:
        """Whether a query may be gone or new: in this process, those that share a join come and go from run to run."""
        return self.open or (
            self.runtime == "local" and bool(self.queries[name][_query(name)].get("shared with others"))
        )

    def _differences(self, other: Manifest) -> Iterator[str]:
        for name in self.queries:
            if name not in other.queries:
                continue
            now = other.queries[name]
            for about, facts in self.queries[name].items():
                for fact in {**facts, **now.get(about, {})}:
                    was, is_now = facts.get(fact), now.get(about, {}).get(fact)
                    if was != is_now and about != _query(name):
                        yield f"with {_differs(fact, about, was, is_now)}"
            yield from _other_query(name, self.queries[name][_query(name)], now[_query(name)])


def _other_query(name: str, was: Facts, now: Facts) -> Iterator[str]:
    """The text is there to be shown, and the plan to be compared: blanks and comments make no other query."""
    for fact in was:
        if fact not in ("text", "plan") and was[fact] != now.get(fact):
            yield f"with {_differs(fact, _query(name), was[fact], now.get(fact))}"
    if was["plan"] != now["plan"]:
        yield f"by another query '{name}': {was['text']}"


def _differs(fact: str, about: str, was: Any, now: Any) -> str:
    text = f"no {fact}" if was is None else f"{fact} {was}"
    return f"{text} for {about}, and it {'has none' if now is None else f'is {now}'} now"


def _items(written: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, facts_of in written["queries"].items():
        if not {"text", "plan"} <= set(facts_of[_query(name)]):
            raise KeyError(name)
        yield name, facts_of


def _query(name: str) -> str:
    return f"query '{name}'"


# --- what is so ------------------------------------------------------------------------------------------------------


def _inputs(spec: QuerySpec) -> Iterator[tuple[str, StreamDefinition | TableDefinition]]:
    """What a query reads, by names in lower case."""
    assert spec.planned.root is not None
    for operator in spec.planned.root.walk():
        if isinstance(operator.node, StreamScan | TableScan):
            definition = spec.planned.catalogue.relations[scanned(operator)]
            assert isinstance(definition, StreamDefinition | TableDefinition)
            yield definition.name.lower(), definition


def _taken(definition: StreamDefinition | TableDefinition) -> Facts:
    stamped = definition.time.column if isinstance(definition, StreamDefinition) and definition.arrival_time else None
    columns = [[column.name, sql_name(column.type)] for column in definition.columns if column.name != stamped]
    return {"path": real_path(storage_path(taken(definition.properties["path"]) or "")), "columns": columns}


def _facts_of(spec: QuerySpec, shared: bool) -> dict[str, Facts]:
    planned = spec.planned
    assert planned.root is not None
    statement = planned.statement
    assert isinstance(statement, InsertStatement | QueryStatement)
    facts_of: dict[str, Facts] = {}
    for name, definition in _inputs(spec):
        kind = "stream" if isinstance(definition, StreamDefinition) else "table"
        facts_of[f"{kind} '{name}'"] = _input(definition)
    if planned.sink is not None:
        facts_of[f"sink '{planned.sink.name}'"] = _properties(planned.sink.properties)
    facts_of[_query(spec.name)] = {
        "text": " ".join(statement.text.split()),
        "plan": hashlib.sha256(repr(statement.query).encode()).hexdigest()[:16],
        "emit": repr(spec.emit),
        **{f"SET {name}": value for name, value in _options(planned.catalogue.options).items()},
        "a folder of rejected rows": _side(spec),
        **{
            f"version of the function '{function.name}'": repr(function.version)
            for function in functions_in(statement.query)
        },
        "shared with others": shared,
    }
    return facts_of


def _input(definition: StreamDefinition | TableDefinition) -> Facts:
    stamped = isinstance(definition, StreamDefinition) and definition.arrival_time
    table = definition if isinstance(definition, TableDefinition) else None
    return {
        "columns": ", ".join(f"{column.name} {sql_name(column.type)}" for column in definition.columns),
        "time": None if definition.time is None else "of arrival" if stamped else repr(definition.time.column),
        "WATERMARK bound": None if definition.time is None else format_duration(definition.time.bound),
        "late": repr(definition.late),
        "NOT NULL": ", ".join(definition.not_null) or None,
        **{name: None if said is None else format_duration(said) for name, said in _by_clock(definition)},
        "change column": None if table is None else table.change_column,
        "primary key": None if table is None or not table.primary_key else ", ".join(table.primary_key),
        **_properties(definition.properties),
    }


def _by_clock(definition: StreamDefinition | TableDefinition) -> list[tuple[str, int | None]]:
    return [("idle", definition.idle), ("heartbeat", definition.heartbeat), ("ahead", definition.ahead)]


def _properties(properties: Mapping[str, str]) -> Facts:
    """The properties as they are written, but for paths: the same one may mean another place tomorrow."""
    return {
        name: repr(real_path(storage_path(text)) if name == "path" else text)
        for name, text in sorted(properties.items())
    }


def _options(options: Mapping[str, Any]) -> Facts:
    facts: Facts = {}
    for name, option in OPTIONS.items():
        if name in MAY_CHANGE:
            continue
        value = options.get(name, option.default)
        if name == "tick":
            value = format_duration(value)
        elif name == "origin" and value is not None:
            value = format_instant(value)
        elif name == "spill" and value is not None:
            value = os.path.realpath(local_path(value))
        facts[name] = value
    return facts


def _side(spec: QuerySpec) -> str | None:
    """Rows that are rejected go to files, or are kept nowhere that lasts."""
    path = None if spec.open_dead_letters is None else spec.open_dead_letters.path
    return None if path is None else repr(os.path.join(real_path(path), ""))
