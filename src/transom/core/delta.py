"""The one thing that moves between operators.

A `Delta` says what became known on the way to `frontier`: rows that began (with their end, or with an open row id while
it is open), and ends of rows sent earlier. After it, every snapshot before `frontier` is final.

Invariants, for a step from `before` to `frontier`:
- every row has `before <= ta < frontier` and `ta < te`: producers drop the ghosts they can see;
- `open_id[i] == NO_OPEN_ID`: `te[i]` is the row's end (FOREVER is one). Otherwise the end is open, `te[i]` is FOREVER,
  and the owner of the open row id will send it in `ends`, in the step whose `frontier` passes it;
- `open_id[i] == GIVEN_AGAIN`: the end is open as well, but nobody sends it, and nobody need keep the row: it is given
  again when it is over, `TAKEN_BACK`. That one began earlier (`ta[i]` does not say when) and ended at `te[i]`, before
  `frontier`, or stays (FOREVER). So are rows given to nobody but who writes changes (`planner/final.py`);
- every end has `te < frontier`. It may equal the row's `ta`: the row was a ghost after all, and is in no snapshot;
- an owner may use an open row id again from the next step on, so `ends` are acted on in the step that brings them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from transom.core.time import FOREVER

Int64s = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]

NO_OPEN_ID: Final = -1
GIVEN_AGAIN: Final = -2
TAKEN_BACK: Final = -3


def no_int64s() -> Int64s:
    return _NO_INT64S


_NO_INT64S: Final[Int64s] = np.empty(0, dtype=np.int64)  # there is nothing in it that could be written to


def no_open_ids(count: int) -> Int64s:
    """For rows whose ends are all known. Not to be written to."""
    return _NO_OPEN_IDS[:count] if count <= len(_NO_OPEN_IDS) else np.full(count, NO_OPEN_ID, dtype=np.int64)


def forever(count: int) -> Int64s:
    """The ends of rows that are all open, or never end. Not to be written to."""
    return _FOREVER[:count] if count <= len(_FOREVER) else np.full(count, FOREVER, dtype=np.int64)


def _constant(value: int) -> Int64s:
    array = np.full(1 << 17, value, dtype=np.int64)
    array.flags.writeable = False
    return array


_NO_OPEN_IDS: Final = _constant(NO_OPEN_ID)
_FOREVER: Final = _constant(FOREVER)


@dataclass(frozen=True)
class Ends:
    """Ends that became known: row open_id[i] ended at te[i]. Several chunks, so that UNION copies nothing."""

    chunks: tuple[tuple[Int64s, Int64s], ...] = ()

    def __add__(self, other: Ends) -> Ends:
        return Ends(self.chunks + other.chunks)

    @staticmethod
    def of(open_ids: Int64s, te: Int64s) -> Ends:
        return Ends(((open_ids, te),)) if len(open_ids) else Ends()

    def arrays(self) -> tuple[Int64s, Int64s]:
        if not self.chunks:
            return no_int64s(), no_int64s()
        if len(self.chunks) == 1:
            return self.chunks[0]
        return np.concatenate([c[0] for c in self.chunks]), np.concatenate([c[1] for c in self.chunks])


MISSING: Final = -1
NAMELESS: Final = -2


@dataclass(frozen=True)
class Halves:
    """Of which two rows each row is made, as joins make them.

    `sides[c]`: the side, 0 or 1, that column c is of. `names[side, i]`: the row of that side that row i is made of. Of
    the same name are only rows that have the same values in the columns of the side, up to the step in which the last
    of them has ended; those of the name MISSING are NULL in all of them. Of those that are NAMELESS nothing is known.
    """

    sides: Bytes
    names: Int64s

    def of_columns(self, columns: Sequence[int]) -> Halves:
        return Halves(self.sides[np.asarray(columns, dtype=np.int64)], self.names)


@dataclass(frozen=True)
class Delta:
    """Rows of a relation: `values` (Arrow columns), their lifetimes, and the ends of earlier rows.

    `halves` says what the values show as well, for those who then need not look at all of them; whoever makes other
    rows of these may leave it out.
    """

    values: pa.RecordBatch
    ta: Int64s
    te: Int64s
    open_id: Int64s
    frontier: int
    ends: Ends = Ends()
    halves: Halves | None = None

    def __len__(self) -> int:
        return len(self.ta)


@dataclass(frozen=True)
class Changelog:
    """Negative tuples, the other method (paper 1): a row comes twice, when it arrives and, later, when it departs.

    The first `departed` rows departed at `t`, the others arrived at `t`; both parts may be in any order of time, unless
    the operator is said to keep it. For a step from `before` to `frontier`:
    - every row has `before <= t < frontier`; rows that never end never depart;
    - a row that departs equals, in all columns, one that arrived before that instant. Nobody makes ghosts: what would
      come and go at one instant is left out;
    - of one instant what departs counts before what arrives.
    """

    values: pa.RecordBatch
    t: Int64s
    departed: int
    frontier: int

    def __len__(self) -> int:
        return len(self.t)

    @property
    def arrived(self) -> int:
        return len(self.t) - self.departed


@dataclass(frozen=True)
class StreamDelta:
    """Rows of a stream in time order (rows of one instant in arrival order), all before `frontier`."""

    values: pa.RecordBatch
    t: Int64s
    frontier: int

    def __len__(self) -> int:
        return len(self.t)
