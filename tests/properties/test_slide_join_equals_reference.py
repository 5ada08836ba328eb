"""Any join of sliding windows reported slide by slide, by every tactic: equal to the reference, and punctual.

With any cut and restarts on the local engine, over partitions, and within any memory budget.
"""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from tests.emitted_slides import EmittedSlides, run_within_budget, slide_state
from tests.profile import examples
from tests.properties import occurrences
from tests.properties.any_run import in_partitions, locally
from tests.properties.examples import Example, lively_example
from tests.properties.queries import Noted
from tests.properties.seeds import over_seeds
from tests.properties.slide_join_queries import GroupedSlideJoins, SlideJoins, UnitedSlideJoins
from tests.properties.streams import cut
from transom.kernels.slide_join import combine, labour, sorted_run
from transom.pipeline import fragment_partition
from transom.pipeline.driver import Pipeline
from transom.planner import slide_join
from transom.planner.plan import plan
from transom.planner.slide_join import TACTICS
from transom.runtimes.reference.history import History, difference

EXAMPLES = examples(by_day=4, at_night=400)
BUDGETS = (300, 1_500, 4_000, 12_000, 60_000)


KINDS = (
    ("slide join", SlideJoins),
    ("grouped slide join", GroupedSlideJoins),
    ("united slide joins", UnitedSlideJoins),
)


@pytest.mark.parametrize(("name", "queries"), KINDS)
def test_every_tactic_equals_the_reference_within_any_budget(
    name: str, queries: type[SlideJoins], monkeypatch: pytest.MonkeyPatch
) -> None:
    lively: Counter[str] = Counter()
    ways: Counter[str] = Counter()
    monkeypatch.setattr(slide_join, "LEAST_MEMORY", 1)

    @over_seeds(name, EXAMPLES)
    def check(seed: int) -> None:
        random = Random(f"{name} {seed}")

        def statement() -> tuple[str, Noted]:
            generator = queries(random, repeats=15)
            return generator.statement(), generator.noted

        example = lively_example(random, statement)
        for tactic in TACTICS:
            example.catalogue.options["slide_join"] = tactic
            monkeypatch.setattr(fragment_partition, "SLICE_ROWS", random.choice([1, 3, 1 << 15]))
            monkeypatch.setattr(combine, "MOST_TUPLES", random.choice([1, 4, 1 << 15]))
            monkeypatch.setattr(labour, "UNIT_ROWS", random.choice([1, 6, 1 << 16]))
            monkeypatch.setattr(sorted_run, "SHARE_BYTES", random.choice([64, 1 << 15]))
            assert plan(example.query, example.catalogue).kind == "SlideJoin", example.text
            answer = (locally if random.random() < 0.6 else in_partitions)(example, random)
            compare(example, tactic, answer)
            assert answer.late == example.expected.late and answer.rejected == example.expected.rejected
            example.catalogue.options["memory"] = budget = random.choice(BUDGETS)
            if random.random() < 0.3:
                slides = EmittedSlides.of(in_partitions(example, random))
                assert not slides.unfinished and not slides.voided
                answer = slides.history()
            else:
                answer = within_budget(example, random, ways)
            compare(example, f"{tactic}, {budget} bytes", answer)
            del example.catalogue.options["memory"]
            lively[tactic] += len(example.expected.instants) >= 3
        occurrences.note(example.noted.pairs(), len(example.expected.instants))

    check()
    assert all(lively[tactic] >= EXAMPLES // 4 for tactic in TACTICS), lively
    assert len(ways) == 6, ways


def compare(example: Example, how: str, answer: History) -> None:
    reported = difference(example.expected, answer)
    assert reported is None, f"{how}: {example.text}\n(first: reference, second: the engine)\n{reported}"


def within_budget(example: Example, random: Random, ways: Counter[str]) -> History:
    pushes = cut(random, example.rows)
    restarts = {random.randint(0, len(pushes)) for _ in range(random.randint(0, 4))}

    def punctual(pipeline: Pipeline, slides: EmittedSlides) -> None:
        assert not slides.unfinished
        example.check_so_far(pipeline.state.gates.frontier, slides.history)

    slides, pipeline = run_within_budget(example.query, example.catalogue, pushes, restarts.__contains__, punctual)
    state = slide_state(pipeline)
    assert not state.windows and not state.stored and state.report.complete == len(slides.complete)
    ways.update(state.report.tactics)
    return slides.history()
