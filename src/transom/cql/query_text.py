"""Where in the text a node stands, and errors that point there."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

from sqlglot import exp

from transom.core.errors import OptionError, QueryError, Span, TransomError


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


def span_of(node: exp.Expr) -> tuple[int, int]:
    """First and last + 1 offset of what is known of a node: its own token and those below it, else those around it."""
    at: exp.Expr | None = node
    while at is not None:
        spans = [(n.meta["start"], n.meta["end"] + 1) for n in at.walk() if n.meta.get("start") is not None]
        if spans:
            return min(start for start, _ in spans), max(stop for _, stop in spans)
        at = at.parent
    return 0, 1
