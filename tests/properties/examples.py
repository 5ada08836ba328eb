"""One example of the property tests, drawn from a seed: a query, the rows of its inputs, and the answer to them.

Drawn evenly, and not step by step by hypothesis: most examples would be nearly empty then, and most operators would
hardly ever occur.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from random import Random

from tests.properties import occurrences
from tests.properties.queries import DECLARATIONS, FUNCTIONS, NESTED_DECLARATIONS, Generator, Noted, statement_of
from tests.properties.streams import inputs
from tests.run_locally import Rows
from transom.core.errors import UnsupportedError
from transom.cql.statements import parse_statements
from transom.plan.algebra import Node, Stream
from transom.plan.catalogue import Catalogue, QueryStatement
from transom.plan.expression import SubQuery, walk
from transom.plan.rewrites.outer_columns import expressions_of
from transom.runtimes.reference.evaluate import evaluate
from transom.runtimes.reference.history import History, difference


@dataclass(frozen=True)
class Inputs:
    """What is declared, and how rows of it are drawn for these bounds of disorder."""

    declarations: str
    draw: Callable[[Random, dict[str, int]], dict[str, Rows]]


PLAIN = Inputs(DECLARATIONS, inputs)
NESTED = Inputs(NESTED_DECLARATIONS, partial(inputs, nested=True))


@dataclass(frozen=True)
class Example:
    """`expected` is the answer of the reference."""

    text: str
    query: Node
    catalogue: Catalogue
    tactic: str
    emit: str
    rows: dict[str, Rows]
    expected: History
    noted: Noted

    def check(self, run: Callable[[], History]) -> None:
        """The answer of a runtime, and what it rejected, are those of the reference, however lifetimes are reported."""
        for method in ("direct", "negative"):
            self.catalogue.options["lifetimes"] = method
            try:
                answer = run()
            except UnsupportedError:
                assert self.tactic == "lazy_hash"  # a join without an equality
                self.catalogue.options["join"] = "auto"
                answer = run()
            reported = difference(self.expected, answer)
            assert reported is None, f"{self.text}\n(first: reference, second: the runtime, {method})\n{reported}"
            assert answer.late == self.expected.late and answer.rejected == self.expected.rejected, self.text
        occurrences.note(self.noted.pairs(), len(self.expected.instants))

    def check_so_far(self, frontier: int | None, reported: Callable[[], History]) -> None:
        """All that happens before `frontier` is out, if what is out reports it (a lifetime is not told before it is
        over)."""
        if frontier is None or (self.emit == "lifetimes" and not isinstance(self.query, Stream)):
            return
        wrong = difference(self.expected, reported(), until=frontier)
        assert wrong is None, f"{self.text}\nwhen progress had reached {frontier}:\n{wrong}"


def example_of(random: Random, family: str, repeats: int = 0) -> Example:
    nested = family == "nested"

    def statement() -> tuple[str, Noted]:
        generator = Generator(random, repeats, nested)
        return statement_of(generator, family), generator.noted

    tactic = random.choice(["auto", "auto", "lazy_hash", "nested_loop"])
    return lively_example(random, statement, tactic, NESTED if nested else PLAIN)


def lively_example(
    random: Random, statement: Callable[[], tuple[str, Noted]], tactic: str = "auto", given: Inputs = PLAIN
) -> Example:
    """A query that `statement` makes; a second one where the answer to the first is dull."""
    emit = random.choice(["changes", "changes", "lifetimes"])
    tick = random.choice(["1 SECOND", "1 SECOND", "1 MICROSECOND"])
    bounds = {"s": random.randint(0, 4), "t": random.randint(0, 4), "u": 0}
    for _ in range(2):
        text, noted = statement()
        query, catalogue = _bound(text, tick, tactic, bounds, given)
        rows, expected = _lively_rows(query, catalogue, random, bounds, given)
        if len(expected.instants) >= 3:
            break
        occurrences.see(occurrences.DULL)
    occurrences.see(emit, tick, tactic, *(type(node).__name__ for node in _nodes(query)))
    return Example(text, query, catalogue, tactic, emit, rows, expected, noted)


def _bound(text: str, tick: str, tactic: str, bounds: dict[str, int], given: Inputs) -> tuple[Node, Catalogue]:
    catalogue = Catalogue(functions=FUNCTIONS)
    declarations = given.declarations.format(bound_s=bounds["s"], bound_t=bounds["t"])
    script = f"{declarations} SET tick = '{tick}'; SET join = '{tactic}'; {text}"
    statement = parse_statements(script, catalogue)[-1]
    assert isinstance(statement, QueryStatement)
    return statement.query, catalogue


def _lively_rows(
    query: Node, catalogue: Catalogue, random: Random, bounds: dict[str, int], given: Inputs
) -> tuple[dict[str, Rows], History]:
    """Rows and the answer to them: of three tries the first with output at three instants or more."""
    names = _inputs_read(query, catalogue)
    for _ in range(3):
        rows = {name: drawn for name, drawn in given.draw(random, bounds).items() if name in names}
        expected = evaluate(query, catalogue, rows)
        if len(expected.instants) >= 3:
            break
        occurrences.see(occurrences.DULL)
    return rows, expected


def _inputs_read(query: Node, catalogue: Catalogue) -> set[str]:
    """The streams and tables that a query reads."""
    names = (getattr(node, "name", None) for node in _nodes(query))
    return {name.lower() for name in names if name is not None and name.lower() in catalogue.relations}


def _nodes(query: Node) -> Iterator[Node]:
    """Those of the sub-queries in its conditions as well."""
    pending = [query]
    while pending:
        node = pending.pop()
        yield node
        pending.extend(node.inputs)
        parts = [part for expression in expressions_of(node) for part in walk(expression)]
        pending.extend(part.query for part in parts if isinstance(part, SubQuery))
