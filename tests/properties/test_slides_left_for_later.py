"""Slides that steps leave for later, in a plan laid out over partitions: each is completed exactly once.

Rows have times of their own, or are stamped on arrival. A step does little, so that most slides wait for batches that
bring nothing; frames come in any order, steps are taken twice because what came of the first was lost, and partitions
lose their memory. What is called complete equals the reference, and a step that is taken again gives the same.
"""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from random import Random
from typing import Any

import pytest

from tests.emitted_slides import EmittedSlides, slide_state
from tests.profile import examples
from tests.properties.seeds import over_seeds
from tests.properties.test_slides_put_off import ARRIVING, START, TIMED, bound, query_of
from tests.run_in_partitions import Cluster
from tests.run_locally import Push, batch_of
from transom.core.errors import UnsupportedError
from transom.core.time import SECOND, to_datetime
from transom.kernels.slide_join import labour, turn
from transom.kernels.slide_join.memory import SlideJoinState
from transom.pipeline.driver import Pipeline
from transom.pipeline.layout import Layout
from transom.plan.catalogue import Catalogue, StreamDefinition
from transom.planner import slide_join
from transom.planner.plan import plan
from transom.planner.slide_join import TACTICS
from transom.runtimes.reference.evaluate import evaluate
from transom.runtimes.reference.history import difference

EXAMPLES = examples(by_day=8, at_night=400)

Rows = list[tuple[Any, ...]]


def rows_of(random: Random, now: int, names: str) -> dict[str, Rows]:
    """Of every stream some, in the order of their times."""
    rows: dict[str, Rows] = {}
    for name in names:
        times = sorted(now - random.randint(0, SECOND) for _ in range(random.choice([0, 1, 3, 12])))
        rows[name] = [(to_datetime(t), random.choice([1, 1, 2, None]), random.randint(0, 9)) for t in times]
    return rows


def placed(catalogue: Catalogue, name: str, rows: Rows) -> Rows:
    """As the columns of the stream have them, those that are stamped on arrival without a time."""
    definition = catalogue.relations[name]
    assert isinstance(definition, StreamDefinition) and definition.time is not None
    order = [column.name for column in definition.columns]
    at = order.index(definition.time.column)
    if not definition.arrival_time:
        return rows
    return [(*row[1 : at + 1], None, *row[at + 1 :]) for row in rows]


def work_clock(cluster: Cluster) -> int:
    return int(cluster.homes[1, 0].recovered().state.gates.clock)


def work_of(cluster: Cluster) -> list[SlideJoinState]:
    states = []
    for home in cluster.homes.values():
        for of_one in home.recovered().state.part.operators:
            states += [state for state in of_one if isinstance(state, SlideJoinState)]
    return states


@pytest.mark.parametrize("arriving", [False, True])
def test_every_slide_is_completed_once(arriving: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slide_join, "LEAST_MEMORY", 1)
    seen: Counter[str] = Counter()

    @over_seeds(f"left for later {arriving}", EXAMPLES, seen)
    def check(seed: int) -> None:
        random = Random(f"left for later {arriving} {seed}")
        names, query = query_of(random)
        declared = ARRIVING if arriving else TIMED
        node, catalogue = bound(declared, names, query)
        memory = random.choice([500, 1_500, 4_000, 20_000])
        catalogue.options.update(slide_join=random.choice(TACTICS), memory=memory, put_off=1_000)
        monkeypatch.setattr(labour, "UNIT_ROWS", random.choice([1, 4, 1 << 16]))
        pace = random.choice([1, 5, 40])
        for limit in ("FIRST_PACE", "LEAST_PACE", "MOST_PACE"):
            monkeypatch.setattr(turn, limit, pace)
        slides = EmittedSlides()
        taken: dict[str, Rows] = {name: [] for name in names}
        disorder = random if random.random() < 0.7 else None
        layout = Layout(plan(node, catalogue), catalogue, "changes", 2)
        with closing(Cluster(layout, disorder)) as cluster:
            now = heard = START
            others = Random(f"others {seed}")

            def batch(pushes: list[Push]) -> None:
                nonlocal heard
                heard = now
                sharing = others.choice([0, 0, 1, 2, 3])  # queries come and go
                cluster.sharing = sharing if memory > 1_500 else 0  # a part of less is thousands of shares of a slide
                for rows in cluster.batch([pushes], now, list(names)):
                    slides.add(rows)

            for _ in range(random.randint(6, 20)):
                now += random.choice([200_000, SECOND, SECOND])
                came = rows_of(random, now, names) if random.random() < 0.8 else {}
                if arriving and came:  # of one stream, so that it is known how its rows are stamped
                    name = random.choice(names)
                    first = max(work_clock(cluster) + 1, now)
                    came = {name: [(to_datetime(first + i), k, x) for i, (_, k, x) in enumerate(came[name])]}
                for name, rows in came.items():
                    taken[name] += rows
                batch([Push(name, placed(catalogue, name, rows)) for name, rows in came.items() if rows])
                if not arriving:
                    now += SECOND  # so that no row is late
                seen["left"] += bool(slides.unfinished) or any(state.works for state in work_of(cluster))
                if random.random() < 0.15:
                    cluster.restart()
            if random.random() < 0.6:
                for _ in range(2_000):
                    if cluster.statuses[1, 0]["wake"] != heard + 1:
                        break
                    now += 1_000
                    batch([])
                    seen["idle"] += 1
                assert not any(state.works for state in work_of(cluster))
                assert not slides.unfinished
            seen["left at the end"] += any(state.works for state in work_of(cluster))
            for name in names:
                for rows in cluster.batch([[Push(name, [], end=True)]], now + SECOND, list(names)):
                    slides.add(rows)
            assert not slides.unfinished
            (state,) = work_of(cluster)
            assert not state.works and not state.windows and not state.stored
            assert state.report.put_off == len(slides.voided) == state.report.completed_later
            seen["put off"] += len(slides.voided) > 0
            seen["shared"] += state.report.sharing > 1
            seen["groups"] += "GROUP BY" in query
            seen["one row or united"] += ("COUNT" in query and "GROUP BY" not in query) or "UNION" in query
        expected = evaluate(*bound(TIMED, names, query), taken)
        wrong = difference(expected, slides.history())
        assert wrong is None, f"{query}\n(first: reference, second: the engine)\n{wrong}"
        seen["lively"] += len(expected.instants) > 3

    check()
    assert arriving or seen["left at the end"], seen
    assert seen["left"] and seen["idle"] and seen["put off"] and seen["shared"] and seen["groups"], seen
    assert seen["one row or united"], seen
    assert seen["lively"] >= EXAMPLES // 5, seen


