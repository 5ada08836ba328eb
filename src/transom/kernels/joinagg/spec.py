"""What a join-aggregate computes: the joined inputs, their keys, the grouping and the calls, as positions of columns.

Everything is a plain column of one input: what is computed is computed below. Columns of all inputs side by side are
numbered input by input, as in a join.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from transom.core.delta import Int64s
from transom.core.schema import held_type
from transom.kernels.columns import is_text
from transom.plan.algebra import AggregateName
from transom.plan.expression import Expression, columns_of

OF_MATCH = -2  # the INPUT of an argument that is computed for every match; ARGUMENT is its number among those
COUNT_ROWS, COUNT, SUM_WHOLE, SUM_FLOAT, LEAST, GREATEST = range(6)
# Columns of `JoinAggregateSpec.table`: the kind of a call; the input of its argument; the argument's number among those
# of its input; the number of the call's float total or heap; the argument's number among the texts of its input, or -1;
# the number of the call's float total or heap among those of its input.
KIND, INPUT, ARGUMENT, OFFSET, TEXT, INPUT_OFFSET = range(6)


@dataclass(frozen=True)
class JoinCall:
    """One call: its function, and the input and column of its argument (None for COUNT(*)).

    `over` is an argument that reads several inputs, over the columns of all of them side by side.
    """

    function: AggregateName
    input: int | None = None
    column: int | None = None
    over: Expression | None = None

    @property
    def of_rows(self) -> bool:
        return self.column is None and self.over is None


@dataclass(frozen=True)
class JoinAggregateSpec:
    """`key_columns[i]` are the columns of input i that must equal those of the others; () where there is no key.

    The residual is over the columns of all inputs side by side. `group` are (input, column). The schema is that of the
    result: keys, then calls; or, when `partial`, what `partial_columns` of kernels/joinagg/node.py says.
    """

    input_types: tuple[tuple[pa.DataType, ...], ...]
    key_columns: tuple[tuple[int, ...], ...]
    residual: Expression | None
    group: tuple[tuple[int, int], ...]
    calls: tuple[JoinCall, ...]
    schema: pa.Schema
    partial: bool = False

    @property
    def everything(self) -> bool:
        """Whether there is one group, which has its row from the origin on; partial results leave that to the merge."""
        return not self.group and not self.partial

    @cached_property
    def arguments(self) -> tuple[tuple[int, ...], ...]:
        """Per input the columns that are arguments, each once."""
        return tuple(
            tuple(sorted({call.column for call in self.calls if call.input == i and call.column is not None}))
            for i in range(len(self.input_types))
        )

    @cached_property
    def group_columns(self) -> tuple[tuple[int, ...], ...]:
        """Per input the columns that are grouped by, in the order of `group`."""
        return tuple(tuple(c for at, c in self.group if at == i) for i in range(len(self.input_types)))

    @cached_property
    def group_inputs(self) -> tuple[int, ...]:
        """The inputs that have columns to group by, ascending: a group is a tuple of numbers, one for each of them."""
        return tuple(i for i, columns in enumerate(self.group_columns) if columns)

    @cached_property
    def of_matches(self) -> tuple[Expression, ...]:
        """The arguments that are computed for every match, each once."""
        return tuple(dict.fromkeys(call.over for call in self.calls if call.over is not None))

    @cached_property
    def read(self) -> tuple[int, ...]:
        """The columns, of all inputs side by side, that matches are looked at by: those of the residual and of such
        arguments."""
        wanted = self.of_matches if self.residual is None else (self.residual, *self.of_matches)
        return tuple(sorted({column for expression in wanted for column in columns_of(expression)}))

    def argument_type(self, call: JoinCall) -> pa.DataType:
        if call.over is not None:
            return held_type(call.over.type)
        assert call.input is not None and call.column is not None
        return self.input_types[call.input][call.column]

    @cached_property
    def cell_width(self) -> int:
        """How many arguments a row has at most."""
        return max(map(len, self.arguments))

    @cached_property
    def text_width(self) -> int:
        """How many texts among them at most."""
        return max(len(self._texts(i)) for i in range(len(self.input_types)))

    @cached_property
    def float_width(self) -> int:
        return int((self.table[:, KIND] == SUM_FLOAT).sum())

    @cached_property
    def heap_width(self) -> int:
        return int((self.table[:, KIND] >= LEAST).sum())

    @cached_property
    def table(self) -> Int64s:
        """Per call six numbers; see KIND and the others above."""
        rows = []
        floats = heaps = 0
        floats_of = [0] * len(self.input_types)
        heaps_of = [0] * len(self.input_types)
        for call in self.calls:
            if call.of_rows:
                rows.append((COUNT_ROWS, -1, -1, -1, -1, -1))
                continue
            index = within = -1
            if call.over is not None:
                assert call.function in ("count", "sum", "avg")
                kind = COUNT
                if call.function != "count":
                    floating = pa.types.is_floating(self.argument_type(call))
                    kind = SUM_FLOAT if floating else SUM_WHOLE
                if kind == SUM_FLOAT:
                    index = floats
                    floats += 1
                rows.append((kind, OF_MATCH, self.of_matches.index(call.over), index, -1, -1))
                continue
            assert call.input is not None and call.column is not None
            if call.function == "count":
                kind = COUNT
            elif call.function in ("min", "max"):
                kind, index, within = LEAST if call.function == "min" else GREATEST, heaps, heaps_of[call.input]
                heaps += 1
                heaps_of[call.input] += 1
            elif not pa.types.is_floating(self.argument_type(call)):
                kind = SUM_WHOLE
            else:
                kind, index, within = SUM_FLOAT, floats, floats_of[call.input]
                floats += 1
                floats_of[call.input] += 1
            texts = self._texts(call.input)
            text = texts.index(call.column) if call.column in texts else -1
            rows.append((kind, call.input, self.arguments[call.input].index(call.column), index, text, within))
        return np.array(rows, dtype=np.int64).reshape(-1, 6)

    def _texts(self, i: int) -> list[int]:
        return [column for column in self.arguments[i] if is_text(self.input_types[i][column])]
