"""What a plan that keeps to a memory budget takes of the memory of its process beside it."""

from __future__ import annotations

import sys
from contextlib import closing

import pytest

from tests.emitted_slides import slide_state
from tests.properties.test_slides_put_off import START, TIMED, bound
from tests.run_locally import batch_of
from transom.core.time import SECOND, to_datetime
from transom.pipeline import spilling
from transom.pipeline.driver import Pipeline
from transom.pipeline.registry import STATE_CLASSES
from transom.plan.catalogue import StreamDefinition
from transom.planner.plan import plan
from transom.state import codec

QUERY = (
    "RSTREAM(SELECT a.x, b.x FROM a [RANGE 4 SECONDS SLIDE 1 SECOND], b [RANGE 4 SECONDS SLIDE 1 SECOND]"
    " WHERE a.k = b.k);"
)


def stepped(memory: int | None) -> Pipeline:
    node, catalogue = bound(TIMED, "ab", QUERY)
    catalogue.options.update(slide_join="full", **({} if memory is None else {"memory": memory}))
    pipeline = Pipeline(plan(node, catalogue), catalogue)
    for name in "ab":
        definition = catalogue.relations[name]
        assert isinstance(definition, StreamDefinition)
        rows = [(to_datetime(START + i * SECOND), 1, i) for i in range(3)]
        pipeline.push(name, batch_of(definition.columns, rows))
    pipeline.advance()
    return pipeline


@pytest.mark.parametrize(("memory", "times"), [(4 << 20, 1), (None, 0)])
def test_a_step_within_a_budget_gives_back_what_it_freed(
    monkeypatch: pytest.MonkeyPatch, memory: int | None, times: int
) -> None:
    given_back: list[bool] = []
    monkeypatch.setattr(spilling, "give_back_freed_memory", lambda: given_back.append(True))
    stepped(memory).close()
    assert len(given_back) == times


def test_what_was_read_back_does_not_hold_on_to_all_that_was_read() -> None:
    with closing(stepped(4 << 20)) as pipeline:
        assert any(run.in_memory for run in slide_state(pipeline).runs)
        data = pipeline.snapshot()
    before = sys.getrefcount(data)
    with closing(stepped(4 << 20)) as other:
        state = codec.decode(data, STATE_CLASSES)["state"]
        assert sys.getrefcount(data) > before  # else this shows nothing
        assert other.part.spilling is not None
        other.part.spilling.adopt(state.stages[0].part.operators)
        state.gates.inputs.clear()
        assert sys.getrefcount(data) == before
        assert any(run.in_memory for run in state.stages[0].part.operators[-2][0].runs)
