"""Any query laid out over partitions, whatever reads its inputs: equal to the reference at every instant, and punctual.

Rows come in batches of several inputs, cut into stretches that tasks read side by side; what a partition gets comes to
it in any order, now and then in blobs of a row or two; some steps are taken twice, and partitions lose their cached
state.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random

import pytest

from tests.profile import examples
from tests.properties.examples import Example, example_of
from tests.properties.queries import FAMILIES
from tests.properties.seeds import over_seeds
from tests.properties.streams import cut, cut_into_tasks
from tests.run_in_partitions import Batch, Cluster, run_in_partitions
from tests.run_locally import Answer, Rows, batch_of
from transom.core.time import from_datetime
from transom.pipeline import fragment_partition, packer, partitions, state_backend
from transom.pipeline.admission import InputGate
from transom.pipeline.input_gates import InputGates
from transom.plan.catalogue import StreamDefinition, TableDefinition
from transom.plan.options import time_settings
from transom.runtimes.reference.evaluate import evaluate
from transom.runtimes.reference.history import History, value_order
from transom.state import codec

EXAMPLES = examples(by_day=3, at_night=190)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_query_in_partitions_equals_the_reference(family: str, monkeypatch: pytest.MonkeyPatch) -> None:
    @over_seeds(f"{family} in partitions", EXAMPLES)
    def check(seed: int) -> None:
        random = Random(f"{family} in partitions {seed}")
        monkeypatch.setattr(packer, "MOST_BYTES", random.choice([1, 200, 1 << 24]))
        monkeypatch.setattr(fragment_partition, "SLICE_ROWS", random.choice([1, 3, 1 << 15]))
        monkeypatch.setattr(partitions, "MANY_ROWS", random.choice([0, 1 << 15]))  # by threads, or in turn
        # What is kept of a step is the frames, the memory, or now this and now that.
        monkeypatch.setattr(state_backend, "LEAST_BYTES", 1_000)
        most = random.choice([0, 5_000, 1 << 40])
        monkeypatch.setattr(codec, "saved_bytes", lambda *_, **__: most)
        check_example(random, family)

    check()


def check_example(random: Random, family: str) -> None:
    example = example_of(random, family, repeats=20)
    batches = cut_into_tasks(random, cut(random, example.rows))
    unordered = frozenset(name for name in ("s", "t", "u") if name in example.rows and random.random() < 0.15)
    example = without_order(example, batches, unordered)
    restarts = {random.randint(0, len(batches)) for _ in range(random.randint(0, 4))}
    partitions, threads = random.choice([(1, 1), (1, 3), (2, 1), (5, 1)])
    order = random.random()

    def run() -> History:
        reader = OneReader(example, unordered)

        def punctual(batch: Batch, cluster: Cluster, answer: Answer) -> None:
            frontier = reader.read(batch)
            assert cluster.frontier == frontier, (
                f"{example.text}\nthe partitions are elsewhere in time than one reader is"
            )
            example.check_so_far(frontier, answer.history)

        return run_in_partitions(
            example.query,
            example.catalogue,
            example.rows,
            batches,
            partitions=partitions,
            threads=threads,
            emit=example.emit,
            restart=restarts.__contains__,
            unordered=unordered,
            disorder=Random(order),
            watch=punctual,
        )

    example.check(run)


def without_order(example: Example, batches: Sequence[Batch], names: frozenset[str]) -> Example:
    """The answer if rows of these streams come in no order: late by what earlier batches brought, counted by value."""
    late: dict[str, int] = {}
    kept: dict[str, Rows] = {}
    for name in names:
        definition = example.catalogue.relations[name]
        assert isinstance(definition, StreamDefinition) and definition.time is not None
        mark, taken = None, []
        for batch in batches:
            rows = [row for task in batch for push in task if push.name == name for row in push.rows]
            taken += [row for row in rows if mark is None or from_datetime(row[0]) >= mark]
            marks = [from_datetime(row[0]) - definition.time.bound for row in rows]
            mark = max(marks if mark is None else [mark, *marks], default=None)
        late[name] = len(example.rows[name]) - len(taken)
        kept[name] = sorted(taken, key=value_order)
    if not names:
        return example
    expected = evaluate(example.query, example.catalogue, {**example.rows, **kept})
    return replace(example, expected=replace(expected, late={**expected.late, **late}))


class OneReader:
    """Reads the same batches, all rows of an input one after the other, and so knows how far time has come."""

    def __init__(self, example: Example, unordered: frozenset[str]) -> None:
        tick, origin = time_settings(example.catalogue)
        inputs = {}
        for name in example.rows:
            definition = example.catalogue.relations[name]
            assert isinstance(definition, StreamDefinition | TableDefinition)
            if definition.time is not None:
                inputs[name] = InputGate(definition, tick, origin)
        self._gates = InputGates(inputs, tick, origin)
        self._unordered = unordered

    def read(self, batch: Batch) -> int | None:
        """All output before this instant is due after the batch."""
        for name, entry in self._gates.inputs.items():
            state = self._gates.state.inputs[name]
            pushes = [push for task in batch for push in task if push.name == name]
            rows = [row for push in pushes for row in push.rows]
            if rows:
                polled_at = entry.classify(
                    batch_of(entry.definition.columns, rows), ordered=name not in self._unordered
                )
                entry.admit(state, polled_at)
            state.ended = state.ended or any(push.end for push in pushes)
        step = self._gates.next_step()
        if step is not None:
            self._gates.state.frontier = step[1]
        return self._gates.state.frontier
