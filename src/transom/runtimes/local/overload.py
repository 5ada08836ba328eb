"""What the status of a query says about the work that is scheduled for it."""

from __future__ import annotations

from dataclasses import astuple

from transom.pipeline.engine import Engine
from transom.pipeline.scheduled import ScheduledGroup
from transom.program.overload import OverloadStatus, overload_of_query


def overload_of(engine: Engine, name: str) -> OverloadStatus | None:
    """How the work of a query is put in order, and what was shed; None where it is not."""
    if not isinstance(engine, ScheduledGroup):
        return None
    work = engine.work
    account = work.state.accounts[name]
    return overload_of_query(
        policy=engine.schedule.policy,
        method=str(work.scheduler.method),
        on_overload=engine.schedule.overload,
        ledger=astuple(work.ledger_of(name)),
        shed=(account.shed.first, account.shed.last, account.shed.rows),
        longest=max(account.windows),
        loads=vars(engine.measurements.trace),
    )
