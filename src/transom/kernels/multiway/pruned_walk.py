"""The tuples of a product of sets of matches that pass what is asked of their members, written down.

A member is taken if its lifetime meets that of those before it, and if the formula of its set is true of them all; so
nothing behind a member that fails is looked at. All of it is one compiled call.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from transom.core.delta import Int64s
from transom.kernels.address import number_at
from transom.kernels.formula import (
    ABSOLUTE,
    ADD,
    COLUMN,
    CONSTANT,
    MULTIPLY,
    NEGATE,
    SUBTRACT,
    Formula,
    holds,
)
from transom.kernels.jit import inlined, jit
from transom.kernels.kernel import OPEN_END
from transom.kernels.mould import DATA, MASK, STORE, STRIDE


@dataclass(frozen=True)
class Formulas:
    """What is asked when a member of set s is taken: operations begins[s] up to begins[s + 1] of one program."""

    program: Int64s
    constants: npt.NDArray[np.float64]
    begins: Int64s
    columns: int
    depth: int

    @staticmethod
    def of(each: Sequence[Formula | None]) -> Formulas:
        program, begins = [np.empty((0, 2), dtype=np.int64)], [0]
        constants = [np.empty(0, dtype=np.float64)]
        columns = depth = count = 0
        for formula in each:
            if formula is not None:
                shifted = formula.program.copy()
                shifted[shifted[:, 0] == CONSTANT, 1] += count
                program.append(shifted)
                constants.append(formula.constants)
                count += len(formula.constants)
                columns |= formula.columns
                depth = max(depth, formula.depth)
            begins.append(begins[-1] + (0 if formula is None else len(formula.program)))
        return Formulas(np.concatenate(program), np.concatenate(constants), np.array(begins), columns, depth)


@inlined
def is_true(program, first, last, constants, columns, bound, stack):  # type: ignore[no-untyped-def]
    """Whether the comparisons among these operations hold for the rows at the positions `bound`."""
    top = 0
    for at in range(first, last):
        operation = program[at, 0]
        number = program[at, 1]
        if operation == COLUMN:
            position = bound[columns[number, STORE]] & columns[number, MASK]
            stack[top] = number_at(columns[number, DATA] + position * columns[number, STRIDE], 0)
            top += 1
        elif operation == CONSTANT:
            stack[top] = constants[number]
            top += 1
        elif operation == NEGATE:
            stack[top - 1] = -stack[top - 1]
        elif operation == ABSOLUTE:
            stack[top - 1] = abs(stack[top - 1])
        else:
            top -= 1
            a, b = stack[top - 1], stack[top]
            if operation == ADD:
                stack[top - 1] = a + b
            elif operation == SUBTRACT:
                stack[top - 1] = a - b
            elif operation == MULTIPLY:
                stack[top - 1] = a * b
            elif holds(operation, a, b):
                top -= 1
            else:
                return False
    return True


@jit
def pruned_walk(sets, tuples, targets, limit, standing, formulas, columns):  # type: ignore[no-untyped-def]
    """Tuples of the product, at most `limit`, and the places that they came from.

    `standing` says where to go on: `cursors` (the tuple, the set and a member of each), `life` (what the members so
    far have in common: ta, te, and the latest of their ends) and `bound` (their positions).
    """
    ta, te, indexes, offsets, members, frontier = sets
    cursors, life, bound = standing
    program, constants, begins, depth = formulas
    count_of_sets = len(offsets)
    width = tuples.shape[1]
    size = min(limit, len(tuples) + 64)
    written = np.empty((size, width), dtype=np.int64)
    came = np.empty(size, dtype=np.int64)
    stack = np.empty(depth, dtype=np.float64)
    count = 0
    t = cursors[0]
    level = cursors[1]
    own = cursors[2:]
    while t < len(ta):
        index = indexes[t]
        if level < 0:
            level = 0
            for other in range(count_of_sets):
                if offsets[other, index] == offsets[other, index + 1]:
                    level = -1
            bound[:] = tuples[t]
            life[0, 0] = ta[t]
            life[0, 1] = te[t]
            life[0, 2] = te[t]
            own[0] = offsets[0, index]
        while level >= 0:
            at = own[level]
            if at == offsets[level, index + 1]:
                level -= 1
                if level >= 0:
                    own[level] += 1
                continue
            begin = max(life[level, 0], members[at, 1])
            end = min(life[level, 1], members[at, 2])
            bound[targets[level]] = members[at, 0]
            if begin >= end or not is_true(program, begins[level], begins[level + 1], constants, columns, bound, stack):
                own[level] += 1
                continue
            latest = max(life[level, 2], members[at, 2])
            if level + 1 < count_of_sets:
                level += 1
                life[level, 0] = begin
                life[level, 1] = end
                life[level, 2] = latest
                own[level] = offsets[level, index]
                continue
            if count == limit:
                cursors[0] = t
                cursors[1] = level
                return written[:count], came[:count]
            if count == size:
                size = min(limit, 2 * size)
                bigger = np.empty((size, width), dtype=np.int64)
                bigger[:count] = written
                written = bigger
                longer = np.empty(size, dtype=np.int64)
                longer[:count] = came
                came = longer
            written[count] = bound
            written[count, width - 2] = begin
            # As in `extend`: an open member ends at `frontier` or later, so a known end up to there is the tuple's end.
            written[count, width - 1] = OPEN_END if end > frontier and latest == OPEN_END else end
            came[count] = index
            count += 1
            own[level] += 1
        t += 1
    cursors[0] = t
    cursors[1] = -1
    return written[:count], came[:count]
