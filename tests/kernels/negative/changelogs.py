"""Stepping kernels over negative tuples, each output held to what `core/delta.py` promises of a `Changelog`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pyarrow as pa

from tests.kernels.stepping import Life, Values, batch, ints, values_of
from transom.core.delta import Changelog
from transom.core.time import FOREVER
from transom.kernels.kernel import Step
from transom.pipeline.registry import STATE_CLASSES
from transom.state import codec
from transom.state.open_ids import OpenIdPool


@dataclass
class ChangelogRelation:
    """Rows with known lifetimes as negative tuples; rows of a step come in any order."""

    lives: Sequence[Life]
    types: Sequence[pa.DataType]
    random: Random = field(default_factory=lambda: Random(1))

    def delta(self, before: int, frontier: int) -> Changelog:
        departed = [
            (te, values) for values, _, te in self.lives if te is not None and before <= te < min(frontier, FOREVER)
        ]
        arrived = [(ta, values) for values, ta, _ in self.lives if before <= ta < frontier]
        for part in (departed, arrived):
            self.random.shuffle(part)
        rows = departed + arrived
        return Changelog(batch([v for _, v in rows], self.types), ints(t for t, _ in rows), len(departed), frontier)


@dataclass
class SteppedChangelog:
    """A kernel and the snapshots that it has emitted. With `restart` its state is saved and read back after every
    step."""

    kernel: Any
    restart: bool = False
    state: Any = None
    before: int = 0
    alive: Counter[Values] = field(default_factory=Counter)
    points: list[tuple[int, Counter[Values]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.state = self.kernel.start()

    def step(self, inputs: Any, frontier: int) -> Any:
        out = self.kernel.step(self.state, inputs, Step(self.before, frontier, 0, OpenIdPool()))
        if isinstance(out, Changelog):
            self.note(out)
        self.before = frontier
        if self.restart:
            self.state = codec.decode(codec.encode(self.state), STATE_CLASSES)
        return out

    def feed(self, relations: Sequence[ChangelogRelation], cuts: Iterable[int]) -> SteppedChangelog:
        for frontier in cuts:
            self.step(tuple(relation.delta(self.before, frontier) for relation in relations), frontier)
        return self

    def note(self, out: Changelog) -> None:
        """Check the invariants of a delta and remember its snapshots."""
        assert len(out.values) == len(out.t) and 0 <= out.departed <= len(out)
        out.values.validate(full=True)
        rows = list(zip(out.t.tolist(), values_of(out.values), strict=True))
        assert all(self.before <= t < out.frontier for t, _ in rows), "a row of another step"
        for instant in sorted({t for t, _ in rows}):
            left = Counter(values for t, values in rows[: out.departed] if t == instant)
            came = Counter(values for t, values in rows[out.departed :] if t == instant)
            assert left <= self.alive, "what departs is not there"
            assert not left & came, "what departs comes again at once"
            self.alive = self.alive - left + came
            self.points.append((instant, self.alive))

    def snapshot(self, instant: int) -> Counter[Values]:
        return next((bag for t, bag in reversed(self.points) if t <= instant), Counter())
