"""Compiles loops before anybody needs them: those of `loops.json`, with the types of the arguments that they are given.

Otherwise whoever comes first to a loop waits for it, a second or so. The list was read from what the tests had compiled
(`make loops`). It need not be complete: what is not on it is compiled when it is needed.
"""

from __future__ import annotations

import json
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, Final, TypeAlias

from numba.core import types
from numba.core.dispatcher import Dispatcher
from numba.core.errors import NumbaError

LOOPS: Final = Path(__file__).with_name("loops.json")

Described: TypeAlias = str | list["Described"] | dict[str, list["Described"]]
"""A type of an argument: `int64`; for an array `int64 1 C`, with `readonly` behind it if it is; a list for a tuple, and
for a named tuple an object with one entry, under its class."""
Loops: TypeAlias = dict[str, dict[str, list[list[Described]]]]
"""By module and name of the loop: the types of its arguments, once or more often."""


@cache
def known_loops() -> Loops:
    loops: Loops = json.loads(LOOPS.read_text(encoding="utf-8"))
    return loops


def compile_module(module: str) -> None:
    """Compiles the known loops of a module that are not compiled yet; the list may be older than the loops."""
    names = vars(import_module(module))
    for name, signatures in known_loops()[module].items():
        if isinstance(loop := names.get(name), Dispatcher):
            for signature in signatures:
                with suppress(TypeError, NumbaError):  # what is of no use for a loop that was changed since
                    loop.compile(tuple(type_of(described) for described in signature))


def type_of(described: Described) -> Any:
    """
    >>> type_of("int64"), type_of("int64 1 C readonly"), type_of(["bool", "float64"])
    (int64, Array(int64, 1, 'C', True, aligned=True), Tuple((bool, float64)))
    """
    made: Any = types  # Numba says little about the types of its types
    if isinstance(described, list):
        return made.Tuple(tuple(type_of(part) for part in described))
    if isinstance(described, dict):
        [(name, parts)] = described.items()
        module, _, named = name.rpartition(".")
        return made.Tuple.from_types([type_of(part) for part in parts], getattr(import_module(module), named))
    of, *array = described.split()
    scalar = made.boolean if of == "bool" else getattr(made, of)
    if not array:
        return scalar
    dimensions, layout, *readonly = array
    return made.Array(scalar, int(dimensions), layout, readonly=bool(readonly))


def describe(given: Any) -> Described | None:
    """What `type_of` reads; None for types that loops are not given by Python: a constant of a loop that calls another.

    >>> describe(type_of("int64 2 F")), describe(types.literal(1))
    ('int64 2 F', None)
    """
    if isinstance(given, types.BaseTuple):
        tuple_type: Any = given
        parts = [part for part in map(describe, tuple_type.types) if part is not None]
        if len(parts) != len(tuple_type.types):
            return None
        if not isinstance(given, types.BaseNamedTuple):
            return parts
        of = tuple_type.instance_class
        return {f"{of.__module__}.{of.__qualname__}": parts}
    if isinstance(given, types.Array) and given.aligned:
        return f"{given.dtype} {given.ndim} {given.layout}" + " readonly" * (not given.mutable)
    if isinstance(given, types.Integer | types.Float | types.Boolean) and not isinstance(given, types.Literal):
        return str(given)
    return None
