"""Any queries on one view run as one: each equal to the reference of that query alone.

With any cut into batches, any restarts, any number of partitions, and punctual.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Final, Literal

import pytest

from tests.net_table import check_table
from tests.profile import examples
from tests.properties import occurrences
from tests.properties.part_queries import SLIDING_VIEWS, VIEWS, Readers, Sliding, joins_that_differ
from tests.properties.queries import DECLARATIONS, FUNCTIONS, Generator, query_of
from tests.properties.seeds import over_seeds
from tests.properties.streams import cut, cut_into_tasks, inputs
from tests.run_in_partitions import Cluster
from tests.run_locally import Answer, Push, Rows, batch_of
from transom.core.errors import UnsupportedError
from transom.core.time import FOREVER
from transom.cql.statements import parse_statements
from transom.pipeline.consumer import Consumer, ConsumerSpec
from transom.pipeline.group import GroupPipeline
from transom.pipeline.layout import Layout
from transom.pipeline.merge import merged
from transom.plan.algebra import Node, Stream
from transom.plan.catalogue import Catalogue, QueryStatement, StreamDefinition, TableDefinition
from transom.planner.plan import plan
from transom.planner.sharing import shared_subplan
from transom.planner.sharing_plan import SharablePlan
from transom.program.planned import Planned
from transom.program.sharing import sharing_of
from transom.runtimes.reference.evaluate import evaluate
from transom.runtimes.reference.history import History, difference

Kind = Literal["views", "sliding", "windows"]
KINDS: Final[dict[Kind, str]] = {
    "views": "shared parts",
    "sliding": "shared parts that slide",
    "windows": "shared joins of other windows",
}
"""Any views; views of windows that slide; joins of three streams or of windows that slide, each under other windows."""

EXAMPLES = examples(by_day=8, at_night=300)


@dataclass
class Reader:
    """A query on the view, the answer of the reference, and what has come out."""

    text: str
    spec: ConsumerSpec
    query: Node
    expected: History
    answer: Answer
    left: int | None = None

    def check(self, until: int | None) -> int:
        if until is not None and self.spec.emit == "lifetimes" and not self.answer.stream:
            return 0  # a lifetime is not told before it is over
        if self.answer.table is not None:
            check_table(self.text, self.expected, FOREVER if until is None else until, self.answer.table)
            return len(self.expected.instants)
        reported = difference(self.expected, self.answer.history(), until=until)
        assert reported is None, f"{self.text}\n(first: reference, second: the group)\n{reported}"
        return len(self.expected.instants)


@dataclass
class Trial:
    catalogue: Catalogue
    rows: dict[str, Rows]
    readers: list[Reader]

    def group(self) -> GroupPipeline:
        return GroupPipeline([reader.spec for reader in self.readers], self.catalogue)

    def layout(self, partitions: int) -> Layout:
        consumers = [Consumer(reader.spec, self.catalogue) for reader in self.readers]
        subplan = shared_subplan([reader.spec.request for reader in self.readers], self.catalogue)
        return Layout(subplan, self.catalogue, "changes", partitions, consumers=tuple(consumers))

    def pushes(self, random: Random) -> list[Push]:
        """The tables that never change before all else."""
        tables = [Push(name, some) for name, some in self.rows.items() if self._static(name)]
        moving = {name: some for name, some in self.rows.items() if not self._static(name)}
        return [*tables, *cut(random, moving), *(Push(name, [], end=True) for name in moving)]

    def _static(self, name: str) -> bool:
        definition = self.catalogue.relations[name]
        return isinstance(definition, TableDefinition) and definition.time is None


def trial_of(random: Random, kind: Kind = "views") -> Trial:
    while True:
        trial = _trial(random, kind)
        if trial is not None:
            return trial


def _trial(random: Random, kind: Kind) -> Trial | None:
    """None where the queries share nothing, or where the planner has no way to run one of them."""
    bounds = {"s": random.randint(0, 4), "t": random.randint(0, 4), "u": 0}
    catalogue = Catalogue(functions=FUNCTIONS)
    generator = Sliding(random) if kind == "sliding" else Generator(random)
    before = ""
    if kind == "windows":
        texts = joins_that_differ(generator)
    else:
        view = query_of(generator, random.choice(SLIDING_VIEWS if kind == "sliding" else VIEWS))
        readers = Readers(random, view.columns, snapshots=60 if kind == "sliding" else 10)
        texts = [readers.statement() for _ in range(random.randint(2, 4))]
        before = f"CREATE VIEW v AS {view.text};"
    tick = random.choice(["1 SECOND", "1 SECOND", "1 MICROSECOND"])
    tactic = random.choice(["auto", "auto", "nested_loop"])
    declared = f"{DECLARATIONS.format(bound_s=bounds['s'], bound_t=bounds['t'])} SET tick = '{tick}';"
    script = f"{declared} SET join = '{tactic}'; {before} {';'.join(texts)}"
    try:
        statements = [
            statement for statement in parse_statements(script, catalogue) if isinstance(statement, QueryStatement)
        ]
        planned = [Planned(statement, catalogue, plan(statement.query, catalogue)) for statement in statements]
    except UnsupportedError:
        return None
    sharing = sharing_of(planned)
    indexes = max(sharing.groups, key=len, default=())
    requests = [sharing.requests[index] for index in indexes]
    if not requests or not isinstance(requests[0], SharablePlan):
        return None
    reads = {
        name for name in ("s", "t", "u", "r", "p", "names") if catalogue.relations[name] in requests[0].surroundings
    }
    rows = {name: some for name, some in inputs(random, bounds).items() if name in reads}
    made = []
    for index, request in zip(indexes, requests, strict=True):
        statement = planned[index].statement
        assert isinstance(statement, QueryStatement)
        emit = random.choice(["changes", "changes", "lifetimes", "net"])
        spec = ConsumerSpec(f"q{index}", request, emit)
        answer = Answer(isinstance(statement.query, Stream), emit, Consumer(spec, planned[index].catalogue).root)
        expected = evaluate(statement.query, planned[index].catalogue, rows)
        text = f"{before}\n{texts[index]} ({emit})"
        made.append(Reader(text, spec, statement.query, expected, answer))
    occurrences.note(generator.noted.pairs(), max(len(reader.expected.instants) for reader in made))
    return Trial(planned[indexes[0]].catalogue, rows, made)


def push(trial: Trial, group: GroupPipeline, each: Push) -> None:
    definition = trial.catalogue.relations[each.name]
    assert isinstance(definition, StreamDefinition | TableDefinition)
    if each.rows:
        group.subplan.push(each.name, batch_of(definition.columns, each.rows))
    if each.end:
        group.subplan.end(each.name)
    group.advance(lambda index, rows: trial.readers[index].answer.add(rows))
    group.flush(lambda index, rows: trial.readers[index].answer.add(rows))


def restarted(trial: Trial, group: GroupPipeline) -> GroupPipeline:
    saved = group.snapshot()
    group.close()
    again = trial.group()
    again.restore(saved)
    return again


def check_trials(
    name: str, seen: Counter[str], run: Callable[[Trial, Random], list[Reader]], kind: Kind = "views"
) -> None:
    @over_seeds(name, EXAMPLES, seen)
    def check(seed: int) -> None:
        random = Random(f"{name} {seed}")
        trial = trial_of(random, kind)
        everybody = run(trial, random)
        seen["lively"] += max(reader.check(reader.left) for reader in everybody) >= 3
        seen["snapshots"] += sum("RSTREAM" in reader.text.rsplit("\n", 1)[-1] for reader in everybody)
        seen["tables"] += not trial.rows.keys() <= {"s", "t", "u"}

    check()
    assert seen["lively"] >= EXAMPLES // 3, seen


@pytest.mark.parametrize("kind", KINDS)
def test_each_query_on_a_view_equals_the_reference(kind: Kind) -> None:
    seen: Counter[str] = Counter()

    def run(trial: Trial, random: Random) -> list[Reader]:
        everybody = list(trial.readers)
        group = trial.group()
        for each in trial.pushes(random):
            push(trial, group, each)
            if random.random() < 0.15:
                group = restarted(trial, group)
                seen["restarts"] += 1
            frontier = group.subplan.state.gates.frontier
            if len(trial.readers) > 1 and random.random() < 0.02 and frontier is not None and frontier < FOREVER:
                gone = trial.readers.pop(random.randrange(len(trial.readers)))
                gone.left = frontier
                group.remove(gone.spec.name)
            if random.random() < 0.1 and frontier is not None:
                random.choice(trial.readers).check(frontier)
        assert group.finished
        for name in group.subplan.inputs:
            ledger, expected = group.subplan.ledger(name), everybody[0].expected
            assert (ledger.late, ledger.rejected) == (expected.late[name], expected.rejected[name])
        group.close()
        return everybody

    check_trials(KINDS[kind], seen, run, kind)
    assert seen["restarts"] and (seen["snapshots"] or kind == "views"), seen


@pytest.mark.parametrize("kind", KINDS)
def test_each_query_on_a_view_in_partitions_equals_the_reference(kind: Kind) -> None:
    def run(trial: Trial, random: Random) -> list[Reader]:
        cluster = Cluster(trial.layout(random.choice([1, 2, 3])), Random(random.random()))
        for batch in cut_into_tasks(random, trial.pushes(random)):
            reported = cluster.answers(batch)
            for reader, consumer in zip(trial.readers, cluster.layout.consumers, strict=True):
                rows = reported.get(reader.spec.name, [])
                reader.answer.add(merged(rows, consumer.emit_name, consumer.output_schema))
            if random.random() < 0.15:
                cluster.restart()
        cluster.close()
        return trial.readers

    check_trials(f"{KINDS[kind]} in partitions", Counter(), run, kind)
