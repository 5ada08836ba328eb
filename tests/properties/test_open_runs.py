"""Queries that come to an open run with a checkpoint and leave it, while its process dies at any moment and another one
goes on: each equal to the reference of that query alone, with every row in its sink once.

Some share a join, some are by themselves, in one partition or in several.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from tests.profile import examples
from tests.properties.queries import DECLARATIONS, FUNCTIONS
from tests.properties.seeds import over_seeds
from tests.properties.sharing_queries import SharedJoins
from tests.properties.streams import inputs
from tests.run_locally import Answer, Rows, batch_of
from transom import Session
from transom.connectors.connector import OpenSink, Sink
from transom.core.time import FOREVER
from transom.plan.algebra import Node, Stream
from transom.plan.catalogue import Catalogue, QueryStatement, StreamDefinition
from transom.program.checkpoint_folder import STATE
from transom.program.planned import Planned
from transom.program.query_specs import SpecBuilder
from transom.program.run import QuerySpec, RunOptions
from transom.runtimes.local.open_run import OpenRun
from transom.runtimes.reference.evaluate import evaluate
from transom.runtimes.reference.history import difference
from transom.session import workspace_of
from transom.state import codec

EXAMPLES = examples(by_day=6, at_night=400)
ALONE = (
    "SELECT k, COUNT(*) AS n FROM s [RANGE 4 SECONDS] GROUP BY k",
    "ISTREAM(SELECT x, g FROM t WHERE x > 0)",
    "SELECT s.x, t.x AS y FROM s [RANGE 3 SECONDS], t [RANGE 5 SECONDS], s [RANGE 2 SECONDS] AS o "
    "WHERE s.k = t.k AND t.k = o.k",
)


@dataclass
class Disk:
    """What is on the disk of a sink: epochs that were prepared, and rows that everybody sees."""

    prepared: dict[int, list[pa.RecordBatch]] = field(default_factory=dict)
    last: int = -1
    seen: list[pa.RecordBatch] = field(default_factory=list)


class DiskSink(Sink):
    """Of one process; an epoch that was prepared is written anew where no checkpoint counts it."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._rows: list[pa.RecordBatch] = []

    def write(self, batch: pa.RecordBatch) -> None:
        self._rows.append(batch)

    def prepare(self, epoch: int) -> Any:
        assert epoch > self._disk.last, "these rows would never be seen"
        self._disk.prepared[epoch], self._rows = self._rows, []
        return epoch

    def commit(self, epoch: int, token: Any) -> None:
        if epoch > self._disk.last:
            assert token == epoch
            self._disk.seen += self._disk.prepared.pop(epoch)
            self._disk.last = epoch


@dataclass
class Here:
    """A query that is there, since when, and up to where the last checkpoint has it."""

    name: str
    text: str
    planned: Planned
    emit: str
    begin: int | None = None
    kept: int | None = None


