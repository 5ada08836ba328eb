"""The heart of the tests.

Any query, any streams, any cut, any restart, any tactic; equal to the reference at every instant, and punctual.
"""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.properties import occurrences
from tests.properties.queries import DECLARATIONS, FAMILIES, Generator, statement_of
from tests.properties.streams import cut, inputs
from tests.run_locally import Answer, run_locally
from transom.core.errors import RefusedError
from transom.cql.statements import parse_statements
from transom.pipeline.driver import Pipeline
from transom.plan.catalogue import Catalogue, QueryStatement
from transom.runtimes.reference.evaluate import evaluate
from transom.runtimes.reference.history import difference

# Shrinking takes minutes; ask for it when a failure is to be understood.
PHASES = tuple(Phase) if os.environ.get("SHRINK") else (Phase.explicit, Phase.generate)
EXAMPLES = 250 if os.environ.get("HYPOTHESIS_PROFILE") == "nightly" else 45


@pytest.mark.parametrize("family", FAMILIES)
def test_the_local_engine_equals_the_reference(family: str) -> None:
    shares: list[bool] = []

    @settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck), phases=PHASES)
    @given(st.data())
    def check(data: st.DataObject) -> None:
        draw = data.draw
        bounds = {"s": draw(st.integers(0, 4)), "t": draw(st.integers(0, 4)), "u": 0}
        generator = Generator(draw)
        text = statement_of(generator, family)
        tick = draw(st.sampled_from(["1 SECOND", "1 SECOND", "1 MICROSECOND"]))
        tactic = draw(st.sampled_from(["auto", "auto", "lazy_hash", "nested_loop"]))
        catalogue = Catalogue()
        declarations = DECLARATIONS.format(bound_s=bounds["s"], bound_t=bounds["t"])
        script = f"{declarations} SET tick = '{tick}'; SET join = '{tactic}'; {text}"
        seed = draw(st.integers(0, 2**32))
        emit = draw(st.sampled_from(["changes", "changes", "lifetimes"]))

        statement = parse_statements(script, catalogue)[-1]
        assert isinstance(statement, QueryStatement)
        names = inputs_read(statement, catalogue)
        for attempt in range(6):  # the first rows that make the answer lively
            rows = {name: given for name, given in inputs(seed + attempt, bounds).items() if name in names}
            expected = evaluate(statement.query, catalogue, rows)
            if len(expected.instants) >= 3:
                break
        pushes = cut(seed, rows)
        restarts = draw(st.frozensets(st.integers(0, len(pushes)), max_size=4))

        def punctual(pipeline: Pipeline, answer: Answer) -> None:
            if pipeline.state.upto is None or (emit == "lifetimes" and not answer.stream):
                return
            told = difference(expected, answer.history(), until=pipeline.state.upto)
            assert told is None, f"{text}\nwhen progress had reached {pipeline.state.upto}:\n{told}"

        try:
            answer = run_locally(
                statement.query, catalogue, rows, pushes, emit=emit, restart=restarts.__contains__, watch=punctual
            )
        except RefusedError:
            assert tactic == "lazy_hash"  # a join without an equality
            return
        told = difference(expected, answer)
        assert told is None, f"{text}\n(first: reference, second: local)\n{told}"
        assert answer.late == expected.late and answer.rejected == expected.rejected, text
        shares.append(len(expected.instants) >= 3)
        occurrences.note(generator.noted.pairs(), len(expected.instants))

    check()
    assert sum(shares) >= 0.8 * len(shares), (
        f"only {sum(shares)} of {len(shares)} examples had three instants of output"
    )


def inputs_read(statement: QueryStatement, catalogue: Catalogue) -> set[str]:
    """The streams and tables that a query reads."""
    found = set()
    pending = [statement.query]
    while pending:
        node = pending.pop()
        name = getattr(node, "name", None)
        if name is not None and name.lower() in catalogue.relations:
            found.add(name.lower())
        pending.extend(node.inputs)
    return found
