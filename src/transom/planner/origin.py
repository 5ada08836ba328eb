"""What of the text of a query an operator comes from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from transom.core.excerpt import Excerpt
from transom.kernels.operator import Operator
from transom.plan.algebra import AggregateCall, OrderedBy
from transom.plan.catalogue import Statement
from transom.plan.expression import Expression


def excerpts(operator: Operator) -> list[Excerpt]:
    """The pieces of text that say what an operator does, in their order: that of its node, or else those of what it
    computes. Nothing of one that the planner has put in by itself, such as one that leaves columns out."""
    excerpt = operator.node.excerpt
    if excerpt is not None:
        return [excerpt]
    written = [operator.written, *(value for name, value in vars(operator.node).items() if name != "excerpt")]
    if operator.keys is not None:
        written += [operator.keys.left, operator.keys.right, operator.keys.residual]
    return _merged(_pieces(written))


def excerpts_json(operator: Operator, statement: Statement) -> list[dict[str, Any]]:
    """For whoever shows the text of the statement: the pieces, and from where to where in it they stand; of those of a
    view that was declared elsewhere, None."""
    described = []
    for each in excerpts(operator):
        lines = (each.text + "|").splitlines(keepends=True)
        begin = sum(map(len, lines[: statement.span.line - 1])) + statement.span.column - 1
        end = begin + len(statement.text)
        inside = each.text[begin:end] == statement.text and begin <= each.start and each.stop <= end
        described.append({"text": str(each), "at": [each.start - begin, each.stop - begin] if inside else None})
    return described


def _pieces(part: Any) -> Iterator[Excerpt]:
    """The largest ones."""
    if isinstance(part, Expression | AggregateCall) and part.excerpt is not None:
        yield part.excerpt
    elif isinstance(part, Expression):
        yield from _pieces(part.children)
    elif isinstance(part, AggregateCall):
        yield from _pieces(part.expressions)
    elif isinstance(part, OrderedBy):
        yield from _pieces(part.expression)
    elif isinstance(part, tuple | list):
        for each in part:
            yield from _pieces(each)


def _merged(pieces: Iterator[Excerpt]) -> list[Excerpt]:
    """Each piece once, in the order of the text; those that lie in another are it, and the sides of a `=` are one."""
    kept: list[Excerpt] = []
    for each in sorted(set(pieces), key=lambda piece: (piece.text, piece.start, -piece.stop)):
        last = kept[-1] if kept and kept[-1].text == each.text else None
        if last is not None and each.text[last.stop : each.start].strip() == "=":
            kept[-1] = replace(last, stop=each.stop)
        elif last is None or each.stop > last.stop:
            kept.append(each)
    return kept
