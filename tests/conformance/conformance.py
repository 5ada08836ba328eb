"""Reads the conformance cases: Markdown in, rows and expected histories out. README.md reports the format."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from transom.core.schema import BOOLEAN, DATE, DURATION, JSON, VARCHAR, Schema, is_nested
from transom.core.time import from_datetime, parse_interval
from transom.plan.catalogue import Catalogue, StreamDefinition, TableDefinition
from transom.plan.no_from import ONE_ROW
from transom.runtimes.reference.history import (
    History,
    RelationHistory,
    Row,
    StreamHistory,
    canonical,
    difference,
    show,
    value_order,
)

HERE: Final = Path(__file__).parent
EPOCH: Final = datetime(1970, 1, 1)


@dataclass(frozen=True)
class Block:
    """A fenced block: the word behind the fence, its argument, and its lines without remarks."""

    kind: str
    argument: str
    text: str

    @property
    def lines(self) -> list[list[str]]:
        """The tokens of each line that has some."""
        return [tokens for tokens in map(_tokens, self.text.splitlines()) if tokens]


@dataclass(frozen=True)
class Case:
    file: str
    title: str
    only: tuple[str, ...] | None
    declarations: str
    blocks: tuple[Block, ...]

    @property
    def cql(self) -> str:
        (own,) = self.of("cql")
        return self.declarations + own.text

    def of(self, kind: str) -> list[Block]:
        return [block for block in self.blocks if block.kind == kind]


def load() -> list[Case]:
    return [case for path in sorted(HERE.glob("*.md")) if path.name != "README.md" for case in read(path)]


def read(path: Path) -> Iterator[Case]:
    above, *sections = re.split(r"^## +", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    shared = "".join(block.text for block in _blocks(above, path.name))
    for section in sections:
        title, _, body = section.partition("\n")
        only = re.search(r"^runtimes: +(.+)$", body, flags=re.MULTILINE)
        blocks = _blocks(body, f"{path.name}, {title}")
        yield Case(path.stem, title.strip(), tuple(only[1].split()) if only else None, shared, tuple(blocks))


def _blocks(text: str, where: str) -> list[Block]:
    fences = re.findall(r"^```(\w+) *(\w*) *\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)
    assert text.count("```") == 2 * len(fences), f"{where}: a fence is not closed, or has no kind"
    return [Block(*fence) for fence in fences]


def _tokens(line: str) -> list[str]:
    words = re.findall(r"#.*|'(?:[^']|'')*'|[^\s;#']+|;", line)
    return [token for token in words if not token.startswith("#")]


# --- values ----------------------------------------------------------------------------------------------------------


def instant(token: str) -> int:
    """Microseconds of `1.5` (seconds) or `2024-05-01T10:00:00`."""
    return from_datetime(moment(token))


def moment(token: str) -> datetime:
    if "T" in token:
        return datetime.fromisoformat(token)
    micros = Decimal(token) * 1_000_000
    assert micros == int(micros), token
    return EPOCH + timedelta(microseconds=int(micros))


def value(token: str, type_: pa.DataType) -> Any:
    if token == "NULL":
        return None
    if is_nested(type_):
        return json.loads(token)
    if type_ in (VARCHAR, JSON):
        return token[1:-1].replace("''", "'") if token.startswith("'") else token
    if type_ == BOOLEAN:
        return {"true": True, "false": False}[token]
    if pa.types.is_timestamp(type_):
        return moment(token).replace(tzinfo=UTC if type_.tz else None)
    if type_ == DATE:
        return date.fromisoformat(token)
    if type_ == DURATION:
        interval = parse_interval(token.strip("'"))
        assert interval is not None and not interval[0], token
        return timedelta(microseconds=interval[1])
    if pa.types.is_floating(type_):
        return float(token)
    return Decimal(token) if pa.types.is_decimal(type_) else int(token)


def row(tokens: list[str], schema: Schema) -> Row:
    assert len(tokens) == len(schema), f"{tokens} has not {len(schema)} values: {schema.names}"
    return tuple(value(token, column.type) for token, column in zip(tokens, schema, strict=True))


# --- what comes in ---------------------------------------------------------------------------------------------------


def inputs(case: Case, catalogue: Catalogue) -> dict[str, list[Row]]:
    """The rows of every input in source order, values in the order of the declared columns."""
    rows: dict[str, list[Row]] = {}
    for block in case.of("stream") + case.of("table"):
        definition = catalogue.relations[block.argument.lower()]
        assert isinstance(definition, StreamDefinition | TableDefinition)
        assert block.argument.lower() not in rows, f"two blocks for {block.argument}"
        time = [definition.time.column] if definition.time is not None else []
        order = [i for i, column in enumerate(definition.columns) if column.name in time]
        order += [i for i, column in enumerate(definition.columns) if column.name not in time]
        written = Schema(tuple(definition.columns[i] for i in order))
        rows[block.argument.lower()] = [_declared(row(tokens, written), order) for tokens in block.lines]
    if ONE_ROW in catalogue.relations:
        rows[ONE_ROW] = [(1,)]
    return rows


def _declared(values: Row, order: list[int]) -> Row:
    return tuple(values[order.index(i)] for i in range(len(order)))


# --- what must come out ----------------------------------------------------------------------------------------------


def disagreement(case: Case, schema: Schema, answer: History) -> str | None:
    """None when the answer is as expected by every `expect` block."""
    for block in case.of("expect"):
        match block.argument:
            case "changes":
                reported = difference(_changes(block, schema), answer)
            case "stream":
                reported = difference(_stream(block, schema), answer)
            case "snapshots":
                reported = _snapshots(block, schema, answer)
            case "ledger":
                reported = _ledger(block, answer)
            case _:
                raise AssertionError(f"unknown expectation: {block.argument}")
        if reported is not None:
            return reported
    return None


def _changes(block: Block, schema: Schema) -> RelationHistory:
    signs = {"+": 1, "-": -1}
    return RelationHistory.of_changes((instant(t), signs[sign], row(rest, schema)) for t, sign, *rest in block.lines)


def _stream(block: Block, schema: Schema) -> StreamHistory:
    return StreamHistory.of((instant(t), row(rest, schema)) for t, *rest in block.lines)


def _snapshots(block: Block, schema: Schema, answer: History) -> str | None:
    assert isinstance(answer, RelationHistory)
    for tokens in block.lines:
        assert tokens[0] == "at" and tokens[1].endswith(":"), tokens
        written = " ".join(tokens[2:])
        parts = [] if written == "nothing" else [_tokens(part) for part in written.split(" ; ")]
        expected = Counter(canonical(row(part, schema)) for part in parts)
        given = answer.snapshot(instant(tokens[1].removesuffix(":")))
        if given != expected:
            shown = [" ".join(map(show, sorted(bag.elements(), key=value_order))) for bag in (expected, given)]
            return f"the snapshot at {tokens[1]}\n  expected: {shown[0]}\n  given:    {shown[1]}"
    return None


def _ledger(block: Block, answer: History) -> str | None:
    for name, late, n_late, rejected, n_rejected in block.lines:
        assert (late, rejected) == ("late", "rejected")
        given = (answer.late.get(name.lower()), answer.rejected.get(name.lower()))
        if given != (int(n_late), int(n_rejected)):
            return f"{name}: expected {n_late} late and {n_rejected} rejected, given {given[0]} and {given[1]}"
    return None
