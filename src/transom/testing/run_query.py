"""A query, run over the whole of its input."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from pathlib import Path

from transom.core.errors import SourceError
from transom.plan.catalogue import StreamDefinition
from transom.testing.answer import Answer
from transom.testing.rows import Given
from transom.testing.trial import Trial

Push = tuple[str, list[Given]]


def run_query(
    query: str | Path,
    inputs: Mapping[str, str],
    *,
    of: str | None = None,
    day: str = "1970-01-01",
    seed: int | None = None,
    restart: bool = False,
) -> Answer:
    """The answer of a query (a text, or the path of a file) over inputs that are written as text.

    Every input that the query reads must be given. `of` names the sink where there are several queries. Times such as
    10:00 are of `day`. With a `seed`, rows arrive in batches that are cut and interleaved at random; with `restart`,
    everything is saved, forgotten and read back after every batch, and without a seed after every row. Neither may
    change the answer: a test that asks with some seeds is a test of that promise.

    >>> query = '''
    ...     CREATE STREAM s (ts TIMESTAMP, a INTEGER, WATERMARK FOR ts AS ts) WITH (connector = 'memory');
    ...     SELECT COUNT(*) AS n FROM s [ROWS 2];
    ... '''
    >>> for seed in range(3):
    ...     run_query(query, {"s": "1 5 \\n 2 6 \\n 3 7"}, seed=seed, restart=True).expect('''
    ...         1 + 1
    ...         2 - 1
    ...         2 + 2
    ...     ''')
    """
    trial = Trial(query, day=day)
    rows = {trial.definition(name).name: trial.read(name, text) for name, text in inputs.items()}
    for definition in trial.inputs():
        if definition.name not in rows:
            raise SourceError(
                f"the rows of '{definition.name}' are not given", remedy="give them by its name; '' if it has none"
            )
    timeless = [name for name in rows if trial.definition(name).time is None]
    for name in timeless:
        trial.arrive(name, rows.pop(name))
    for name, some in _pushes(trial, rows, seed, restart):
        trial.arrive(name, some)
        if restart:
            trial.restart()
    trial.end()
    return trial.answer(of)


def _pushes(trial: Trial, rows: dict[str, list[Given]], seed: int | None, by_row: bool) -> Iterator[Push]:
    arriving = [name for name in rows if _is_stamped(trial, name)]
    if arriving:
        yield from _in_order_of_arrival(rows)
    elif seed is not None:
        yield from _at_random(rows, random.Random(seed))
    elif by_row:
        yield from ((name, [row]) for name, some in rows.items() for row in some)
    else:
        yield from rows.items()


def _is_stamped(trial: Trial, name: str) -> bool:
    definition = trial.definition(name)
    return isinstance(definition, StreamDefinition) and definition.arrival_time


def _in_order_of_arrival(rows: dict[str, list[Given]]) -> Iterator[Push]:
    """The rows in the order of their instants: where the clock stamps them, that is part of the question."""
    everything = [(row.at or 0, name, row) for name, some in rows.items() for row in some]
    for _, name, row in sorted(everything, key=lambda push: push[0]):
        yield name, [row]


def _at_random(rows: dict[str, list[Given]], chance: random.Random) -> Iterator[Push]:
    """Batches of one to all rows that are left, of one input after the other."""
    left = {name: some for name, some in rows.items() if some}
    while left:
        name = chance.choice(sorted(left))
        count = max(1, int(len(left[name]) * chance.random() ** 2))
        yield name, left[name][:count]
        left[name] = left[name][count:]
        if not left[name]:
            del left[name]
