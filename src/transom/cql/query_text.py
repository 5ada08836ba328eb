"""Where in the text a node stands, and errors that point there."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Final

from sqlglot import exp

from transom.core.errors import OptionError, QueryError, Span, TransomError
from transom.core.excerpt import Excerpt


@dataclass(frozen=True)
class QueryText:
    """The text under work; every error of this room quotes it."""

    text: str

    def span(self, start: int, stop: int) -> Span:
        """Line and column of text[start:stop]; a range over several lines is cut at the end of the first."""
        line = bisect_right(self._lines, start)
        lines = self.text[start:stop].splitlines()
        length = len(lines[0]) if lines else 1
        return Span(line, start - self._lines[line - 1] + 1, max(1, length))

    @cached_property
    def _lines(self) -> list[int]:
        """Where each line begins; found once, as every statement and every error wants a place."""
        lines = (self.text + "|").splitlines(keepends=True)
        return list(accumulate(map(len, lines[:-1]), initial=0))

    def span_at(self, node: exp.Expr) -> Span:
        start, stop = span_of(node)
        return self.span(start, stop)

    def excerpt(self, first: exp.Expr, last: exp.Expr | None = None) -> Excerpt | None:
        """The text of a node, or from one to another; None of one that is not written."""
        extents = [extent_of(node) for node in (first, last) if node is not None]
        written = [extent for extent in extents if extent is not None]
        return (
            Excerpt(self.text, min(start for start, _ in written), max(stop for _, stop in written))
            if written
            else None
        )

    def error(self, what: str, node: exp.Expr, remedy: str | None = None) -> QueryError:
        return QueryError(what, remedy=remedy, span=self.span_at(node), text=self.text)

    def option_error(self, what: str, node: exp.Expr, remedy: str) -> OptionError:
        return OptionError(what, remedy=remedy, span=self.span_at(node), text=self.text)

    @contextmanager
    def at(self, node: exp.Expr) -> Iterator[None]:
        """Gives errors from below that have no place the place of the node."""
        try:
            yield
        except TransomError as error:
            raise self.located(error, node) from None

    def located(self, error: TransomError, node: exp.Expr) -> TransomError:
        """The same error with the place of the node, unless it has one."""
        if error.span is not None:
            return error
        return type(error)(error.what, remedy=error.remedy, span=self.span_at(node), text=self.text)


def extent_of(node: exp.Expr) -> tuple[int, int] | None:
    """First and last + 1 offset of all that a node is made of. It is remembered, so that asking it of every node of a
    tree, children first, takes as long as there are nodes."""
    extent: tuple[int, int] | None = node.meta.get(_EXTENT)
    if extent is not None:
        return extent
    extents = []
    pending = [node]
    while pending:
        at = pending.pop()
        if (child_extent := at.meta.get(_EXTENT)) is not None:
            extents.append(child_extent)
            continue
        if at.meta.get("start") is not None:
            extents.append((at.meta["start"], at.meta["end"] + 1))
        pending.extend(at.iter_expressions())
    if not extents:
        return None
    extent = node.meta[_EXTENT] = min(start for start, _ in extents), max(stop for _, stop in extents)
    return extent


_EXTENT: Final = "extent"


def span_of(node: exp.Expr) -> tuple[int, int]:
    """First and last + 1 offset of what is known of a node: its own token and those below it, else those around it."""
    at: exp.Expr | None = node
    while at is not None:
        spans = [(n.meta["start"], n.meta["end"] + 1) for n in at.walk() if n.meta.get("start") is not None]
        if spans:
            return min(start for start, _ in spans), max(stop for _, stop in spans)
        at = at.parent
    return 0, 1
