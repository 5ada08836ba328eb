"""How a bucket is doing, told with every batch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from transom.kernels.slide_join.memory import SlideJoinState
from transom.pipeline.exhausted import Kept
from transom.pipeline.memory import state_bytes, state_rows
from transom.planner.explain import title

if TYPE_CHECKING:
    from transom.pipeline.bucket import Bucket


def bucket_status(bucket: Bucket) -> dict[str, Any]:
    """What the bucket has done since the query began, as JSON can hold it."""
    state = bucket.state
    inputs, leaps = {}, {}
    for name in bucket.doors.inputs:
        if name in bucket.ports and bucket.ports[name].accounts:
            ledger = state.doors.inputs[name].ledger
            inputs[bucket.source_of[name]] = [ledger.used, ledger.late, ledger.rejected]
            leap = state.doors.inputs[name].leap
            if leap is not None:
                leaps[bucket.source_of[name]] = [leap.before, leap.to, leap.late]
    operators: dict[int, list[float]] = {}
    slides: dict[int, dict[str, Any]] = {}
    for number, (came, went) in state.on_the_way.items():
        operators[int(number)] = [came, went, 0, 0.0, 0]
    for operator, counters, memory in zip(
        bucket.part.operators, state.part.counters, state.part.operators, strict=True
    ):
        operators[bucket.numbers[id(operator)]] = [
            counters.rows_in,
            counters.rows_out,
            counters.ends_out,
            counters.seconds,
            state_bytes(memory),
            state_rows(memory),
        ]
        for known in memory:
            if isinstance(known, SlideJoinState):
                slides[bucket.numbers[id(operator)]] = known.report.totals()
    return {
        "fragment": bucket.fragment.number,
        "bucket": bucket.bucket,
        "inputs": inputs,
        "leaps": leaps,
        "seen": state.doors.seen,
        "reasons": state.reasons,
        "operators": operators,
        "slides": slides,
        "watermarks": {bucket.source_of[name]: bucket.doors.watermark(name) for name in bucket.doors.inputs},
        "firsts": {bucket.source_of[name]: state.doors.inputs[name].first for name in bucket.doors.inputs},
        "progress": bucket.doors.progress,
        "upto": state.doors.upto,
        "wake": bucket.wake,
        "rows_out": state.rows_out,
    }


def kept_in(bucket: Bucket) -> list[Kept]:
    """What the operators keep in this bucket."""
    return [
        (f"#{bucket.numbers[id(one)] + 1} {title(one.kind, one.tactic.name)}", state_rows(memory), state_bytes(memory))
        for one, memory in zip(bucket.part.operators, bucket.state.part.operators, strict=True)
    ]
