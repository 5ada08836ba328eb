"""Paths into JSON texts, and JSON as values of other types: once for each distinct text, by Python's own reader."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from transom.core.json_text import Number, Pairs, in_64_bits, is_whole, read, written
from transom.core.schema import BOOLEAN, DOUBLE, HUGEINT, VARCHAR, held_type
from transom.kernels.scalar.values import Kernel, Value, as_arrays, reject_rows
from transom.plan.expression import Call, Literal
from transom.plan.json_functions import Step, steps
from transom.plan.typing_rules import is_integer

_NOTHING: Final = object()
Converted = tuple[pa.Array, pa.Array | None]


def json_function(call: Call) -> Kernel:
    """The function of the value at the path, or of the whole."""
    _, *path = call.arguments
    way = steps(path[0].value) if path and isinstance(path[0], Literal) else ()
    function = _FUNCTIONS[call.function]

    def of_text(text: str) -> Any:
        value = _at(read(text), way)
        return None if value is _NOTHING else function(value)

    def run(text: Value, *paths: Value) -> Value:
        (texts,) = as_arrays((text,))
        results, bad, rows = _of_distinct(texts, of_text)
        reject_rows(call, "it is no JSON", (texts,), bad.take(rows).fill_null(False))
        return pa.array(results, held_type(call.type)).take(rows)

    return run


def _of_distinct(texts: pa.Array, function: Callable[[str], Any]) -> tuple[list[Any], pa.Array, pa.Array]:
    """The function of each distinct text, which of these are no JSON, and which of them a row has."""
    encoded = texts.dictionary_encode()
    results, bad = [], []
    for text in encoded.dictionary.to_pylist():
        try:
            results.append(function(text))
            bad.append(False)
        except (ValueError, RecursionError):
            results.append(None)
            bad.append(True)
    return results, pa.array(bad, BOOLEAN), encoded.indices


def _at(value: Any, way: tuple[Step, ...]) -> Any:
    for step in way:
        name = step[0] if isinstance(step, tuple) else step
        if isinstance(value, Pairs):
            value = next((each for key, each in value if key == name), _NOTHING)
        elif isinstance(value, list) and not isinstance(step, str):
            at = int(name) if str(name).removeprefix("-").isdigit() else len(value)
            value = value[at] if -len(value) <= at < len(value) else _NOTHING
        else:
            return _NOTHING
    return value


def _string(value: Any) -> str | None:
    if value is None:
        return None
    return value if isinstance(value, str) and not isinstance(value, Number) else written(value)


def _scalar(value: Any) -> str | None:
    return None if value is None or isinstance(value, list) else written(value)


def _length(value: Any) -> int:
    return len(value) if isinstance(value, list) and not isinstance(value, Pairs) else 0


def _type(value: Any) -> str:
    if isinstance(value, Number):
        if not is_whole(value) or not in_64_bits(value):
            return "DOUBLE"
        return "BIGINT" if value.startswith("-") else "UBIGINT"
    kinds = ((bool, "BOOLEAN"), (str, "VARCHAR"), (Pairs, "OBJECT"), (list, "ARRAY"))
    return next((name for kind, name in kinds if isinstance(value, kind)), "NULL")


_FUNCTIONS: Final[dict[str, Callable[[Any], Any]]] = {
    "json_extract": written,
    "json_extract_string": _string,
    "json_value": _scalar,
    "json_array_length": _length,
    "json_type": _type,
}

# --- casts -----------------------------------------------------------------------------------------------------------


def as_json(column: pa.Array) -> Converted:
    """Texts that are JSON stay as they are written."""

    def checked(text: str) -> str:
        read(text)
        return text

    checked_texts, bad, rows = _of_distinct(column, checked)
    return pa.array(checked_texts, VARCHAR).take(rows), bad.take(rows).fill_null(False)


_DIGITS: Final = re.compile(r"[+-]?\d+", re.ASCII)


def from_json(target: pa.DataType, converter: Callable[[pa.DataType, pa.DataType], Any]) -> Callable[..., Converted]:
    """Each kind of value as that kind is cast: texts, whole numbers and others, truth values; null is NULL."""

    def parts(text: str) -> Any:
        value = read(text)
        if value is None:
            return None
        if isinstance(value, Number) and in_64_bits(value):
            return (HUGEINT, int(value)) if is_whole(value) else (DOUBLE, float(value))
        if isinstance(value, bool):
            return BOOLEAN, value
        if isinstance(value, list) or (is_integer(target) and not _DIGITS.fullmatch(value)):
            raise ValueError
        return VARCHAR, str(value)

    def convert(column: pa.Array) -> Converted:
        kinds_and_values, wrong, rows = _of_distinct(column, parts)
        whole = pa.nulls(len(kinds_and_values), held_type(target))
        for kind in (VARCHAR, HUGEINT, DOUBLE, BOOLEAN):
            of_kind = [part[1] if part is not None and part[0] == kind else None for part in kinds_and_values]
            if any(each is not None for each in of_kind):
                values, unfit = _converted(pa.array(of_kind, kind))
                whole = pc.coalesce(whole, values.view(whole.type))
                wrong = wrong if unfit is None else pc.or_(wrong, unfit.fill_null(False))
        return whole.take(rows), wrong.take(rows).fill_null(False)

    def _converted(values: pa.Array) -> Converted:
        if pa.types.is_temporal(target) and values.type != VARCHAR:
            return pa.nulls(len(values), held_type(target)), values.is_valid()
        if values.type == target:
            return values, None
        converted: Converted = converter(values.type, target)(values)
        return converted

    return convert
