"""What the status of a query says about the work that is scheduled for it."""

from __future__ import annotations

import pyarrow as pa

from transom.core.schema import TIMESTAMP
from transom.core.time import FOREVER
from transom.kernels.columns import fixed_array
from transom.pipeline.engine import Engine
from transom.pipeline.scheduled import ScheduledGroup
from transom.program.overload import SHED_ROWS, OverloadStatus


def overload_of(engine: Engine, name: str) -> OverloadStatus | None:
    """None where work is not put in order."""
    if not isinstance(engine, ScheduledGroup):
        return None
    work = engine.work
    ledger, account = work.ledger_of(name), work.state.accounts[name]
    shed = account.shed
    partial = None
    if len(shed.first):
        partial = int(shed.first[0]), min(FOREVER, int(shed.last.max()) + max(account.windows))
    times = [fixed_array(TIMESTAMP, column, None) for column in (shed.first, shed.last)]
    return OverloadStatus(
        policy=engine.schedule.policy,
        method=str(work.scheduler.method),
        on_overload=engine.schedule.overload,
        due=ledger.due,
        processed=ledger.processed,
        shed=ledger.shed,
        pending=ledger.pending,
        partial=partial,
        shed_rows=pa.Table.from_arrays([*times, pa.array(shed.rows)], schema=SHED_ROWS),
        loads=pa.table({name: list(column) for name, column in vars(engine.measurements.trace).items()}),
    )
