"""The closed list of what a saved query may hold: the states of the tactics and of the engine, with what is in them."""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Iterable, Iterator
from typing import Final

from transom.kernels.all_tactics import TACTICS
from transom.kernels.negative.beginnings import Beginnings
from transom.kernels.operator import Tactic
from transom.kernels.tally import Tally
from transom.kernels.to_stream.direct_stream import AliveRows
from transom.kernels.to_stream.to_stream import ToStreamState
from transom.pipeline.emit import LifetimesState
from transom.pipeline.memory import PipelineState
from transom.pipeline.net import NetState


def with_parts(classes: Iterable[type]) -> tuple[type, ...]:
    """Classes of state, and those that their fields are declared to hold."""
    all_classes: dict[type, None] = {}
    pending = list(classes)
    while pending:
        class_ = pending.pop()
        if class_ not in all_classes:
            all_classes[class_] = None
            pending += [part for hint in typing.get_type_hints(class_).values() for part in _dataclasses(hint)]
    return tuple(sorted(all_classes, key=lambda class_: class_.__name__))


def _dataclasses(hint: object) -> Iterator[type]:
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        yield hint
    for part in typing.get_args(hint):
        yield from _dataclasses(part)


OUTPUT_STATES: Final = (LifetimesState, Beginnings, NetState, AliveRows, ToStreamState, Tally)
"""What the forms of an answer remember."""


def saved_classes(tactics: Iterable[type[Tactic]]) -> tuple[type, ...]:
    """What a query may hold that is run by these tactics."""
    return with_parts((PipelineState, *OUTPUT_STATES, *(state for tactic in tactics for state in tactic.states)))


STATE_CLASSES: Final = saved_classes(TACTICS)
