"""Paths into JSON texts, and JSON as values of other types: once for each distinct text, by Python's own reader."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from transom.core.json_text import Number, Pairs, is_held, is_json, is_whole, read, written
from transom.core.schema import BOOLEAN, DOUBLE, HUGEINT, VARCHAR
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
        held = pa.string() if call.type != pa.int64() else call.type
        result, bad = _each(texts, of_text, held)
        reject_rows(call, "it is no JSON", (texts,), bad)
        return result

    return run


def _each(texts: pa.Array, function: Callable[[str], Any], type_: pa.DataType) -> Converted:
    encoded = texts.dictionary_encode()
    found, good = [], []
    for text in encoded.dictionary.to_pylist():
        try:
            found.append(function(text))
            good.append(True)
        except (ValueError, RecursionError):
            found.append(None)
            good.append(False)
    known = pa.array(good, BOOLEAN).take(encoded.indices)
    return pa.array(found, type_).take(encoded.indices), pc.fill_null(pc.invert(known), False)


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
        if not is_whole(value) or not is_held(value):
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
    encoded = column.dictionary_encode()
    good = pa.array([is_json(text) for text in encoded.dictionary.to_pylist()], BOOLEAN).take(encoded.indices)
    bad = pc.fill_null(pc.invert(good), False)
    return pc.if_else(bad, pa.scalar(None, VARCHAR), column), bad


_DIGITS: Final = re.compile(r"[+-]?\d+", re.ASCII)


def from_json(target: pa.DataType, converter: Callable[[pa.DataType, pa.DataType], Any]) -> Callable[..., Converted]:
    """Each kind of value as that kind is cast: texts, whole numbers and others, truth values; null is NULL."""
    kinds = (VARCHAR, HUGEINT, DOUBLE, BOOLEAN)

    def parts(text: str) -> Any:
        value = read(text)
        if value is None:
            return None
        if isinstance(value, Number) and is_held(value):
            return (HUGEINT, int(value)) if is_whole(value) else (DOUBLE, float(value))
        if isinstance(value, bool):
            return BOOLEAN, value
        if isinstance(value, list) or (is_integer(target) and not _DIGITS.fullmatch(value)):
            raise ValueError
        return VARCHAR, str(value)

    def convert(column: pa.Array) -> Converted:
        encoded = column.dictionary_encode()
        found: list[Any] = []
        bad = []
        for text in encoded.dictionary.to_pylist():
            try:
                found.append(parts(text))
                bad.append(False)
            except (ValueError, RecursionError):
                found.append(None)
                bad.append(True)
        wrong = pa.array(bad, BOOLEAN)
        whole = None
        for kind in kinds:
            mine = [part[1] if part is not None and part[0] == kind else None for part in found]
            if any(each is not None for each in mine):
                values, unfit = _converted(pa.array(mine, kind), kind)
                whole = values if whole is None else pc.coalesce(whole, values)
                wrong = wrong if unfit is None else pc.or_(wrong, pc.fill_null(unfit, False))
        if whole is None:
            whole = pa.nulls(len(found), _held(target))
        return whole.take(encoded.indices), pc.fill_null(wrong.take(encoded.indices), False)

    def _converted(values: pa.Array, kind: pa.DataType) -> Converted:
        if pa.types.is_temporal(target) and kind != VARCHAR:
            return pa.nulls(len(values), _held(target)), values.is_valid()
        if kind == target:
            return values, None
        found: Converted = converter(kind, target)(values)
        return found

    return convert


def _held(target: pa.DataType) -> pa.DataType:
    return pa.timestamp("us") if pa.types.is_timestamp(target) else target
