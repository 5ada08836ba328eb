"""Reading, fetching and copying memory by its address, for loops that go over the arrays of many inputs.

A compiled function that takes arrays looks at each of them first; with some hundred that takes longer than its work.
Whoever writes addresses down keeps the arrays as well, and writes them down anew when an array is replaced.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pyarrow as pa
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic


def address_of(array: Any) -> int:
    """Where the first element of an array is."""
    address: int = pa.py_buffer(array).address  # three times as fast as to ask the array
    return address


def _reader(element: Any, gives: Any) -> Any:
    """A function (address, index) that reads an element of this kind."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        address, index = arguments
        pointer = builder.inttoptr(address, element.as_pointer())
        return builder.load(builder.gep(pointer, [index]), align=1)

    def typed(context, address, index):  # type: ignore[no-untyped-def]
        return gives(types.int64, types.int64), code

    return intrinsic(typed)


def _copier(element: Any) -> Any:
    """A function (to, source) that copies an element of this kind from one address to another."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        to, source = (builder.inttoptr(address, element.as_pointer()) for address in arguments)
        builder.store(builder.load(source, align=1), to, align=1)
        return context.get_dummy_value()

    def typed(context, to, source):  # type: ignore[no-untyped-def]
        return types.void(types.int64, types.int64), code

    return intrinsic(typed)


def _writer(element: Any, kind: Any) -> Any:
    """A function (address, value) that writes an element of this kind."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        address, value = arguments
        builder.store(value, builder.inttoptr(address, element.as_pointer()), align=1)
        return context.get_dummy_value()

    def typed(context, address, value):  # type: ignore[no-untyped-def]
        return types.void(types.int64, kind), code

    return intrinsic(typed)


def of_the_system(name: str, gives: Any, *takes: Any) -> Callable[..., Any]:
    """A function of the C library, for compiled loops; addresses are `int64`."""
    function: Callable[..., Any] = types.ExternalFunction(name, gives(*takes))
    return function


def _atomic(operation: str) -> Any:
    """A function (address, value) that changes a word at one blow, for all threads, and gives what it was."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = builder.inttoptr(arguments[0], ir.IntType(64).as_pointer())
        return builder.atomic_rmw(operation, pointer, arguments[1], "seq_cst")

    def typed(context, address, value):  # type: ignore[no-untyped-def]
        return types.int64(types.int64, types.int64), code

    return intrinsic(typed)


def _pointer(context: Any, address: Any) -> Any:
    """An address as `carray` takes it."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], cgutils.voidptr_t)

    return types.voidptr(types.int64), code


def _prefetch(typing_context: Any, address: Any) -> Any:
    """Begin to load what is there into the cache, and wait for nothing."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [pointer, number, number, number])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")  # type: ignore[no-untyped-call]
        # To read, into all levels, data.
        builder.call(function, [builder.inttoptr(arguments[0], pointer), number(0), number(3), number(1)])
        return context.get_dummy_value()

    return types.void(types.int64), code


prefetch: Callable[..., Any] = intrinsic(_prefetch)  # the call differs from what it is made of
word_at: Final = _reader(ir.IntType(64), types.int64)
byte_at: Final = _reader(ir.IntType(8), types.uint8)
int_at: Final = _reader(ir.IntType(32), types.int32)
number_at: Final = _reader(ir.DoubleType(), types.float64)
store_byte: Final = _writer(ir.IntType(8), types.uint8)
store_word: Final = _writer(ir.IntType(64), types.int64)
store_int: Final = _writer(ir.IntType(32), types.int32)
copy_byte: Final = _copier(ir.IntType(8))
copy_half: Final = _copier(ir.IntType(16))
copy_int: Final = _copier(ir.IntType(32))
copy_word: Final = _copier(ir.IntType(64))
copy_double_word: Final = _copier(ir.IntType(128))
copy_32_bytes: Final = _copier(ir.VectorType(ir.IntType(8), 32))
add_atomic: Final = _atomic("add")
exchange_atomic: Final = _atomic("xchg")
pointer_to: Callable[..., Any] = intrinsic(_pointer)
