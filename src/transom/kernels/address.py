"""Reading memory by its address, for loops that go over the arrays of many inputs.

A compiled function that takes arrays looks at each of them first; with some hundred that takes longer than its work.
Whoever writes addresses down keeps the arrays as well, and writes them down anew when an array is replaced.
"""

from __future__ import annotations

from typing import Any, Final

from llvmlite import ir
from numba import types
from numba.extending import intrinsic


def address_of(array: Any) -> int:
    """Where the first element of an array is."""
    address: int = array.ctypes.data
    return address


def _reader(element: Any, gives: Any) -> Any:
    """A function (address, index) that reads an element of this kind."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        address, index = arguments
        pointer = builder.inttoptr(address, element.as_pointer())
        return builder.load(builder.gep(pointer, [index]))

    def typed(context, address, index):  # type: ignore[no-untyped-def]
        return gives(types.int64, types.int64), code

    return intrinsic(typed)


word_at: Final = _reader(ir.IntType(64), types.int64)
byte_at: Final = _reader(ir.IntType(8), types.uint8)
number_at: Final = _reader(ir.DoubleType(), types.float64)
