"""The table that net changes lead to is the snapshot of the reference after every batch, for any cut into batches, any
restart and any number of partitions; no change is told that is none, and with a key none twice.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from tests.net_table import check_table
from tests.profile import examples
from tests.properties import occurrences
from tests.properties.examples import Example, example_of
from tests.properties.queries import FAMILIES
from tests.properties.seeds import over_seeds
from tests.properties.streams import cut, cut_into_tasks
from tests.run_in_partitions import Batch, Cluster, run_in_partitions
from tests.run_locally import Answer, run_locally
from transom.pipeline import fragment_partition, net
from transom.pipeline.driver import Pipeline
from transom.runtimes.reference.history import History, RelationHistory

EXAMPLES = examples(by_day=1, at_night=120)


@pytest.mark.parametrize("runs", ["locally", "in_partitions"])
@pytest.mark.parametrize("family", FAMILIES)
def test_net_changes_lead_to_the_snapshots(family: str, runs: str, monkeypatch: pytest.MonkeyPatch) -> None:
    @over_seeds(f"{family} {runs} net", EXAMPLES)
    def check(seed: int) -> None:
        random = Random(f"{family} {runs} net {seed}")
        monkeypatch.setattr(fragment_partition, "SLICE_ROWS", random.choice([1, 3, 1 << 15]))
        monkeypatch.setattr(net, "MOST_NOTED", random.choice([0, 3, 1 << 17]))
        example = replace(example_of(random, family, repeats=20 * (runs == "in_partitions")), emit="net")
        if not isinstance(example.expected, RelationHistory):
            occurrences.see(occurrences.DULL)
            return
        order = random.random()
        for method in ("direct", "negative"):
            example.catalogue.options["lifetimes"] = method
            example.catalogue.options["join"] = "auto"
            {"locally": _locally, "in_partitions": _in_partitions}[runs](example, Random(order))

    check()


def _locally(example: Example, random: Random) -> None:
    pushes = cut(random, example.rows)
    restarts = {random.randint(0, len(pushes)) for _ in range(random.randint(0, 4))}
    often = random.random()
    commits = [random.random() < often for _ in range(len(pushes) + len(example.catalogue.relations))]
    partitions, threads = random.choice([(1, False), (3, False), (3, True)])

    def look(pipeline: Pipeline, answer: Answer) -> None:
        assert answer.table is not None and not pipeline.holds_rows
        check_table(example.text, example.expected, pipeline.state.gates.frontier, answer.table)

    _check_counts(example, run_locally(
        example.query, example.catalogue, example.rows, pushes, emit="net", partitions=partitions, threads=threads,
        restart=restarts.__contains__, commit=lambda i: commits[i], watch=look,
    ))  # fmt: skip


def _in_partitions(example: Example, random: Random) -> None:
    batches = cut_into_tasks(random, cut(random, example.rows))
    restarts = {random.randint(0, len(batches)) for _ in range(random.randint(0, 4))}

    def look(batch: Batch, cluster: Cluster, answer: Answer) -> None:
        assert answer.table is not None
        check_table(example.text, example.expected, cluster.frontier, answer.table)

    partitions, threads = random.choice([(1, 1), (1, 3), (2, 1), (5, 1)])
    _check_counts(example, run_in_partitions(
        example.query, example.catalogue, example.rows, batches, partitions=partitions, threads=threads, emit="net",
        restart=restarts.__contains__, disorder=Random(random.random()), watch=look,
    ))  # fmt: skip


def _check_counts(example: Example, answer: History) -> None:
    assert answer.late == example.expected.late and answer.rejected == example.expected.rejected, example.text
