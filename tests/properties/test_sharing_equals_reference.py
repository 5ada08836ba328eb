"""Any queries on one join, coming and going, run as one: each equal to the reference of that query alone.

With any cut into batches, any restarts, and punctual.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count
from random import Random
from unittest.mock import patch

import pytest

from tests.net_table import check_table
from tests.profile import examples
from tests.properties import occurrences
from tests.properties.queries import DECLARATIONS, FUNCTIONS
from tests.properties.seeds import over_seeds
from tests.properties.sharing_queries import SharedJoins
from tests.properties.streams import cut, cut_into_tasks, inputs
from tests.run_in_partitions import Cluster
from tests.run_locally import Answer, Push, Rows, batch_of
from transom.core.time import FOREVER, SECOND, from_datetime, to_datetime
from transom.cql.statements import parse_statements
from transom.pipeline import state_backend
from transom.pipeline.consumer import Consumer, ConsumerSpec
from transom.pipeline.group import GroupPipeline
from transom.pipeline.layout import Layout
from transom.pipeline.merge import merged
from transom.plan.algebra import Node, Stream
from transom.plan.catalogue import Catalogue, QueryStatement, StreamDefinition
from transom.planner.sharing import Sides, shared_join
from transom.planner.sharing_shape import Sharable, sharable
from transom.runtimes.reference.evaluate import evaluate
from transom.runtimes.reference.history import History, difference

EXAMPLES = examples(by_day=8, at_night=400)
TRIES = 50


@dataclass
class SharedQueryRun:
    """A query, what has come out of it, and from where to where it was there."""

    text: str
    spec: ConsumerSpec
    query: Node
    answer: Answer
    begin: int | None = None
    left: int | None = None


@dataclass
class Trial:
    catalogue: Catalogue
    rows: dict[str, Rows]
    waiting: list[SharedQueryRun]
    here: list[SharedQueryRun] = field(default_factory=list)
    gone: list[SharedQueryRun] = field(default_factory=list)

    def start(self, count: int) -> GroupPipeline:
        self.here, self.waiting = self.waiting[:count], self.waiting[count:]
        return GroupPipeline([requested.spec for requested in self.here], self.catalogue)

    def come(self, group: GroupPipeline) -> None:
        requested = self.waiting.pop()
        requested.begin = group.subplan.state.gates.frontier
        group.add(requested.spec)
        self.here.append(requested)

    def go(self, group: GroupPipeline, which: SharedQueryRun) -> None:
        which.left = group.subplan.state.gates.frontier
        group.remove(which.spec.name)
        self.here.remove(which)
        self.gone.append(which)

    def restarted(self, group: GroupPipeline, random: Random) -> GroupPipeline:
        """In another process, perhaps with other queries."""
        saved = group.snapshot()
        frontier = group.subplan.state.gates.frontier
        group.close()
        if len(self.here) > 1 and random.random() < 0.2:
            self.here[0].left = frontier
            self.gone.append(self.here.pop(0))
        if self.waiting and random.random() < 0.2:
            self.waiting[-1].begin = frontier
            self.here.append(self.waiting.pop())
        random.shuffle(self.here)
        again = GroupPipeline([requested.spec for requested in self.here], self.catalogue)
        again.restore(saved)
        return again

    def push(self, group: GroupPipeline, push: Push) -> None:
        definition = self.catalogue.relations[push.name]
        assert isinstance(definition, StreamDefinition)
        if push.rows:
            group.subplan.push(push.name, batch_of(definition.columns, push.rows))
        if push.end:
            group.subplan.end(push.name)
        group.advance(lambda index, rows: self.here[index].answer.add(rows))
        group.flush(lambda index, rows: self.here[index].answer.add(rows))

    def expected(self, requested: SharedQueryRun) -> History:
        """The reference, of that query alone, whose time begins when it came."""
        options = dict(self.catalogue.options)
        if requested.begin is not None:
            options["origin"] = requested.begin
        return evaluate(requested.query, Catalogue(self.catalogue.relations, {}, options), self.rows)

    def check(self, requested: SharedQueryRun, until: int | None) -> int:
        if until is not None and requested.spec.emit == "lifetimes" and not requested.answer.stream:
            return 0  # a lifetime is not told before it is over
        expected = self.expected(requested)
        if requested.answer.table is not None:
            check_table(requested.text, expected, FOREVER if until is None else until, requested.answer.table)
            return len(expected.instants)
        reported = difference(expected, requested.answer.history(), until=until)
        assert reported is None, (
            f"{requested.text} since {requested.begin}\n(first: reference, second: the group)\n{reported}"
        )
        return len(expected.instants)


def trial_of(random: Random, counting: int) -> tuple[Trial, SharedJoins]:
    generator = SharedJoins(random, counting)
    bounds = {"s": random.randint(0, 4), "t": random.randint(0, 4), "u": 0}
    catalogue = Catalogue(functions=FUNCTIONS)
    tactic = random.choice(["auto", "auto", "auto", "lazy_hash" if generator.equal else "nested_loop", "nested_loop"])
    tick = random.choice(["1 SECOND", "1 SECOND", "1 MICROSECOND"])
    declared = DECLARATIONS.format(bound_s=bounds["s"], bound_t=bounds["t"])
    parse_statements(f"{declared} SET tick = '{tick}'; SET join = '{tactic}';", catalogue)
    rows = {name: some for name, some in inputs(random, bounds).items() if name in generator.streams}
    if random.random() < 0.15:
        catalogue.options["origin"] = from_datetime(random.choice(rows[generator.streams[0]])[0])
    requested: list[SharedQueryRun] = []
    for i in range(random.randint(2, 6)):
        requested.append(request_of(generator, catalogue, i, requested))
    return Trial(catalogue, rows, requested), generator


def counted(requested: Sequence[SharedQueryRun]) -> Sides:
    """The sides whose rows somebody counts."""
    left, right = (any(run.spec.of_join.windows[side].rows is not None for run in requested) for side in (0, 1))
    return left, right


def within(some: Sides, sides: Sides) -> bool:
    return all(is_counted <= may_be for is_counted, may_be in zip(some, sides, strict=True))


def layout_of(trial: Trial, sides: Sides, partitions: int, before: Sequence[Consumer] = ()) -> Layout:
    """The queries that are there on one join; those that were there before are planned as they were."""
    planned = {run.spec.name: run for run in before}
    consumers = [planned.get(run.spec.name, Consumer(run.spec, trial.catalogue, run.begin)) for run in trial.here]
    subplan = shared_join([run.spec.of_join for run in trial.here], trial.catalogue, sides)
    return Layout(subplan, trial.catalogue, "changes", partitions, open=True, consumers=tuple(consumers))


def in_partitions(trial: Trial, random: Random) -> Counter[str]:
    """Laid out over partitions, where queries come and go as well; those that would change the join are not let in."""
    seen: Counter[str] = Counter()
    trial.start(random.randint(1, len(trial.waiting) // 2))
    sides = counted(random.choice([trial.here, [*trial.here, *trial.waiting]]))  # as one that has left may have wanted
    trial.waiting = [run for run in trial.waiting if within(counted([run]), sides)]
    partitions = random.choice([1, 2, 3, 5])
    batches = cut_into_tasks(random, cut(random, trial.rows))
    batches += [[[Push(name, [], end=True)]] for name in trial.rows]
    cluster = Cluster(layout_of(trial, sides, partitions), Random(random.random()))
    for batch in batches:
        reported = cluster.answers(batch)
        assert reported.keys() <= {requested.spec.name for requested in trial.here}
        for requested, consumer in zip(trial.here, cluster.layout.consumers, strict=True):
            requested.answer.add(
                merged(reported.get(requested.spec.name, []), consumer.emit_name, consumer.output_schema)
            )
        comes, goes = random.random() < 0.3 and trial.waiting, random.random() < 0.15 and len(trial.here) > 1
        if (comes or goes) and cluster.frontier != FOREVER:
            if goes:
                left = trial.here.pop(random.randrange(len(trial.here)))
                left.left = cluster.frontier
                trial.gone.append(left)
            if comes:
                trial.here.append(trial.waiting.pop())
                trial.here[-1].begin = cluster.frontier
            random.shuffle(trial.here)
            cluster = cluster.changed(layout_of(trial, sides, partitions, cluster.layout.consumers))
            seen["came"] += bool(comes)
            seen["went"] += bool(goes)
        if random.random() < 0.15:
            cluster.restart()
    cluster.close()
    return seen


def request_of(
    generator: SharedJoins, catalogue: Catalogue, number: int, others: list[SharedQueryRun]
) -> SharedQueryRun:
    """A query on the same join as the others: a selection that is pushed into the join may make it another one.

    One that the others are hard to find for is asked again as it is.
    """
    for attempt in count():
        text = generator.statement() if attempt < TRIES else others[0].text
        (statement,) = parse_statements(text, catalogue)
        assert isinstance(statement, QueryStatement)
        shape = sharable(statement.query, catalogue)
        assert isinstance(shape, Sharable), f"{text}: {shape}"
        if all(other.spec.of_join.join == shape.join for other in others):
            emit = generator.pick(("changes", "changes", "lifetimes"))
            emit = "net" if emit == "changes" and number % 3 == 2 else emit
            spec = ConsumerSpec(f"q{number}", shape, emit)
            answer = Answer(isinstance(statement.query, Stream), emit, Consumer(spec, catalogue).root)
            return SharedQueryRun(text, spec, statement.query, answer)
    raise AssertionError


@pytest.mark.parametrize("counting", [0, 40])
def test_each_query_of_a_group_in_partitions_equals_the_reference(counting: int) -> None:
    seen: Counter[str] = Counter()

    @over_seeds(f"sharing in partitions {counting}", EXAMPLES, seen)
    def check(seed: int) -> None:
        random = Random(f"sharing in partitions {counting} {seed}")
        trial, generator = trial_of(random, counting)
        least = random.choice([1, 1 << 16])  # so that small memories are logged, too
        with patch.object(state_backend, "LEAST_BYTES", least):
            seen.update(in_partitions(trial, random))
        most = max(trial.check(requested, None) for requested in trial.here)
        for requested in trial.gone:
            if requested.left is not None:
                trial.check(requested, requested.left)
        seen["lively"] += most >= 3
        occurrences.note(generator.noted.pairs(), most)

    check()
    assert seen["lively"] >= EXAMPLES // 4 and seen["came"] and seen["went"], seen


@pytest.mark.parametrize("emit", ["changes", "lifetimes"])
def test_what_is_over_everything_begins_when_its_query_comes(emit: str) -> None:
    """It is in a partition of its own, behind those of the join; its COUNT is 0 from then on and not before."""
    catalogue = Catalogue(functions=FUNCTIONS)
    parse_statements(DECLARATIONS.format(bound_s=0, bound_t=0), catalogue)
    rows: dict[str, Rows] = {
        name: [(to_datetime(t * SECOND), 1, "g", t, 0.5, None) for t in (1, 4, 10, 20)] for name in ("s", "t")
    }
    requested = []
    for number, what in enumerate(("s.x", "COUNT(*) AS n")):
        text = f"SELECT {what} FROM s [RANGE 2 SECONDS], t [RANGE 2 SECONDS] WHERE s.k = t.k"
        (statement,) = parse_statements(text, catalogue)
        assert isinstance(statement, QueryStatement)
        shape = sharable(statement.query, catalogue)
        assert isinstance(shape, Sharable)
        spec = ConsumerSpec(f"q{number}", shape, emit)
        answer = Answer(False, emit, Consumer(spec, catalogue).root)
        requested.append(SharedQueryRun(text, spec, statement.query, answer))
    trial = Trial(catalogue, rows, requested)
    trial.start(1)
    cluster = Cluster(layout_of(trial, (False, False), 2))
    cluster.answers([[Push(name, some[:2]) for name, some in rows.items()]])
    trial.here.append(trial.waiting.pop())
    trial.here[-1].begin = cluster.frontier
    assert cluster.frontier == 4 * SECOND
    cluster = cluster.changed(layout_of(trial, (False, False), 2, cluster.layout.consumers))
    assert len(cluster.layout.fragments) > 1
    reported = cluster.answers([[Push(name, some[2:], end=True) for name, some in rows.items()]])
    newcomer = cluster.layout.consumers[1]
    requested[1].answer.add(merged(reported["q1"], newcomer.emit_name, newcomer.output_schema))
    cluster.close()
    assert trial.check(requested[1], None) > 2


@pytest.mark.parametrize("counting", [0, 40])
def test_each_query_of_a_group_equals_the_reference(counting: int) -> None:
    seen: Counter[str] = Counter()

    @over_seeds(f"sharing {counting}", EXAMPLES, seen)
    def check(seed: int) -> None:
        random = Random(f"sharing {counting} {seed}")
        trial, generator = trial_of(random, counting)
        group = trial.start(random.randint(1, len(trial.waiting)))
        for push in cut(random, trial.rows):
            trial.push(group, push)
            if trial.waiting and not group.finished and random.random() < 0.15:
                trial.come(group)
                seen["came"] += 1
            if len(trial.here) > 1 and random.random() < 0.05:
                trial.go(group, random.choice(trial.here))
                seen["went"] += 1
            if random.random() < 0.15:
                group = trial.restarted(group, random)
                seen["restarts"] += 1
            if random.random() < 0.1 and group.subplan.state.gates.frontier is not None:
                trial.check(random.choice(trial.here), group.subplan.state.gates.frontier)
        for name in trial.rows:
            trial.push(group, Push(name, [], end=True))
        assert group.finished
        group.close()
        lively = [trial.check(requested, None) for requested in trial.here]
        lively += [trial.check(requested, requested.left) for requested in trial.gone if requested.left is not None]
        seen["lively"] += max(lively) >= 3
        occurrences.note(generator.noted.pairs(), max(lively))

    check()
    assert seen["lively"] >= EXAMPLES // 3 and all(seen[what] for what in ("came", "went", "restarts")), seen
