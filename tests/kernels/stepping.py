"""Stepping a kernel alone: deltas in, deltas out, each held to what `core/delta.py` promises.

`Relation` makes the deltas of an input whose lifetimes are known; `Stepped` runs a kernel and remembers what it said.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from transom.core.delta import NO_OPEN_ID, Delta, StreamDelta
from transom.core.time import FOREVER
from transom.kernels.kernel import Step
from transom.kernels.worker_pool import WorkerPool
from transom.pipeline.registry import STATE_CLASSES
from transom.runtimes.reference.history import canonical, grouped
from transom.state import codec
from transom.state.open_ids import OpenIdPool

Values = tuple[Any, ...]
Life = tuple[Values, int, int | None]  # an open end is None


def ints(values: Iterable[int]) -> Any:
    return np.array(list(values), dtype=np.int64)


def batch(rows: Sequence[Values], types: Sequence[pa.DataType]) -> pa.RecordBatch:
    """Rows as Arrow columns that do not begin at the beginning of their buffers."""
    padded = [tuple(None for _ in types), *rows]
    arrays = [pa.array([row[i] for row in padded], type_) for i, type_ in enumerate(types)]
    return pa.RecordBatch.from_arrays(arrays, names=[f"c{i}" for i in range(len(types))]).slice(1)


def values_of(given: pa.RecordBatch) -> list[Values]:
    return [canonical(row) for row in zip(*(column.to_pylist() for column in given.columns), strict=True)]


def stream_deltas(rows: Sequence[tuple[int, Values]], types: Sequence[pa.DataType], cuts: Iterable[int]) -> list[Any]:
    """Rows of a stream, ascending in time, as one delta per cut."""
    deltas = []
    for before, frontier in pairwise([-FOREVER, *cuts]):
        mine = [row for row in rows if before <= row[0] < frontier]
        deltas.append(StreamDelta(batch([v for _, v in mine], types), ints(t for t, _ in mine), frontier))
    return deltas


@dataclass
class Relation:
    """Rows with known lifetimes, given out step by step. Rows in `open` have an open row id until time passes their
    end; a row without an end has one for good."""

    lives: Sequence[Life]
    types: Sequence[pa.DataType]
    open: frozenset[int] = frozenset()
    waiting: dict[int, int] = field(default_factory=dict)

    def delta(self, open_ids: OpenIdPool, before: int, frontier: int) -> Delta:
        known = [FOREVER if te is None else te for _, _, te in self.lives]
        ending = [i for i in self.waiting if known[i] < frontier]
        ends = open_ids.close(ints(self.waiting.pop(i) for i in ending), ints(known[i] for i in ending))
        mine = [i for i, life in enumerate(self.lives) if before <= life[1] < frontier]
        te, open_id = [], []
        for i in mine:
            is_open = self.lives[i][2] is None or (i in self.open and frontier <= known[i] < FOREVER)
            if is_open:
                self.waiting[i] = int(open_ids.take(1)[0])
            te.append(FOREVER if is_open else known[i])
            open_id.append(self.waiting[i] if is_open else NO_OPEN_ID)
        values = batch([self.lives[i][0] for i in mine], self.types)
        return Delta(values, ints(self.lives[i][1] for i in mine), ints(te), ints(open_id), frontier, ends)


@dataclass
class Stepped:
    """A kernel and what it has said. With `restart` its whole state is saved and read back after every step."""

    kernel: Any
    origin: int = 0
    restart: bool = False
    state: Any = None
    open_ids: OpenIdPool = field(default_factory=OpenIdPool)
    before: int = 0
    lives: list[Life] = field(default_factory=list)
    open: dict[int, tuple[Values, int]] = field(default_factory=dict)  # by open row id
    worker_pool: WorkerPool | None = None

    def __post_init__(self) -> None:
        self.state = self.kernel.start()
        self.before = self.origin

    def step(self, inputs: Any, frontier: int) -> Any:
        """One step; the open row ids closed in it may be used again afterwards."""
        out = self.kernel.step(
            self.state, inputs, Step(self.before, frontier, self.origin, self.open_ids, worker_pool=self.worker_pool)
        )
        if isinstance(out, Delta):
            self.note(out)
        self.before = frontier
        self.open_ids.finish_step()
        if self.restart:
            if self.worker_pool is not None:
                self.worker_pool.drain()
            saved = codec.encode((self.state, self.open_ids))
            self.state, self.open_ids = codec.decode(saved, STATE_CLASSES)
        return out

    def feed(self, relations: Sequence[Relation], cuts: Iterable[int]) -> Stepped:
        """A step per cut over relations that use the same open row ids."""
        for frontier in cuts:
            self.step(tuple(relation.delta(self.open_ids, self.before, frontier) for relation in relations), frontier)
        return self

    def note(self, out: Delta) -> None:
        """Check the invariants of a delta and remember its rows and ends."""
        assert len(out.values) == len(out.ta) == len(out.te) == len(out.open_id)
        out.values.validate(full=True)
        for open_id, te in zip(*(part.tolist() for part in out.ends.arrays()), strict=True):
            assert te < out.frontier, "an end that has not come"
            values, ta = self.open.pop(open_id)  # a KeyError here: an end of nothing, or emitted twice
            assert ta <= te
            if ta < te:
                self.lives.append((values, ta, te))
        for values, ta, te, open_id in zip(
            values_of(out.values), out.ta.tolist(), out.te.tolist(), out.open_id.tolist(), strict=True
        ):
            assert self.before <= ta < out.frontier, "a row of another step"
            assert ta < te, "a ghost"
            if open_id == NO_OPEN_ID:
                self.lives.append((values, ta, te))
            else:
                assert te == FOREVER and open_id not in self.open
                self.open[open_id] = values, ta

    def all_lives(self) -> list[Life]:
        """Every row so far in some fixed order; forever is an end, open is None."""
        return sorted(self._so_far(), key=repr)

    def snapshot(self, instant: int) -> Counter[Values]:
        return snapshot(self._so_far(), instant)

    def _so_far(self) -> list[Life]:
        return [*self.lives, *((values, ta, None) for values, ta in self.open.values())]


def snapshot(lives: Iterable[Life], instant: int) -> Counter[Values]:
    alive = [values for values, ta, te in lives if ta <= instant and (te is None or instant < te)]
    return Counter(canonical(values) for values in alive)


def bag(lives: Iterable[Life], instant: int) -> Counter[Values]:
    """The snapshot to those who take equal rows for one: of both zeros there is 0.0 alone."""
    return Counter(map(grouped, snapshot(lives, instant).elements()))
