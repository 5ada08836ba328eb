"""Runs of bytes copied sixteen at a time: the right bytes arrive, and never more than the slack behind them."""

from __future__ import annotations

import numpy as np
import pytest

from transom.kernels.copying import SLACK, copy_run


@pytest.mark.parametrize("count", [0, 1, 15, 16, 17, 31, 32, 33, 100])
@pytest.mark.parametrize(("start", "to"), [(0, 0), (1, 0), (3, 7), (16, 5)])
def test_a_run_is_copied_whole(count: int, start: int, to: int) -> None:
    source = np.arange(start + count + SLACK, dtype=np.int64).astype(np.uint8)
    target = np.full(to + count + SLACK, 255, dtype=np.uint8)
    guard = target.copy()
    copy_run(target, to, source, start, count)
    assert target[to : to + count].tolist() == source[start : start + count].tolist()
    assert target[:to].tolist() == guard[:to].tolist()
    untouched = to + -(-count // 16) * 16
    assert target[untouched:].tolist() == guard[untouched:].tolist()


def test_runs_written_in_ascending_order_lie_side_by_side() -> None:
    texts = [bytes([i]) * (i * 7 % 40) for i in range(1, 30)]
    source = np.frombuffer(b"".join(texts) + bytes(SLACK), dtype=np.uint8)
    target = np.zeros(len(source), dtype=np.uint8)
    at = 0
    for text in texts:
        copy_run(target, at, source, at, len(text))
        at += len(text)
    assert bytes(target[:at]) == b"".join(texts)