def test_in_one_process_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows with times of their own wait for nobody there either, and idle moments complete what was left."""
    monkeypatch.setattr(slide_join, "LEAST_MEMORY", 1)
    monkeypatch.setattr(labour, "UNIT_ROWS", 4)
    for limit in ("FIRST_PACE", "LEAST_PACE", "MOST_PACE"):
        monkeypatch.setattr(turn, limit, 5)
    random = Random("left for later locally")
    names, query = (
        "ab",
        (
            "RSTREAM(SELECT a.x, b.x FROM a [RANGE 4 SECONDS SLIDE 1 SECOND], b [RANGE 3 SECONDS SLIDE 1 SECOND]"
            " WHERE a.k = b.k);"
        ),
    )
    node, catalogue = bound(TIMED, names, query)
    catalogue.options.update(slide_join="hybrid", memory=4_000, put_off=1_000)
    slides = EmittedSlides()
    taken: dict[str, Rows] = {name: [] for name in names}
    left = 0
    with closing(Pipeline(plan(node, catalogue), catalogue)) as pipeline:
        pipeline.clock = lambda: 0
        for second in range(24):
            for name in names:
                rows = rows_of(random, START + second * SECOND, names)[name]
                taken[name] += rows
                pipeline.push(name, _batch(catalogue, name, rows))
            output, _ = pipeline.advance()
            if output is not None:
                slides.add(output.rows)
            if second % 4 == 3:
                left += bool(slide_state(pipeline).works)
                while (output := pipeline.idle()) is not None:
                    slides.add(output.rows)
                assert not slide_state(pipeline).works and not slides.unfinished
        for name in names:
            pipeline.end(name)
        output, _ = pipeline.advance()
        if output is not None:
            slides.add(output.rows)
    assert left > 3 and slides.voided and not slides.unfinished
    assert difference(evaluate(*bound(TIMED, names, query), taken), slides.history()) is None


def _batch(catalogue: Catalogue, name: str, rows: Rows) -> Any:
    definition = catalogue.relations[name]
    assert isinstance(definition, StreamDefinition)
    return batch_of(definition.columns, rows)


def test_without_a_budget_nothing_is_put_off() -> None:
    node, catalogue = bound(TIMED, "ab", "RSTREAM(SELECT a.x FROM a [RANGE 4 SECONDS SLIDE 1 SECOND] AS a, "
                            "b [RANGE 4 SECONDS SLIDE 1 SECOND] AS b WHERE a.k = b.k);")  # fmt: skip
    catalogue.options.update(put_off=1_000)
    with pytest.raises(UnsupportedError, match="within a memory budget only"):
        plan(node, catalogue)


@pytest.mark.parametrize(("rows", "keys"), [(2_000, 200), (150, 1)])
def test_a_step_emits_about_a_quarter_of_the_budget(rows: int, keys: int) -> None:
    """However many matches a row has: once that is known, the units of work are small enough."""
    memory = 4 << 20
    window = "[RANGE 4 SECONDS SLIDE 1 SECOND]"
    query = f"RSTREAM(SELECT a.x, b.x FROM a {window}, b {window} WHERE a.k = b.k);"
    node, catalogue = bound(TIMED, "ab", query)
    catalogue.options.update(slide_join="full", memory=memory, put_off=1_000_000)
    sizes = []
    with closing(Pipeline(plan(node, catalogue), catalogue)) as pipeline:
        pipeline.clock = lambda: 0
        for second in range(8):
            for name in "ab":
                times = [to_datetime(START + second * SECOND + i) for i in range(rows)]
                pipeline.push(name, _batch(catalogue, name, [(t, i % keys, i) for i, t in enumerate(times)]))
            output, _ = pipeline.advance()
            sizes.append(0 if output is None else output.rows.nbytes)
            while (output := pipeline.idle()) is not None:
                sizes.append(output.rows.nbytes)
    # A slide has (4 rows) x (4 rows) / keys results of eight bytes, and attempts and times beside them.
    assert sum(sizes) > 10 * memory and max(sizes[len(sizes) // 2 :]) < memory, sizes
