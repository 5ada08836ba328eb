"""Runs one consumer of a shared join: the query's own operators, its own beginning and its own output.

A consumer has its own open row ids as well, so that nothing is left of it when it goes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

import pyarrow as pa

from transom.core.delta import Delta
from transom.kernels.kernel import Step
from transom.kernels.operator import Operator
from transom.kernels.shared_join.node import SharedJoin
from transom.pipeline.consumer import PAIRS, Consumer
from transom.pipeline.exchange import FeedState, owned_here
from transom.pipeline.output import OutputWriter
from transom.pipeline.part import Part, PartState
from transom.pipeline.stage import Advanced, Stage
from transom.pipeline.timers import Brought
from transom.plan.options import time_settings

_NO_SLIDES: Final[Mapping[str, int]] = {}


@dataclass
class ConsumerState:
    """What a consumer remembers. `begin` is that of the consumer.

    `before` counts the rows of each input that were used, late and rejected before the consumer came. `feed` knows
    rows that it reads as they are, and that are still open.
    """

    begin: int | None
    part: PartState
    emit: Any
    rows_out: int = 0
    before: dict[str, list[int]] = field(default_factory=dict)
    feed: FeedState = field(default_factory=FeedState)


class ConsumerRunner:
    """A consumer in one partition: the operators that run `beside` the join there, which may be all that it has."""

    def __init__(self, consumer: Consumer, partitions: int = 1) -> None:
        self.consumer = consumer
        self.spec = consumer.spec
        self.operators = consumer.beside(partitions)
        self.numbers = {id(operator): i for i, operator in enumerate(consumer.operators)}
        tick = time_settings(consumer.catalogue).tick
        narrow = self.operators[0]
        channels = {(id(narrow), index): consumer.input_of(child) or "" for index, child in enumerate(narrow.inputs)}
        self.part = Part(self.operators, channels, consumer.catalogue, tick, whole=True)
        self.inputs = tuple(channels.values())
        answers = not consumer.above(partitions)
        output = OutputWriter.of(consumer.root, self.spec.emit) if answers else None
        self.stage = Stage(self.part, output, consumer.root if answers else None)
        self.state = self.start()
        self.read: tuple[int, ...] = ()
        self._indexes: tuple[int, ...] | None = None

    def start(self) -> ConsumerState:
        """What the query remembers before its first step."""
        output = self.stage.output
        return ConsumerState(self.consumer.begin, self.part.start(), None if output is None else output.start())

    def check(self, state: ConsumerState) -> None:
        """As `Part.check`, of all that the query remembers."""
        state.feed.check()
        self.part.check(state.part, [state.feed])

    def read_from(self, subplan: Operator) -> None:
        """The join has the columns of this operator from now on."""
        node = subplan.node
        indexes = node.indexes if isinstance(node, SharedJoin) else ()
        if indexes != self._indexes:  # of many queries most find it as it was
            self.read, self._indexes = self.consumer.columns_in(subplan)[PAIRS], indexes

    def advance(
        self, pairs: Delta, given: Mapping[str, Delta], step: Step, last_used: int, slides: Mapping[str, int]
    ) -> Advanced:
        """With pairs in the columns of `read`, and the other outputs by name. Of the step only the times are taken.

        `slides` are those of the shared sub-plan, by the numbers that its operators have there.
        """
        state = self.state
        origin = step.origin if state.begin is None else state.begin
        own = Step(step.before, step.frontier, origin, state.part.open_ids, last_row=step.last_row)
        if self.consumer.reads_as_it_is:
            pairs = owned_here(state.feed, pairs, own)
        brought: dict[str, Brought] = {name: pairs if name == PAIRS else given[name] for name in self.inputs}
        return self.stage.advance(state, brought, own, last_used, self.consumer.slides_below(slides))

    def step(
        self,
        pairs: Delta,
        given: Mapping[str, Delta],
        step: Step,
        last_used: int,
        slides: Mapping[str, int] = _NO_SLIDES,
    ) -> pa.RecordBatch:
        """The rows of its answer, where all of it is here."""
        rows = self.advance(pairs, given, step, last_used, slides).rows
        assert rows is not None
        return rows

    @property
    def next_timer(self) -> int:
        """As `Stage.next_timer`."""
        return self.stage.next_timer(self.state)

    def slides(self) -> dict[str, int]:
        """As `PartSlides.last_of_windows`, by the numbers that operators have in their query."""
        return {str(self.numbers[key]): last for key, last in self.part.slides.last_of_windows(self.state.part).items()}


def picked(rows: Delta, columns: tuple[int, ...]) -> Delta:
    halves = None if rows.halves is None else rows.halves.of_columns(columns)
    return replace(rows, values=rows.values.select(columns), halves=halves)
