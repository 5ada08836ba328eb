"""JSON lines as columns, by Arrow's reader where it can and line by line where it cannot.

Arrow's reader takes a whole split or fails on it. On failure the split is halved until a few lines are left, and
these are visited in Python, so a file of good lines is never touched line by line. What the visit takes contains what
the reader takes, with the same values: how a row is read never depends on its neighbours.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.json

from transom.connectors.conform import DeclaredRows, ParsedRows, fold
from transom.connectors.fit_nested import dumped, load
from transom.connectors.json_scan import Quotes, may_be_huge, quoted_name
from transom.connectors.lines import Cut, RecordSplit, records_at, split_lines
from transom.core.delta import Int64s
from transom.core.json_text import Pairs, read, written
from transom.core.schema import BOOLEAN, DOUBLE, JSON, TIMESTAMP, TIMESTAMPTZ, VARCHAR, is_array, is_nested

_FEW: Final = 8
_ESCAPED_LETTER: Final = re.compile(rb"\\u00[4-7]")
_HUGE: Final = re.compile(rb'[0-9.]{39,}|[0-9.][eE][+-]?[0-9]+"?\s*[,}]')
"""A number of more digits than a decimal has, or with an exponent: it might overflow where the reader does not look."""


class _Malformed(Exception):
    """The line is no JSON object, or not one that a row can be made of."""


@dataclass(frozen=True)
class JsonLines:
    """If it is `closed`, a line has no field that is not declared."""

    declared: DeclaredRows
    closed: bool = False

    @property
    def blank_is_row(self) -> bool:
        return False

    def split(self, data: bytes, last: bool) -> Cut:
        return split_lines(data, last)

    def parsed(self, records: RecordSplit) -> tuple[list[ParsedRows], dict[int, str]]:
        """The declared columns, each in a type near its own or as text, and what is wrong with lines that have none."""
        if not len(records):
            return [], {}
        wrong = dict(records.broken)
        spelling = _spelling(records, self.declared)
        good = np.ones(len(records), dtype=bool)
        good[list(wrong)] = False
        odd = [row for row in _odd_lines(records, spelling, self.declared) if good[row]]
        good[odd] = False
        data, starts = records.only(good)
        numbers = np.flatnonzero(good)
        parsed = []
        visit = list(odd)
        for first, behind, columns in _parse_halving(data, starts, spelling, self.declared, self.closed):
            if columns is None:
                visit += numbers[first:behind].tolist()
            else:
                parsed.append(ParsedRows(numbers[first:behind], columns))
        taken, texts, deep = _visit(records, sorted(visit), self.declared, wrong, self.closed)
        if taken:
            parsed.append(ParsedRows(np.array(taken), [pa.array(column, VARCHAR) for column in texts]))
        for row in deep:  # deeper than Python goes; Arrow's reader may still skip over it, if it knows the names
            skipped = None if row in odd else _parse(records.raw(row), 1, spelling, self.declared, self.closed)
            if skipped is None:
                wrong[row] = "is nested too deeply"
            else:
                parsed.append(ParsedRows(np.array([row]), skipped))
        return parsed, wrong


def _spelling(records: RecordSplit, declared: DeclaredRows) -> list[str]:
    """How the columns are spelt in this split, judged by its first line that can be read."""
    for row in range(min(len(records), _FEW)):
        try:
            seen = {fold(name): name for name, _ in _load(records.raw(row))}
        except (_Malformed, RecursionError):
            continue
        return [seen.get(fold(column.name), column.name) for column in declared.columns]
    return declared.columns.names


def _odd_lines(records: RecordSplit, spelling: Sequence[str], declared: DeclaredRows) -> list[int]:
    """Lines for which Arrow's reader would be the wrong judge.

    It takes two objects on a line, or one on two lines; it knows a name in one spelling only; Inf and -NaN are numbers;
    decimals overflow without a word.
    """
    buffer = np.frombuffer(records.data, np.uint8)
    framed = (buffer[records.starts] == ord("{")) & (buffer[records.ends - 1] == ord("}"))
    if JSON in declared.columns.types:  # of which the reader would want to know what is in it
        return list(range(len(records)))
    odd = set(np.flatnonzero(~framed).tolist())
    positions: list[int] = []
    quotes = Quotes(buffer)
    if other := [name for name in spelling if quotes.may_spell_otherwise(name)]:
        lowered = records.data.lower()
        for name in other:
            quoted = quoted_name(name)
            if lowered.count(quoted.lower()) != records.data.count(quoted):
                names = re.finditer(re.escape(quoted.lower()) + rb"\s*:", lowered)
                positions += [at.start() for at in names if not records.data.startswith(quoted, at.start())]
    if b"\\" in records.data and b"\\u00" in records.data:  # one byte is looked for ten times as fast as several
        positions += [at.start() for at in _ESCAPED_LETTER.finditer(records.data)]
    if (b"I" in records.data and b"Inf" in records.data) or (b"N" in records.data and b"-N" in records.data):
        positions += [at.start() for at in re.finditer(rb"Inf|-N", records.data)]
    if any(pa.types.is_decimal(column.type) for column in declared.columns) and may_be_huge(buffer):
        positions += [at.start() for at in _HUGE.finditer(records.data)]
    return sorted(odd.union(records_at(records, np.array(positions, dtype=np.int64)) if positions else ()))


def _parse_halving(
    data: bytes, starts: Int64s, spelling: Sequence[str], declared: DeclaredRows, closed: bool
) -> Iterator[tuple[int, int, list[pa.Array] | None]]:
    """The records in parts [first, behind): those that Arrow's reader takes, with their columns, and a few (None)."""
    pending = [(0, len(starts) - 1)] if len(starts) > 1 else []
    while pending:
        first, behind = pending.pop()
        columns = _parse(data[starts[first] : starts[behind]], behind - first, spelling, declared, closed)
        if columns is not None or behind - first <= _FEW:
            yield first, behind, columns
        else:
            middle = (first + behind) // 2
            pending += [(middle, behind), (first, middle)]


