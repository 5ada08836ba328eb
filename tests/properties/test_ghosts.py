"""Paper 1, section 4.3: open rows stay in play unconditionally, which makes ghosts at most, and ghosts change nothing.

The engine takes all rows of an instant in one step, so it hardly ever makes a ghost that it does not see. Here rows
come one by one, as in the paper: a row may go on with an open end and be ended, at its own instant, by the next one.
Every result then lives for no less than nothing, and what is left without those that live for nothing is the law's
answer.
"""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

from tests.profile import examples
from tests.run_locally import Rows, batch_of
from transom.core.delta import NO_OPEN_ID, Delta, StreamDelta, no_int64s
from transom.core.time import FOREVER, SECOND, from_datetime, to_datetime
from transom.cql.statements import parse_statements
from transom.kernels.kernel import Step
from transom.kernels.operator import Operator, scanned
from transom.pipeline.part import Part
from transom.plan.algebra import StreamScan
from transom.plan.catalogue import Catalogue, QueryStatement, StreamDefinition
from transom.planner.plan import plan
from transom.runtimes.reference.evaluate import evaluate
from transom.runtimes.reference.history import RelationHistory, difference

DECLARATIONS = """
CREATE STREAM s (ts TIMESTAMP, k INTEGER, v INTEGER, WATERMARK FOR ts AS ts);
CREATE STREAM t (ts TIMESTAMP, k INTEGER, v INTEGER, WATERMARK FOR ts AS ts);
"""
PAIRS = "SELECT x.k, x.v, y.v AS w FROM s [{0}] AS x, t [{1}] AS y WHERE x.k = y.k"
QUERIES = {
    "selection and projection": "SELECT v + 1 AS v FROM s [{0}] WHERE k < 2",
    "union": "SELECT k, v FROM s [{0}] UNION ALL SELECT k, v FROM t [{1}]",
    "join": PAIRS,
    "theta join": "SELECT x.v, y.v AS w FROM s [{0}] AS x, t [{1}] AS y WHERE x.v < y.v",
    "join of a join": f"SELECT p.k, p.w, z.v FROM ({PAIRS}) AS p, s [{{2}}] AS z WHERE p.w = z.v",
    "aggregate": "SELECT COUNT(*) AS n, SUM(v) AS s, AVG(v) AS a, MIN(v) AS l, MAX(v) AS m FROM s [{0}]",
    "groups of a join": f"SELECT k, SUM(w) AS s, MAX(v) AS m FROM ({PAIRS}) AS p GROUP BY k",
    "aggregate of groups": f"SELECT MAX(n) AS m FROM (SELECT k, COUNT(*) AS n FROM ({PAIRS}) AS p GROUP BY k) AS q",
    "distinct": f"SELECT DISTINCT k FROM ({PAIRS}) AS p",
    "intersect": "SELECT k, v FROM s [{0}] INTERSECT SELECT k, v FROM t [{1}]",
    "except all": f"SELECT k, v FROM s [{{0}}] EXCEPT ALL SELECT k, w FROM ({PAIRS}) AS p",
}
WINDOWS = ("ROWS 1", "ROWS 2", "ROWS 3", "PARTITION BY k ROWS 1", "RANGE 2 SECONDS", "ROWS 2 RANGE 3 SECONDS")
EXAMPLES = examples(by_day=3, at_night=100)


class Relation:
    """The rows of a relation as they are reported, with the ends that become known later."""

    def __init__(self) -> None:
        self.rows: list[tuple[tuple[Any, ...], int, int | None]] = []
        self.open: dict[int, list[int]] = {}

    def add(self, delta: Delta) -> None:
        for open_ids, ends in delta.ends.chunks:
            for open_id, te in zip(open_ids.tolist(), ends.tolist(), strict=True):
                for i in self.open.pop(open_id, []):
                    self.rows[i] = (*self.rows[i][:2], te)
        columns = [column.to_pylist() for column in delta.values.columns]
        for i, row in enumerate(zip(*columns, strict=True)):
            open_id = int(delta.open_id[i])
            if open_id != NO_OPEN_ID:
                self.open.setdefault(open_id, []).append(len(self.rows))
            self.rows.append((row, int(delta.ta[i]), int(delta.te[i]) if open_id == NO_OPEN_ID else None))


def row_by_row(root: Operator, catalogue: Catalogue, rows: dict[str, Rows]) -> dict[int, Relation]:
    """What every operator says when each row takes a step of its own, ties included."""
    operators = list(root.walk())
    scans = [o for o in operators if isinstance(o.node, StreamScan)]
    part = Part(operators, {(id(o), 0): scanned(o) for o in scans}, catalogue, SECOND)
    state = part.start()
    relations = {id(o): Relation() for o in operators}
    arrivals = sorted((from_datetime(row[0]), i, name) for name in rows for i, row in enumerate(rows[name]))
    arrivals.append((FOREVER - 1, -1, ""))
    origin = before = arrivals[0][0]
    for at, i, name in arrivals:
        brought = {}
        for o in scans:
            definition = catalogue.relations[scanned(o)]
            assert isinstance(definition, StreamDefinition)
            of_scan = [rows[name][i]] if scanned(o) == name else []
            times = np.array([at]) if of_scan else no_int64s()
            brought[scanned(o)] = StreamDelta(batch_of(definition.columns, of_scan), times, at + 1)
        deltas, _ = part.step(state, brought, Step(before, at + 1, origin, state.open_ids), at, {})
        state.open_ids.finish_step()
        before = at + 1
        for i, operator in enumerate(part.operators):
            delta = deltas[i]
            if isinstance(delta, Delta):
                relations[id(operator)].add(delta)
    return relations


def made_rows(random: Random) -> Rows:
    """Rows of which many share an instant."""
    times = sorted(random.choices(range(8), k=random.randint(4, 14)))
    return [(to_datetime(t * SECOND), random.randint(0, 2), random.randint(0, 3)) for t in times]


@pytest.mark.parametrize("name", QUERIES)
def test_open_rows_in_play_make_ghosts_at_most_and_ghosts_change_no_snapshot(name: str) -> None:
    ghosts = 0
    for seed in range(EXAMPLES):
        random = Random(f"{name} {seed}")
        # The first window counts rows, so that there are open rows to keep in play.
        windows = [random.choice(WINDOWS[:4]), *random.choices(WINDOWS, k=2)]
        catalogue = Catalogue()
        text = f"{DECLARATIONS} SET tick = '1 SECOND'; SET joinagg = 'pc'; {QUERIES[name].format(*windows)}"
        statement = parse_statements(text, catalogue)[-1]
        assert isinstance(statement, QueryStatement)
        rows = {"s": made_rows(random), "t": made_rows(random)}
        root = plan(statement.query, catalogue)
        used = {scanned(o) for o in root.walk() if isinstance(o.node, StreamScan)}
        rows = {source: given for source, given in rows.items() if source in used}
        relations = row_by_row(root, catalogue, rows)
        for relation in relations.values():
            assert all(te is None or te >= ta for _, ta, te in relation.rows), text
            ghosts += sum(ta == te for _, ta, te in relation.rows)
        reported = relations[id(root)].rows
        lived = [row for row in reported if row[1] != row[2]]
        expected = evaluate(statement.query, catalogue, rows)
        for lifetimes in (reported, lived):
            history = RelationHistory.of_lifetimes(lifetimes, late=expected.late, rejected=expected.rejected)
            wrong = difference(expected, history)
            assert wrong is None, f"{text}\n{rows}\n(first: reference)\n{wrong}"
    assert ghosts, "nothing was kept in play that ended at once: this shows nothing"
