"""Copying short runs of bytes inside a compiled loop: 16 at a time, whatever the alignment.

A run may be copied up to 15 bytes too far, so both buffers need `SLACK` bytes behind the last one that matters, and
runs are written in ascending order. That is several times faster than byte by byte for texts of usual length.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from transom.kernels.jit import jit

SLACK = 16


def _copy_16_bytes(typing_context: Any, to: Any, to_index: Any, source: Any, index: Any) -> Any:
    """to[to_index : to_index + 16] = source[index : index + 16] on arrays of uint8."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        def address(array_type: Any, array: Any, position: Any) -> Any:
            data = cgutils.create_struct_proxy(array_type)(context, builder, array).data  # type: ignore[no-untyped-call]
            return builder.bitcast(builder.gep(data, [position]), ir.VectorType(ir.IntType(8), 16).as_pointer())

        target = address(signature.args[0], arguments[0], arguments[1])
        loaded = builder.load(address(signature.args[2], arguments[2], arguments[3]), align=1)
        builder.store(loaded, target, align=1)
        return context.get_dummy_value()

    return types.void(to, types.int64, source, types.int64), generate


copy_16_bytes: Callable[..., Any] = intrinsic(_copy_16_bytes)  # the call differs from what it is made of


@jit
def copy_run(to, to_index, source, index, count):  # type: ignore[no-untyped-def]
    """Copy `count` bytes, and up to 15 more."""
    done = 0
    while done < count:
        copy_16_bytes(to, to_index + done, source, index + done)
        done += 16
