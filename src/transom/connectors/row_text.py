"""Batches as CSV or JSON-lines text, whole columns at once. The sources read back the very values that were written.

NULL is an empty field in CSV (or the null text), an empty string `""`. Timestamps and dates are ISO text, decimals are
text in JSON too, so that no reader rounds them; floats that JSON has no number for are the texts nan, inf and -inf.
Arrays and structs are JSON, in a field of CSV as well.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

_TEXT: Final = pa.large_string()  # a batch of long strings can pass the 2 GiB that a column of `string` can hold

_DAY: Final = 86_400_000_000
_JSON_ESCAPES: Final[list[tuple[str, str]]] = [("\\", "\\\\"), ('"', '\\"')] + [
    (chr(code), json.dumps(chr(code))[1:-1]) for code in range(0x20)
]


def csv_text(batch: pa.RecordBatch, delimiter: str, null: str) -> bytes:
    """The rows as CSV lines.

    >>> csv_text(pa.record_batch({"a": [1, None], "b": ["x, y", ""]}), ",", "")
    b'1,"x, y"\\n,""\\n'
    """
    if not batch.num_rows:
        return b""
    columns = []
    for values in batch.columns:
        text = value_text(values)
        if pa.types.is_string(values.type) or pa.types.is_list(values.type) or pa.types.is_struct(values.type):
            text = _csv_quoted(text, delimiter, null)
        columns.append(text.fill_null(null))
    return _joined(columns, delimiter, "\n")


def csv_header(names: Sequence[str], delimiter: str) -> bytes:
    """The names as the first line of a CSV file."""
    return csv_text(pa.record_batch([pa.array([name]) for name in names], names=list(names)), delimiter, "")


def json_text(batch: pa.RecordBatch, names: Sequence[str]) -> bytes:
    """The rows as JSON lines; a NULL is written, so that every line has every name.

    >>> json_text(pa.record_batch({"a": [1, None], "b": ["say \\"hi\\"", ""]}), ["a", "b"])
    b'{"a": 1, "b": "say \\\\"hi\\\\""}\\n{"a": null, "b": ""}\\n'
    """
    if not batch.num_rows:
        return b""
    columns: list[pa.Array | str] = []
    for at, (name, values) in enumerate(zip(names, batch.columns, strict=True)):
        columns.append(("{" if not at else ", ") + json.dumps(name, ensure_ascii=False) + ": ")
        columns.append(_json_value(values))
    return _joined([*columns, "}"], "", "\n")


def value_text(values: pa.Array) -> pa.Array:
    """Each value as text, NULL as NULL.

    >>> value_text(pa.array([0, 1_500_000], pa.timestamp("us"))).to_pylist()
    ['1970-01-01 00:00:00', '1970-01-01 00:00:01.500000']
    """
    if pa.types.is_list(values.type) or pa.types.is_struct(values.type):
        return _json_nested(values)
    if pa.types.is_duration(values.type):
        return _interval_text(values)
    text = (
        pc.cast(values, _TEXT) if not pa.types.is_decimal(values.type) else pc.cast(pc.cast(values, pa.string()), _TEXT)
    )
    if pa.types.is_timestamp(values.type) and values.type.unit == "us":
        seconds = pc.cast(values, pa.timestamp("s", values.type.tz), safe=False)
        whole = pc.equal(seconds, values)
        return pc.if_else(whole, pc.cast(seconds, _TEXT), text) if whole.true_count else text
    if pa.types.is_decimal(values.type):
        powers = pc.match_substring(text, "E").fill_null(False)
        if powers.true_count:  # 1E-10: a number, but not one that people write
            plain = [None if value is None else format(value, "f") for value in values.filter(powers).to_pylist()]
            return pc.replace_with_mask(text, powers, pa.array(plain, _TEXT))
    return text


def _interval_text(values: pa.Array) -> pa.Array:
    """Intervals as text, as DuckDB writes them.

    >>> hour = 3_600_000_000
    >>> value_text(pa.array([26 * hour, -36_000_500_000, 48 * hour, 0, None], pa.duration("us"))).to_pylist()
    ['1 day 02:00:00', '-10:00:00.5', '2 days', '00:00:00', None]
    """
    micros = values.view(pa.int64())
    days = pc.divide(micros, _DAY)
    rest = pc.subtract(micros, pc.multiply(days, _DAY))
    left = pc.abs(rest)
    parts: list[pa.Array | pa.Scalar] = [pc.if_else(pc.less(rest, 0), _large("-"), _large(""))]
    for size in (3_600_000_000, 60_000_000, 1_000_000):
        number = pc.divide(left, size)
        left = pc.subtract(left, pc.multiply(number, size))
        parts += [_padded(number, 2), _large(":" if size > 1_000_000 else "")]
    fraction = pc.replace_substring_regex(_padded(left, 6), "0+$", "")
    parts += [pc.if_else(pc.equal(left, 0), _large(""), _large(".")), fraction]
    clock = pc.binary_join_element_wise(*parts, _large(""))
    unit = pc.if_else(pc.equal(pc.abs(days), 1), _large(" day"), _large(" days"))
    long = pc.binary_join_element_wise(pc.cast(days, _TEXT), unit, _large(""))
    both = pc.binary_join_element_wise(long, clock, _large(" "))
    return pc.if_else(pc.equal(days, 0), clock, pc.if_else(pc.equal(rest, 0), long, both))


def _padded(numbers: pa.Array, width: int) -> pa.Array:
    return pc.utf8_lpad(pc.cast(numbers, _TEXT), width, "0")


def _csv_quoted(text: pa.Array, delimiter: str, null: str) -> pa.Array:
    special = pc.match_substring_regex(text, '["\r\n' + ("\\" if delimiter in "\\]^-" else "") + delimiter + "]")
    special = pc.or_(special, pc.or_(pc.equal(text, null), pc.equal(text, "")))
    if not special.true_count:
        return text
    quoted = pc.binary_join_element_wise(_large('"'), pc.replace_substring(text, '"', '""'), _large('"'), _large(""))
    return pc.if_else(special, quoted, text)


def _json_value(values: pa.Array) -> pa.Array:
    text = value_text(values)
    kind = values.type
    if pa.types.is_floating(kind):
        finite = pc.is_finite(values)
        text = pc.if_else(finite, text, _json_quoted(text))
    elif not (pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_nested(kind)):
        text = _json_quoted(text)
    return text.fill_null("null")


def _json_nested(values: pa.Array) -> pa.Array:
    """Arrays and structs as JSON, from the inside out; NULL as NULL."""
    if pa.types.is_list(values.type):
        offsets = values.offsets
        first, last = (offsets[0].as_py(), offsets[-1].as_py()) if len(values) else (0, 0)
        elements = _json_value(values.values.slice(first, last - first))
        lists = pa.ListArray.from_arrays(pc.subtract(offsets, pa.scalar(first, pa.int32())), elements)
        inner = pc.binary_join_element_wise(_large("["), pc.binary_join(lists, _large(", ")), _large("]"), _large(""))
    else:
        parts: list[pa.Array | pa.Scalar] = [_large("{")]
        for at, (field, child) in enumerate(zip(values.type, values.flatten(), strict=True)):
            parts.append(_large((", " if at else "") + json.dumps(field.name, ensure_ascii=False) + ": "))
            parts.append(_json_value(child))
        inner = pc.binary_join_element_wise(*parts, _large("}"), _large(""))
    return pc.if_else(values.is_valid(), inner, pa.scalar(None, _TEXT)) if values.null_count else inner


def _json_quoted(text: pa.Array) -> pa.Array:
    if pc.any(pc.match_substring_regex(text, r'[\x00-\x1f"\\]')).as_py():
        for character, escape in _JSON_ESCAPES:
            if pc.any(pc.match_substring(text, character)).as_py():
                text = pc.replace_substring(text, character, escape)
    return pc.binary_join_element_wise(_large('"'), text, _large('"'), _large(""))


def _large(text: str) -> pa.Scalar:
    return pa.scalar(text, _TEXT)


def _joined(columns: Sequence[pa.Array | str], between: str, end: str) -> bytes:
    """The columns side by side with `between` in between, each row followed by `end`."""
    parts = [_large(column) if isinstance(column, str) else column for column in columns]
    rows = pc.binary_join_element_wise(*parts, _large(between)) if len(parts) > 1 else parts[0]
    ended = pc.binary_join_element_wise(rows, _large(end), _large(""))
    offsets = memoryview(ended.buffers()[1]).cast("q")  # the values lie one after the other in memory
    first, last = offsets[ended.offset], offsets[ended.offset + len(ended)]
    text: bytes = ended.buffers()[2].slice(first, last - first).to_pybytes()
    return text
