"""The local runtime: queries run in this process, a step of each in turn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from transom.core.errors import OptionError, SourceError
from transom.planner.explain import Measured
from transom.program.inputs import Inputs
from transom.program.planned import Planned
from transom.program.run import Order, Terms
from transom.runtimes.local.analyze import measure
from transom.runtimes.local.query import LocalQuery
from transom.runtimes.local.run import LocalRun


class LocalRuntime:
    def __init__(self, inputs: Inputs) -> None:
        self._inputs = inputs

    @property
    def missing_settings(self) -> Sequence[object]:
        return ()

    def begin(self, brief: bool = False) -> None:
        """There is nothing to start."""

    def assemble(self, orders: Sequence[Order], terms: Terms) -> LocalRun:
        if terms.on_batch is not None:
            raise OptionError(
                "batches have no numbers of their own in this process",
                remedy="write on_rows, or run the query on Spark",
            )
        queries = [
            LocalQuery(
                order.planned,
                self._inputs.open,
                order.open_sink,
                open_side=order.open_side,
                emit=order.emit,
                follow=terms.follow,
                clock=terms.clock,
                name=order.name,
            )
            for order in orders
        ]
        run = LocalRun(queries, checkpoint=terms.checkpoint, every=terms.every, clock=terms.clock)
        run.resume()
        return run

    def measure(self, planned: Planned, emit: str) -> list[Measured]:
        return measure(planned, self._inputs.open, emit)

    def adopt(self, name: str, frame: Any) -> NoReturn:
        raise SourceError(
            f"'{name}' is a DataFrame of Spark, and the queries of this session run in this process",
            remedy="use transom.Session(spark=..) with its SparkSession"
            + ("" if frame.isStreaming else ", or hand over its rows: df.toArrow()"),
        )

    def close(self) -> None: ...
