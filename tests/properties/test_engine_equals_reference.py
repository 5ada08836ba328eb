"""The heart of the tests: any query, streams, cut, restart and tactic; equal at every instant, and punctual.

Hypothesis chooses seeds; query, rows and cut are drawn evenly from them. (Drawn step by step, most examples would be
nearly empty, and most operators would hardly ever occur.)
"""

from __future__ import annotations

import os
from random import Random

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.properties import occurrences
from tests.properties.queries import DECLARATIONS, FAMILIES, Generator, statement_of
from tests.properties.streams import cut, inputs
from tests.run_locally import Answer, Rows, run_locally
from transom.core.errors import RefusedError
from transom.cql.statements import parse_statements
from transom.pipeline.driver import Pipeline
from transom.plan.algebra import Node
from transom.plan.catalogue import Catalogue, QueryStatement
from transom.runtimes.reference.evaluate import evaluate
from transom.runtimes.reference.history import History, difference

EXAMPLES = 250 if os.environ.get("HYPOTHESIS_PROFILE") == "nightly" else 45


@pytest.mark.parametrize("family", FAMILIES)
def test_the_local_engine_equals_the_reference(family: str) -> None:
    @settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck), phases=[Phase.generate])
    @given(st.integers(0, 2**48))
    def check(seed: int) -> None:
        check_example(family, seed)

    check()


def check_example(family: str, seed: int) -> None:
    random = Random(f"{family} {seed}")
    tactic = random.choice(["auto", "auto", "lazy_hash", "nested_loop"])
    emit = random.choice(["changes", "changes", "lifetimes"])
    tick = random.choice(["1 SECOND", "1 SECOND", "1 MICROSECOND"])
    bounds = {"s": random.randint(0, 4), "t": random.randint(0, 4), "u": 0}
    for _ in range(2):  # a second query where the answer to the first is dull
        generator = Generator(random)
        text = statement_of(generator, family)
        query, catalogue = bound(text, tick, tactic, bounds)
        rows, expected = lively_rows(query, catalogue, random, bounds)
        if len(expected.instants) >= 3:
            break
    pushes = cut(random, rows)
    restarts = {random.randint(0, len(pushes)) for _ in range(random.randint(0, 4))}

    def punctual(pipeline: Pipeline, answer: Answer) -> None:
        if pipeline.state.doors.upto is None or (emit == "lifetimes" and not answer.stream):
            return
        told = difference(expected, answer.history(), until=pipeline.state.doors.upto)
        assert told is None, f"{text}\nwhen progress had reached {pipeline.state.doors.upto}:\n{told}"

    def run() -> History:
        return run_locally(query, catalogue, rows, pushes, emit=emit, restart=restarts.__contains__, watch=punctual)

    try:
        answer = run()
    except RefusedError:
        assert tactic == "lazy_hash"  # a join without an equality
        catalogue.options["join"] = "auto"
        answer = run()
    told = difference(expected, answer)
    assert told is None, f"{text}\n(first: reference, second: local)\n{told}"
    assert answer.late == expected.late and answer.rejected == expected.rejected, text
    occurrences.note(generator.noted.pairs(), len(expected.instants))


def bound(text: str, tick: str, tactic: str, bounds: dict[str, int]) -> tuple[Node, Catalogue]:
    catalogue = Catalogue()
    declarations = DECLARATIONS.format(bound_s=bounds["s"], bound_t=bounds["t"])
    script = f"{declarations} SET tick = '{tick}'; SET join = '{tactic}'; {text}"
    statement = parse_statements(script, catalogue)[-1]
    assert isinstance(statement, QueryStatement)
    return statement.query, catalogue


def lively_rows(
    query: Node, catalogue: Catalogue, random: Random, bounds: dict[str, int]
) -> tuple[dict[str, Rows], History]:
    """Rows and the answer to them: of three tries the first with output at three instants or more."""
    names = inputs_read(query, catalogue)
    for _ in range(3):
        rows = {name: given for name, given in inputs(random, bounds).items() if name in names}
        expected = evaluate(query, catalogue, rows)
        if len(expected.instants) >= 3:
            break
    return rows, expected


def inputs_read(query: Node, catalogue: Catalogue) -> set[str]:
    """The streams and tables that a query reads."""
    found = set()
    pending = [query]
    while pending:
        node = pending.pop()
        name = getattr(node, "name", None)
        if name is not None and name.lower() in catalogue.relations:
            found.add(name.lower())
        pending.extend(node.inputs)
    return found