def _parse(
    data: bytes, count: int, spelling: Sequence[str], declared: DeclaredRows, closed: bool
) -> list[pa.Array] | None:
    others = "error" if closed else "ignore"
    schema = pa.schema([(name, _near(c.type, declared)) for name, c in zip(spelling, declared.columns, strict=True)])
    try:
        table = pyarrow.json.read_json(
            pa.BufferReader(data),
            read_options=pyarrow.json.ReadOptions(use_threads=False, block_size=len(data) + 1),
            parse_options=pyarrow.json.ParseOptions(explicit_schema=schema, unexpected_field_behavior=others),
        )
        columns = [pa.concat_arrays(table.column(name).chunks) for name in spelling]
        for at, column in enumerate(declared.columns):
            if pa.types.is_decimal(column.type):  # the reader minds the scale of a decimal, not how many digits it has
                columns[at] = columns[at].cast(column.type)
    except pa.ArrowInvalid:
        return None
    return columns if table.num_rows == count else None


def _near(type_: pa.DataType, declared: DeclaredRows) -> pa.DataType:
    """The type that Arrow's reader is asked for: one whose reading cannot lose anything."""
    if is_array(type_):
        return pa.list_(_near_part(type_.value_type, declared))
    if is_nested(type_):
        return pa.struct([(field.name, _near_part(field.type, declared)) for field in type_])
    if type_ in (TIMESTAMP, TIMESTAMPTZ) and declared.time_unit is not None:
        return pa.int64()
    if pa.types.is_floating(type_):
        return DOUBLE
    if pa.types.is_decimal(type_):
        return pa.decimal256(76, type_.scale)
    if pa.types.is_integer(type_) or type_ == BOOLEAN:
        return type_
    return VARCHAR


def _near_part(type_: pa.DataType, declared: DeclaredRows) -> pa.DataType:
    """Of a part of an array or struct; nobody would look at the digits of its decimals afterwards."""
    return VARCHAR if pa.types.is_decimal(type_) else _near(type_, declared)


def _visit(
    records: RecordSplit, rows: list[int], declared: DeclaredRows, wrong: dict[int, str], closed: bool
) -> tuple[list[int], list[list[str | None]], list[int]]:
    """The rows read one by one: those that can be, their columns as text, and those too deep. Adds to `wrong`."""
    names = {fold(column.name): at for at, column in enumerate(declared.columns)}
    taken: list[int] = []
    texts: list[list[str | None]] = [[] for _ in declared.columns]
    deep: list[int] = []
    for row in rows:
        try:
            values = _values(_load(records.raw(row)), names, declared, closed)
        except RecursionError:
            deep.append(row)
        except _Malformed as error:
            wrong[row] = str(error)
        else:
            taken.append(row)
            for column, value in zip(texts, values, strict=True):
                column.append(value)
    return taken, texts, deep


def _load(raw: bytes) -> Pairs:
    try:
        row = load(raw.decode("utf-8"))
    except ValueError as error:
        raise _Malformed(f"is not valid JSON: {error}") from None
    if not isinstance(row, Pairs):
        raise _Malformed("is not a JSON object")
    return row


def _values(pairs: Pairs, names: dict[str, int], declared: DeclaredRows, closed: bool) -> list[str | None]:
    values: list[str | None] = [None] * len(names)
    seen: set[int] = set()
    for name, value in pairs:
        at = names.get(fold(name))
        if at is None and closed:
            raise _Malformed(f"has a field '{name}', which is not declared")
        if at is None:
            continue
        if at in seen:
            raise _Malformed(f"has field '{name}' twice")
        seen.add(at)
        if value is not None and declared.columns[at].type == JSON:
            try:
                values[at] = written(read(dumped(value)))
            except ValueError:
                name = declared.columns[at].name
                raise _Malformed(f"has NaN or half a character within column '{name}', which is JSON") from None
        elif isinstance(value, list) and is_nested(declared.columns[at].type):
            values[at] = dumped(value)
        elif isinstance(value, list):
            kind = "an object" if isinstance(value, Pairs) else "an array"
            raise _Malformed(f"has {kind} in column '{declared.columns[at].name}'")
        elif isinstance(value, bool):
            values[at] = "true" if value else "false"
        elif value is not None:
            try:
                value.encode("utf-8")
            except UnicodeEncodeError:
                name = declared.columns[at].name
                raise _Malformed(f"has half a character (a lone surrogate) in column '{name}'") from None
            values[at] = str(value)
    return values
