"""The first rows of a source, as a source that has no more: what a preview of a query reads."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

import pyarrow as pa

from transom.connectors.connector import Limits, Plan, Source, Split, SplitRows
from transom.connectors.source import START, Growing, Position


class FirstRows(Source):
    """At most so many rows of a source, which may give fewer at once."""

    def __init__(self, source: Source, most: int) -> None:
        self._source = source
        self._most = most

    @property
    def schema(self) -> pa.Schema:
        return self._source.schema

    def plan(self, position: Position, limits: Limits, *, growing: Growing = False) -> Plan:
        if position.get("read"):
            return Plan(position, (), ended=True)
        plan = self._source.plan(START, Limits(self._most))
        return replace(plan, position={"read": True}, ended=True)

    def read_split(self, split: Split) -> Iterator[SplitRows]:
        left = self._most
        for part in self._source.read_split(split):
            if left <= 0:
                return
            yield replace(part, rows=part.rows.slice(0, left)) if len(part.rows) > left else part
            left -= len(part.rows)

    def narrow(self, columns: Collection[str]) -> None:
        self._source.narrow(columns)
