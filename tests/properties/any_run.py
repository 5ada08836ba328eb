"""An example on the engine: any cut into batches and any restarts, here in one or several partitions, or in
partitions."""

from __future__ import annotations

from random import Random

from tests.properties.examples import Example
from tests.properties.streams import cut, cut_into_tasks
from tests.run_in_partitions import run_in_partitions
from tests.run_locally import Answer, run_locally
from transom.pipeline.driver import Pipeline
from transom.runtimes.reference.history import History


def locally(example: Example, random: Random) -> History:
    pushes = cut(random, example.rows)
    restarts = {random.randint(0, len(pushes)) for _ in range(random.randint(0, 4))}
    partitions, threads = random.choice([(1, False), (3, False), (3, True)])

    def punctual(pipeline: Pipeline, answer: Answer) -> None:
        example.check_so_far(pipeline.state.gates.frontier, answer.history)

    return run_locally(
        example.query, example.catalogue, example.rows, pushes, emit=example.emit,
        partitions=partitions, threads=threads, restart=restarts.__contains__, watch=punctual,
    )  # fmt: skip


def in_partitions(example: Example, random: Random) -> History:
    batches = cut_into_tasks(random, cut(random, example.rows))
    restarts = {random.randint(0, len(batches)) for _ in range(random.randint(0, 4))}
    partitions, threads = random.choice([(1, 1), (1, 3), (2, 1), (5, 1)])
    return run_in_partitions(
        example.query, example.catalogue, example.rows, batches, partitions=partitions, threads=threads,
        emit=example.emit,
        restart=restarts.__contains__, disorder=Random(random.random()),
    )  # fmt: skip