class Trial:
    def __init__(self, random: Random, folder: Path) -> None:
        self.random = random
        self.generator = SharedJoins(random, 0)
        bounds = {name: random.randint(0, 3) for name in ("s", "t")} | {"u": 0}
        self.session = Session(batch_rows=random.choice([2, 5, 9]), partitions=random.choice([1, 1, 2]), sharing="on")
        streams = DECLARATIONS.format(bound_s=bounds["s"], bound_t=bounds["t"]).split(";")[:3]
        self.session.execute("".join(f"{one} WITH (connector = 'memory');" for one in streams))
        catalogue = workspace_of(self.session).catalogue
        catalogue.functions.update(FUNCTIONS)
        self.rows: dict[str, Rows] = inputs(random, bounds)
        for name in ("s", "t", "u"):
            definition = catalogue.relations[name]
            assert isinstance(definition, StreamDefinition)
            self.session.append(name, pa.Table.from_batches([batch_of(definition.columns, self.rows[name])]))
        self.options = RunOptions("end", str(folder), every=random.choice([1, 3, 8]))
        self.disks: dict[str, Disk] = {}
        self.here: dict[str, Here] = {}
        self.gone: list[tuple[Here, list[pa.RecordBatch], int | None]] = []
        self.texts = [self.generator.statement() for _ in range(4)] + random.sample(ALONE, 2)
        self.seen: Counter[str] = Counter()

    def opened(self) -> OpenRun:
        run = workspace_of(self.session).runtime.open(self.options)
        assert isinstance(run, OpenRun)
        return run

    def spec(self, one: Here) -> QuerySpec:
        disk = self.disks.setdefault(one.name, Disk())
        builder = SpecBuilder(workspace_of(self.session).screen, one.emit, checkpoint=self.options.checkpoint)
        (spec,) = builder.specs([one.planned], [one.name])
        return QuerySpec(spec.planned, spec.name, spec.emit, OpenSink(lambda opening: DiskSink(disk)))

    def fresh(self) -> Here | None:
        names = [f"q{number}" for number in range(len(self.texts)) if f"q{number}" not in self.here]
        if not names:
            return None
        name = self.random.choice(names)
        text = self.texts[int(name[1:])]
        (planned,) = workspace_of(self.session).prepare(text)
        return Here(name, text, planned, "lifetimes" if name == "q0" else "changes")

    def come(self, run: OpenRun, one: Here) -> None:
        query = run.add(self.spec(one))
        self.here[one.name] = one
        one.begin = query.job.engine.subplan.state.gates.frontier
        self.seen["came to others"] += one.begin is not None

    def go(self, run: OpenRun, one: Here) -> None:
        until = self.frontier(run, one)
        run.remove(one.name)
        self.leave(one, until)

    def leave(self, one: Here, until: int | None) -> None:
        del self.here[one.name]
        disk = self.disks[one.name]
        self.gone.append((one, disk.seen, until))
        disk.seen = []

    def frontier(self, run: OpenRun, one: Here) -> int | None:
        (query,) = (query for query in run.queries if query.name == one.name)
        return query.job.engine.subplan.state.gates.frontier

    def note(self, run: OpenRun) -> None:
        if not run._uncommitted:
            for one in self.here.values():
                one.kept = self.frontier(run, one)

    def killed(self, run: OpenRun) -> OpenRun:
        """In any part of a checkpoint, or between two; then another process, perhaps with other queries."""
        moment = self.random.choice(["steps", "sinks", "file"])
        self.seen[moment] += 1
        if moment != "steps":
            saved = run._prepared()
            if moment == "file":
                assert run._checkpoint is not None
                run._checkpoint.write(STATE, codec.encode(saved))
                for one in self.here.values():
                    one.kept = self.frontier(run, one)
        run.abort()
        newcomer = self.fresh() if self.random.random() < 0.3 else None
        if len(self.here) > 1 and moment != "file" and self.random.random() < 0.3:
            one = self.random.choice(list(self.here.values()))
            self.leave(one, one.kept)
            self.seen["forgotten"] += 1
        again = self.opened()
        coming = list(self.here.values())
        coming += [] if newcomer is None else [newcomer]
        self.random.shuffle(coming)
        queries = {one.name: again.add(self.spec(one)) for one in coming}
        again.begin()
        if newcomer is not None:
            self.here[newcomer.name] = newcomer
            newcomer.begin = queries[newcomer.name].job.engine.subplan.state.gates.frontier
            self.seen["came with a restart"] += 1
        return again

    def run(self) -> None:
        run = self.opened()
        for _ in range(self.random.randint(1, 3)):
            one = self.fresh()
            assert one is not None
            self.come(run, one)
        run.begin()
        while True:
            self.note(run)
            what = self.random.random()
            newcomer = self.fresh() if what < 0.08 else None
            if newcomer is not None:
                self.seen["came back"] += any(one.name == newcomer.name for one, *_ in self.gone)
                self.come(run, newcomer)
            elif 0.08 <= what < 0.12 and len(self.here) > 1:
                self.go(run, self.random.choice(list(self.here.values())))
                self.seen["went"] += 1
            elif 0.12 <= what < 0.22:
                run = self.killed(run)
            elif not run.step():
                break
        run.close()

    def check(self) -> int:
        found = [self.compared(one, self.disks[one.name].seen, FOREVER) for one in self.here.values()]
        found += [self.compared(one, seen, until) for one, seen, until in self.gone if until is not None]
        return max(found, default=0)

    def compared(self, one: Here, seen: list[pa.RecordBatch], until: int) -> int:
        if one.emit == "lifetimes" and until != FOREVER:
            return 0  # a lifetime is not told before it is over
        statement = one.planned.statement
        assert isinstance(statement, QueryStatement)
        query: Node = statement.query
        answer = Answer(isinstance(query, Stream), one.emit, one.planned.root)
        for batch in seen:
            answer.add(batch)
        options = dict(one.planned.catalogue.options)
        if one.begin is not None:
            options["origin"] = one.begin
        expected = evaluate(query, Catalogue(one.planned.catalogue.relations, {}, options), self.rows)
        different = difference(expected, answer.history(), until=None if until == FOREVER else until)
        assert different is None, f"{one.text} since {one.begin} until {until}\n{different}"
        return len(expected.instants)


def test_each_query_of_an_open_run_equals_the_reference(tmp_path_factory: pytest.TempPathFactory) -> None:
    seen: Counter[str] = Counter()

    @over_seeds("open runs", EXAMPLES, seen)
    def check(seed: int) -> None:
        trial = Trial(Random(f"open runs {seed}"), tmp_path_factory.mktemp("open"))
        trial.run()
        seen["lively"] += trial.check() >= 3
        seen.update(trial.seen)

    check()
    wanted = ("came to others", "came with a restart", "came back", "forgotten", "went", "steps", "sinks", "file")
    assert seen["lively"] >= EXAMPLES // 3 and all(seen[what] for what in wanted), seen
