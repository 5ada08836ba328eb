"""Predicates over plain numbers, asked by one compiled call that reads the rows where they are kept.

A formula is comparisons, joined by AND, of what +, -, *, ABS and the sign make of DOUBLE columns and constants. These
are what `kernels/scalar` would compute, number for number: floats cannot fail, and are in one total order, in which NaN
equals NaN and is greater than everything else. Whatever else a predicate has is for Arrow, and so are columns that had
a NULL. An operation is done for a block of rows at a time, and only for those that passed the comparisons before it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt

from transom.core.delta import Int64s
from transom.core.schema import DOUBLE
from transom.kernels.address import number_at
from transom.kernels.jit import inlined, jit
from transom.kernels.mould import DATA, MASK, STORE, STRIDE
from transom.kernels.scalar.compiler import Constant, compile_expression
from transom.plan.expression import Call, ColumnRef, Expression, columns_of, conjuncts

COLUMN, CONSTANT, ADD, SUBTRACT, MULTIPLY, NEGATE, ABSOLUTE = range(7)
EQUAL, UNEQUAL, LESS, AT_MOST, GREATER, AT_LEAST = range(7, 13)
BLOCK: Final = 512  # rows that an operation is done for at a time
NO_MEMBERS: Final = np.empty((0, 3), dtype=np.int64)

_ARITHMETIC: Final = {"+": ADD, "-": SUBTRACT, "*": MULTIPLY, "negate": NEGATE, "abs": ABSOLUTE}
_COMPARISONS: Final = {"=": EQUAL, "<>": UNEQUAL, "<": LESS, "<=": AT_MOST, ">": GREATER, ">=": AT_LEAST}


@dataclass(frozen=True)
class Formula:
    """Operations in postfix order, each with the number of its column or constant; the columns that must be plain."""

    program: Int64s
    constants: npt.NDArray[np.float64]
    columns: int
    depth: int


_Written = tuple[tuple[tuple[int, int], ...], tuple[float, ...], int]
"""Operations, constants, and the columns that are read."""


def formula(predicate: Expression) -> Formula | None:
    """Of a predicate over the columns of all inputs; None if it is for Arrow."""
    program: list[tuple[int, int]] = []
    constants: list[float] = []
    read = 0
    for part in conjuncts(predicate):
        written = _comparison(part)
        if written is None:
            return None
        operations, numbers, columns = written
        program += [(operation, at + len(constants) * (operation == CONSTANT)) for operation, at in operations]
        constants += numbers
        read |= columns
    return Formula(np.array(program, dtype=np.int64), np.array(constants, dtype=np.float64), read, len(program))


@lru_cache(maxsize=1 << 12)
def _comparison(part: Expression) -> _Written | None:
    """A comparison by itself. Every order in which inputs are probed asks the same ones, in predicates of its own."""
    program: list[tuple[int, int]] = []
    constants: list[float] = []
    if not (isinstance(part, Call) and part.function in _COMPARISONS):
        return None
    if not all(_written(argument, program, constants) for argument in part.arguments):
        return None
    program.append((_COMPARISONS[part.function], 0))
    read = 0
    for operation, at in program:
        read |= 1 << at if operation == COLUMN else 0
    return tuple(program), tuple(constants), read


def _written(value: Expression, program: list[tuple[int, int]], constants: list[float]) -> bool:
    """Write down what computes the value; whether that is possible."""
    if value.type != DOUBLE:
        return False
    if isinstance(value, ColumnRef):
        program.append((COLUMN, value.index))
        return True
    if isinstance(value, Call) and value.function in _ARITHMETIC:
        begin = len(program)
        if not all(_written(argument, program, constants) for argument in value.arguments):
            return False
        if any(operation == COLUMN for operation, _ in program[begin:]):
            program.append((_ARITHMETIC[value.function], 0))
            return True
        del program[begin:]  # one constant instead
    # To compile what reads columns would be in vain, and take most of the time.
    compiled = None if columns_of(value) else compile_expression(value)
    if not isinstance(compiled, Constant) or (number := compiled.value.as_py()) is None:
        return False
    program.append((CONSTANT, len(constants)))
    constants.append(number)
    return True


@inlined
def below(a, b):  # type: ignore[no-untyped-def]
    """Whether a comes before b in the total order."""
    return a < b or (b != b and a == a)


@inlined
def same(a, b):  # type: ignore[no-untyped-def]
    return a == b or (a != a and b != b)


@inlined
def holds(comparison, a, b):  # type: ignore[no-untyped-def]
    if comparison == LESS:
        return below(a, b)
    if comparison == AT_MOST:
        return not below(b, a)
    if comparison == GREATER:
        return below(b, a)
    if comparison == AT_LEAST:
        return not below(a, b)
    if comparison == EQUAL:
        return same(a, b)
    return not same(a, b)


@jit
def passing(program, constants, depth, addresses, tuples, of, members, target):  # type: ignore[no-untyped-def]
    """The numbers of the rows of which the formula is true.

    Row r is the members of tuple of[r], but on input `target` it is members[r]; without `of` it is those of tuple r.
    """
    plain = len(of) == 0
    rows = len(tuples) if plain else len(of)
    kept = np.empty(rows, dtype=np.int64)
    stack = np.empty((depth, min(BLOCK, rows)), dtype=np.float64)
    count = 0
    for first in range(0, rows, BLOCK):
        left = min(BLOCK, rows - first)
        block = kept[count : count + left]
        for r in range(left):
            block[r] = first + r
        top = 0
        for at in range(len(program)):
            operation = program[at, 0]
            if operation == COLUMN:
                address = addresses[program[at, 1]]
                data, stride, store, mask = address[DATA], address[STRIDE], address[STORE], address[MASK]
                here = stack[top]
                if plain:
                    for r in range(left):
                        here[r] = number_at(data + (tuples[block[r], store] & mask) * stride, 0)
                elif store == target:
                    for r in range(left):
                        here[r] = number_at(data + (members[block[r], 0] & mask) * stride, 0)
                else:
                    for r in range(left):
                        here[r] = number_at(data + (tuples[of[block[r]], store] & mask) * stride, 0)
                top += 1
                continue
            if operation == CONSTANT:
                stack[top, :left] = constants[program[at, 1]]
                top += 1
                continue
            b = stack[top - 1]
            if operation == NEGATE:
                for r in range(left):
                    b[r] = -b[r]
                continue
            if operation == ABSOLUTE:
                for r in range(left):
                    b[r] = abs(b[r])
                continue
            a = stack[top - 2]
            top -= 1
            if operation == ADD:
                for r in range(left):
                    a[r] += b[r]
            elif operation == SUBTRACT:
                for r in range(left):
                    a[r] -= b[r]
            elif operation == MULTIPLY:
                for r in range(left):
                    a[r] *= b[r]
            else:
                passed = 0
                for r in range(left):
                    number = block[r]
                    block[passed] = number
                    passed += holds(operation, a[r], b[r])
                left = passed
                top = 0
                if left == 0:
                    break
        count += left
    return kept[:count]
