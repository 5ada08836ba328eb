"""Sorting by digits gives what comparing gives."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from transom.core.time import FOREVER
from transom.kernels.time_order import FEW, time_order


@pytest.mark.parametrize("count", [0, 1, FEW - 1, FEW, 5 * FEW])
@pytest.mark.parametrize("span", [1, 2, 4096, 4097, 10**7, 2**40, FOREVER])
def test_instants_are_in_order_and_equal_ones_as_they_came(count: int, span: int) -> None:
    random = Random(span)
    t = np.array([random.randrange(span) - span // 2 for _ in range(count)], dtype=np.int64)
    assert time_order(t).tolist() == np.argsort(t, kind="stable").tolist()
