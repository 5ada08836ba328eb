"""Texts of numbers as decimals: the very number, or none.

Arrow reads a text into 128 bits and does not notice when they overflow: by too many digits, by an exponent, or by the
zeros that the scale of the column adds. So it is given only texts that cannot; every other one is read by Python.
"""

from __future__ import annotations

import re
from decimal import Context, Decimal, Inexact, InvalidOperation
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

_NUMBER: Final = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)


def read_decimals(text: pa.Array, type_: pa.DataType) -> pa.Array:
    """The texts as decimals of a type; NULL where one is no number, or none that the type holds exactly.

    >>> read_decimals(pa.array(["1.5", "1.50e0", "0.125", "1000"]), pa.decimal128(4, 2)).to_pylist()
    [Decimal('1.50'), Decimal('1.50'), None, None]
    """
    whole = f"[0-9]{{1,{type_.precision - type_.scale}}}" if type_.precision > type_.scale else "0"
    plain = pc.match_substring_regex(text, rf"\A-?{whole}(\.[0-9]{{0,{type_.scale}}})?\z")
    if pc.all(plain).as_py() is not False:
        return pc.cast(text, type_)
    decimals = pc.cast(pc.if_else(plain, text, pa.scalar(None, text.type)), type_)
    unit, context = Decimal((0, (1,), -type_.scale)), Context(type_.precision, traps=[Inexact, InvalidOperation])
    others = [_read(each, unit, context) for each in text.filter(pc.invert(plain)).to_pylist()]
    return pc.replace_with_mask(decimals, pc.invert(plain), pa.array(others, type_))


def _read(text: str, unit: Decimal, context: Context) -> Decimal | None:
    stripped = text.strip()
    if not _NUMBER.fullmatch(stripped):
        return None
    try:
        return Decimal(stripped).quantize(unit, context=context)
    except (Inexact, InvalidOperation):
        return None
