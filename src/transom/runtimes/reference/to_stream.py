"""From a relation back to a stream, by definition (semantics.md, "Relation to stream")."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from transom.plan.algebra import Change
from transom.runtimes.reference.admission import TimedRow
from transom.runtimes.reference.history import Bag, RelationHistory, value_order


def stream_of(relation: RelationHistory, change: Change) -> list[TimedRow]:
    """The rows that the change operator emits; those of one instant in the order of their values."""
    emitted: list[TimedRow] = []
    before: Bag = Counter()
    for instant, after in relation.grouped().points:
        match change:
            case Change.ISTREAM:
                rows = after - before
            case Change.DSTREAM:
                rows = before - after
            case Change.RSTREAM:
                rows = after
        emitted += _in_order(rows, instant)
        before = after
    return emitted


def slides_of(relation: RelationHistory, slides: Sequence[int], last: int) -> list[TimedRow]:
    """RSTREAM over slides: the snapshot at every multiple of a slide, up to and with the instant `last`."""
    emitted: list[TimedRow] = []
    relation = relation.grouped()
    ends = [*relation.instants, last + 1][1:]
    for (begin, snapshot), end in zip(relation.points, ends, strict=True):
        if snapshot:
            multiples = {t for slide in slides for t in _multiples(slide, begin, min(end, last + 1))}
            for instant in sorted(multiples):
                emitted += _in_order(snapshot, instant)
    return emitted


def _multiples(slide: int, begin: int, end: int) -> range:
    """The multiples of a slide in [begin, end)."""
    return range(-(-begin // slide) * slide, end, slide)


def _in_order(rows: Bag, instant: int) -> list[TimedRow]:
    return [TimedRow(row, instant) for row in sorted(rows.elements(), key=value_order)]
