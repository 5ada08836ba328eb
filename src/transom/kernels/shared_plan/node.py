"""The rows of a plan that several queries share, as one of them reads them; the planner alone makes these nodes."""

from __future__ import annotations

from dataclasses import dataclass

from transom.core.schema import Schema
from transom.core.time import UNBOUNDED, format_duration
from transom.plan.algebra import Relation


@dataclass(frozen=True)
class SharedPlan(Relation):
    """A plan that queries share, as a leaf: it does not say what it is made from, so nothing is moved below it."""

    columns: Schema

    @property
    def schema(self) -> Schema:
        return self.columns


@dataclass(frozen=True)
class MemberWindow:
    """Of one input of a join: where the time of its rows is among the columns of the part, and the window of a query.

    `length` is by time; `slide`: the window is a sample of it.
    """

    stream: str
    time: int
    length: int
    slide: int | None = None

    def __str__(self) -> str:
        length = "UNBOUNDED" if self.length == UNBOUNDED else format_duration(self.length)
        slide = "" if self.slide is None else f" SLIDE {format_duration(self.slide)}"
        return f"{self.stream} [RANGE {length}{slide}]"


@dataclass(frozen=True)
class WindowedPlan(Relation):
    """A join whose windows are the widest of those that several queries have, as one of them sees it.

    `read` are the places of its columns among those of the part.
    """

    columns: Schema
    read: tuple[int, ...]
    members: tuple[MemberWindow, ...]

    @property
    def schema(self) -> Schema:
        return self.columns

    @property
    def slides(self) -> tuple[int, ...]:
        """Where all windows slide, by how much; else nothing."""
        slides = tuple(member.slide for member in self.members if member.slide is not None)
        return slides if len(slides) == len(self.members) else ()
