"""The messages of pgoutput, the logical decoding that every PostgreSQL has, as rows of one table that come and go.

They are read from the function pg_logical_slot_peek_binary_changes, in the first version of the protocol: whole
transactions, in the order in which they were committed, with every value as text.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from transom.core.errors import SourceError

TextRow = list[str | None]
"""The values of a row of the table, by the columns that were wanted."""

_EPOCH: Final = 946_684_800_000_000
"""Microseconds from 1970 to 2000, from which PostgreSQL counts."""

_UNCHANGED: Final = object()
"""A large value that was not sent, since it is what it was before."""

_SEEN: Final = b"YOMR"
"""Types, origins, messages and relations change no row."""


@dataclass
class Transaction:
    """`end` is the place in the log behind its commit, at `time` in microseconds since 1970."""

    xid: int
    end: int
    time: int
    signs: list[str] = field(default_factory=list)
    rows: list[TextRow] = field(default_factory=list)


@dataclass(frozen=True)
class _Relation:
    """A table as its rows are sent from here on: the indexes of the wanted columns. None: another table."""

    indexes: Sequence[int] | None
    names: Sequence[str]


class PgOutput:
    """`table` is the schema and the name of the wanted table. With `keyed` rows replace each other by a key, so what
    was before a change need not be known."""

    def __init__(self, table: tuple[str, str], columns: Sequence[str], keyed: bool) -> None:
        self._table = table
        self._columns = columns
        self._keyed = keyed
        self._relations: dict[int, _Relation] = {}

    def transactions(self, messages: Iterable[tuple[int, bytes]]) -> Iterator[Transaction]:
        """From messages, each with the number of its transaction."""
        current: Transaction | None = None
        for xid, message in messages:
            kind = message[:1]
            if kind == b"B":
                _, time = struct.unpack_from(">QQ", message, 1)
                current = Transaction(xid, 0, time + _EPOCH)
            elif kind == b"C":
                assert current is not None
                current.end = struct.unpack_from(">Q", message, 10)[0]
                yield current
                current = None
            elif kind == b"R":
                self._relate(message)
            elif kind in (b"I", b"U", b"D") and current is not None:
                self._change(kind, message, current)
            elif kind == b"T":
                self._truncate(message)
            elif kind not in _SEEN:
                raise SourceError(
                    f"PostgreSQL sends changes of a kind that is not known: {kind!r}", remedy="use pgoutput of 10 to 18"
                )

    def _relate(self, message: bytes) -> None:
        (number,) = struct.unpack_from(">I", message, 1)
        schema, at = _text(message, 5)
        name, at = _text(message, at)
        (count,) = struct.unpack_from(">H", message, at + 1)
        at += 3
        names = []
        for _ in range(count):
            column, at = _text(message, at + 1)
            names.append(column)
            at += 8
        indexes = None
        if (schema or "pg_catalog", name) == self._table:
            folded = [column.lower() for column in names]
            for wanted in self._columns:
                if wanted not in names and wanted.lower() not in folded:
                    raise SourceError(
                        f"the table {schema}.{name} has no column '{wanted}' any more",
                        remedy=f"it has {', '.join(names)}; declare these, and start the query anew",
                    )
            indexes = [names.index(c) if c in names else folded.index(c.lower()) for c in self._columns]
        self._relations[number] = _Relation(indexes, names)

    def _change(self, kind: bytes, message: bytes, current: Transaction) -> None:
        relation = self._relations[struct.unpack_from(">I", message, 1)[0]]
        if relation.indexes is None:
            return
        at = 5
        old: list[object] | None = None
        whole = False
        if kind != b"I" and message[at : at + 1] in (b"O", b"K"):
            whole = message[at : at + 1] == b"O"
            old, at = _tuple(message, at + 1)
        if kind != b"I" and not whole and not self._keyed:
            raise self._no_identity("what a row was before it changed")
        if old is not None:
            current.signs.append("-")
            current.rows.append(self._row(old, None, relation))
        elif kind == b"D":
            raise self._no_identity("which row was deleted")
        if kind != b"D":
            new, _ = _tuple(message, at + 1)
            current.signs.append("+")
            current.rows.append(self._row(new, old if whole else None, relation))

    def _row(self, values: list[object], before: list[object] | None, relation: _Relation) -> TextRow:
        assert relation.indexes is not None
        texts: TextRow = []
        for column in relation.indexes:
            value = values[column]
            if value is _UNCHANGED:
                value = _UNCHANGED if before is None else before[column]
            if value is _UNCHANGED:
                raise self._no_identity(f"the value of '{relation.names[column]}', which is large and did not change,")
            assert value is None or isinstance(value, str)
            texts.append(value)
        return texts

    def _truncate(self, message: bytes) -> None:
        count = struct.unpack_from(">I", message, 1)[0]
        for number in struct.unpack_from(f">{count}I", message, 6):
            if self._relations[number].indexes is not None:
                raise SourceError(
                    f"the table {'.'.join(self._table)} was truncated, which does not say which rows went",
                    remedy="start the query anew with an empty checkpoint folder; DELETE can be followed",
                )

    def _no_identity(self, what: str) -> SourceError:
        name = ".".join(self._table)
        return SourceError(
            f"the log of PostgreSQL does not have {what} of {name}",
            remedy=f"ALTER TABLE {name} REPLICA IDENTITY FULL; start the query anew with an empty checkpoint folder",
        )


def _text(message: bytes, at: int) -> tuple[str, int]:
    """A text that ends with a zero byte, and where it ends."""
    end = message.index(b"\0", at)
    return message[at:end].decode(), end + 1


def _tuple(message: bytes, at: int) -> tuple[list[object], int]:
    """The values of a row, and where they end."""
    (count,) = struct.unpack_from(">H", message, at)
    at += 2
    values: list[object] = []
    for _ in range(count):
        kind = message[at]
        at += 1
        if kind == 0x74:  # t: text
            size = int.from_bytes(message[at : at + 4])
            at += 4
            values.append(message[at : at + size].decode())
            at += size
        else:  # n: NULL; u: unchanged
            values.append(None if kind == 0x6E else _UNCHANGED)
    return values, at


def read_array(text: str) -> list[object]:
    """An array as PostgreSQL writes it.

    >>> read_array('{1,NULL,"a, b","say \\\\"hi\\\\""}'), read_array("{{1,2},{3,4}}"), read_array("{}")
    (['1', None, 'a, b', 'say "hi"'], [['1', '2'], ['3', '4']], [])
    """
    array, _ = _array(text, text.index("{") + 1)
    return array


def _array(text: str, at: int) -> tuple[list[object], int]:
    elements: list[object] = []
    while True:
        letter = text[at]
        if letter == "}":
            return elements, at + 1
        if letter == ",":
            at += 1
        elif letter == "{":
            inner, at = _array(text, at + 1)
            elements.append(inner)
        elif letter == '"':
            parts, at = [], at + 1
            while text[at] != '"':
                at += text[at] == "\\"
                parts.append(text[at])
                at += 1
            elements.append("".join(parts))
            at += 1
        else:
            start = at
            while text[at] not in ",}":
                at += 1
            elements.append(None if text[start:at] == "NULL" else text[start:at])
