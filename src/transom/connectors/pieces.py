"""A source read in pieces by many tasks: one place plans how far a batch goes, and tasks anywhere read the pieces.

Planning parses no row, so it costs little beside the reading; and a piece says exactly which records it holds, so that
whoever reads it, and however often, finds the same rows. All pieces in order are the rows of `Source.read`.
"""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

import pyarrow as pa

from transom.connectors.source import Growing, Position, Rejected

PIECE_RECORDS: Final = 1 << 16
"""A source cuts longer pieces at the first good place behind so many records."""

_SLACK: Final = 8
"""A good place is taken for a cut when it is within this fraction of a share from where the cut should be."""


@dataclass(frozen=True)
class Piece:
    """What one task reads: `rows` records, rejected ones included, of `file` from `at` on.

    `at` is the number of the first row, counted from 0, or for text [first byte, line feeds before it, byte behind,
    mark of the file there].
    """

    file: str
    at: Any
    rows: int

    def packed(self) -> list[Any]:
        """As JSON can hold it."""
        return [self.file, self.at, self.rows]

    @classmethod
    def unpacked(cls, packed: Sequence[Any]) -> Piece:
        file, at, rows = packed
        return cls(file, at, rows)

    @property
    def divisible(self) -> bool:
        """Whether the piece can be cut at any row; a text has to be looked at to know where its records end."""
        return isinstance(self.at, int)

    def part(self, first: int, behind: int) -> Piece:
        """The records [first, behind) of a divisible piece."""
        return Piece(self.file, self.at + first, behind - first)


@dataclass(frozen=True)
class Reach:
    """How far a batch goes: `position` is the one behind `pieces`. `ended` and `over` are those of a SourceBatch."""

    position: Position
    pieces: tuple[Piece, ...]
    ended: bool
    over: bool = False

    @property
    def rows(self) -> int:
        """How many records the pieces have."""
        return sum(piece.rows for piece in self.pieces)


@dataclass(frozen=True)
class PieceRows:
    """Some rows of a piece in the declared columns and in order, and those among them that cannot be read."""

    rows: pa.RecordBatch
    rejected: Sequence[Rejected] = ()


class PiecewiseSource(Protocol):
    def reach(
        self, position: Position, *, max_rows: int | None, max_files: int | None = None, growing: Growing = False
    ) -> Reach:
        """How far the next batch goes, and the pieces to read. Positions are those of `Source.read`.

        At most `max_rows` records of `max_files` files; None is as many as there are. `growing` is as in `read`.
        """
        ...

    def read_piece(self, piece: Piece) -> Iterator[PieceRows]:
        """The rows of a piece, on any machine, by a source made from the same definition."""
        ...


def split(pieces: Iterable[Piece], parts: int, least_rows: int) -> list[list[Piece]]:
    """The pieces in at most `parts` groups of about equal work, in order; none of less than `least_rows` records,
    unless it is the only one.

    >>> split([Piece("a", 0, 10), Piece("b", 0, 2)], 2, 1)
    [[Piece(file='a', at=0, rows=6)], [Piece(file='a', at=6, rows=4), Piece(file='b', at=0, rows=2)]]
    """
    pieces = [piece for piece in pieces if piece.rows]
    behind = list(itertools.accumulate(piece.rows for piece in pieces))
    if not pieces:
        return []
    least = max(1, least_rows)
    groups = max(1, min(parts, behind[-1] // least))
    cuts = [0]
    for number in range(1, groups):
        cut = _cut_near(behind[-1] * number // groups, behind[-1] // groups // _SLACK, pieces, behind)
        if cut - cuts[-1] >= least and behind[-1] - cut >= least:
            cuts.append(cut)
    cuts.append(behind[-1])
    return [list(_between(pieces, behind, first, last)) for first, last in itertools.pairwise(cuts)]


def _cut_near(wanted: int, slack: int, pieces: Sequence[Piece], behind: Sequence[int]) -> int:
    """Where to cut: where a piece ends if that is near enough, else at the very record if its piece can be cut."""
    at = bisect.bisect_left(behind, wanted)
    before = behind[at] - pieces[at].rows
    nearest = before if wanted - before < behind[at] - wanted else behind[at]
    return wanted if pieces[at].divisible and abs(nearest - wanted) > slack else nearest


def _between(pieces: Sequence[Piece], behind: Sequence[int], first: int, last: int) -> Iterator[Piece]:
    """The records [first, last) of the pieces."""
    for piece, end in zip(pieces, behind, strict=True):
        start = end - piece.rows
        if start < last and first < end:
            inside = first <= start and end <= last
            yield piece if inside else piece.part(max(first, start) - start, min(last, end) - start)
