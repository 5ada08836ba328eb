"""The rows of a plan that several queries share, as one of them reads them; the planner alone makes it."""

from __future__ import annotations

from dataclasses import dataclass

from transom.core.schema import Schema
from transom.plan.algebra import Relation


@dataclass(frozen=True)
class SharedPlan(Relation):
    """It does not say what it is made from: nothing of the query that reads it may be moved below."""

    columns: Schema

    @property
    def schema(self) -> Schema:
        return self.columns
