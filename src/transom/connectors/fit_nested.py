"""Arrays and structs made to fit their declared types, part by part: a row with a part that does not fit does not.

They come as Arrow's lists and structs, or as JSON text: that of a CSV file, or of a line that needed a second look.
Of a struct every declared field must be there, by its exact name; in JSON one that is missing is NULL.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from transom.core.json_text import Number, Pairs
from transom.core.schema import VARCHAR, is_array, is_nested

Fit = Callable[[pa.Array, pa.DataType], tuple[pa.Array, tuple[int, ...]]]
"""The values in a type, and which of them do not fit; raises where no value of their type can."""


class NoNesting(Exception):
    """Values of another kind: no lists where arrays are declared, no structs where structs are."""


def fit_nested(values: pa.Array, type_: pa.DataType, fit: Fit) -> tuple[pa.Array, tuple[int, ...]]:
    """Lists or structs in a nested type, and which of them do not fit."""
    given = values.type
    if is_array(type_):
        if not _is_list(given):
            raise NoNesting
        lists = values.cast(pa.list_(given.value_type))
        begins = np.frombuffer(lists.buffers()[1], np.int32)[lists.offset : lists.offset + len(lists) + 1]
        first, last = (int(begins[0]), int(begins[-1])) if len(lists) else (0, 0)
        elements, bad = fit(lists.values.slice(first, last - first), type_.value_type)
        valid = lists.is_valid() if lists.null_count else None
        rows = np.unique(np.searchsorted(begins - first, bad, side="right") - 1) if bad else ()
        return _rebuilt(type_, len(lists), valid, [elements], begins - first), tuple(int(row) for row in rows)
    if not pa.types.is_struct(given) or any(given.get_field_index(name) < 0 for name in type_.names):
        raise NoNesting
    children, unfit = [], set[int]()
    parts = dict(zip(given.names, values.flatten(), strict=True))  # where the struct is NULL its fields are
    for field in type_:
        child, bad = fit(parts[field.name], field.type)
        children.append(child)
        unfit.update(bad)
    valid = values.is_valid() if values.null_count else None
    return _rebuilt(type_, len(values), valid, children), tuple(sorted(unfit))


def _rebuilt(
    type_: pa.DataType, rows: int, valid: pa.Array | None, children: list[pa.Array], begins: Any = None
) -> pa.Array:
    bitmap = None if valid is None else valid.buffers()[1]
    buffers = [bitmap] if begins is None else [bitmap, pa.py_buffer(begins.astype(np.int32))]
    return pa.Array.from_buffers(type_, rows, buffers, children=children)


def _is_list(type_: pa.DataType) -> bool:
    return bool(
        pa.types.is_list(type_)
        or pa.types.is_large_list(type_)
        or pa.types.is_fixed_size_list(type_)
        or pa.types.is_list_view(type_)
        or pa.types.is_large_list_view(type_)
    )


# --- JSON texts ------------------------------------------------------------------------------------------------------


def load(text: str | bytes) -> Any:
    """A JSON text with its numbers as they are written, and its objects as pairs."""
    return json.loads(text, object_pairs_hook=Pairs, parse_int=Number, parse_float=Number, parse_constant=Number)


def dumped(value: Any) -> str:
    """What `load` has given, as a JSON text again."""
    if isinstance(value, Pairs):
        return "{" + ", ".join(f"{json.dumps(name)}: {dumped(each)}" for name, each in value) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(dumped, value)) + "]"
    return str(value) if isinstance(value, Number) else json.dumps(value, ensure_ascii=False)


def lists_of_texts(texts: pa.Array, type_: pa.DataType) -> tuple[pa.Array, tuple[int, ...]]:
    """JSON texts as lists and structs of this form, what is not nested in them as text; and which are none."""
    shaped, bad = [], []
    for row, text in enumerate(texts.cast(pa.binary()).to_pylist()):
        try:
            shaped.append(None if text is None else _shaped(load(text), type_))
        except (ValueError, RecursionError):  # UnicodeDecodeError is a ValueError
            shaped.append(None)
            bad.append(row)
    return pa.array(shaped, text_form(type_)), tuple(bad)


def text_form(type_: pa.DataType) -> pa.DataType:
    """The nested type with texts for all that is not nested."""
    if is_array(type_):
        return pa.list_(text_form(type_.value_type))
    return pa.struct([(field.name, text_form(field.type)) for field in type_]) if is_nested(type_) else VARCHAR


def _shaped(value: Any, type_: pa.DataType) -> Any:
    if value is None:
        return None
    if is_nested(type_):
        if is_array(type_):
            if isinstance(value, Pairs) or not isinstance(value, list):
                raise ValueError(value)
            return [_shaped(each, type_.value_type) for each in value]
        if not isinstance(value, Pairs):
            raise ValueError(value)
        fields = dict(value)
        if len(fields) < len(value):
            raise ValueError(value)
        return {field.name: _shaped(fields.get(field.name), field.type) for field in type_}
    if isinstance(value, list):
        raise ValueError(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    value.encode("utf-8")  # half a character fails here
    return str(value)
