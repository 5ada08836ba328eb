"""SET schedule and SET overload where no work can wait."""

from __future__ import annotations

import pytest

from transom.core.errors import OptionError
from transom.plan.catalogue import Catalogue
from transom.planner.statistics import Machine
from transom.program.planned import Planned, read_program
from transom.program.putting_off import check_put_off, not_put_off
from transom.program.statistics import in_partitions

DECLARED = "CREATE STREAM s (t TIMESTAMP, k INTEGER, WATERMARK FOR t AS t) WITH (connector = 'memory');"


def planned(settings: str) -> Planned:
    return read_program(f"{DECLARED} {settings} SELECT k FROM s", Catalogue())[-1]


@pytest.mark.parametrize("settings", ["", "SET schedule = 'off'; SET overload = 'block';", "SET buffer = 7;"])
def test_nobody_asks_where_a_query_runs_that_puts_nothing_off(settings: str) -> None:
    check_put_off([planned(settings)], lambda: pytest.fail("somebody asked"))


@pytest.mark.parametrize("settings", ["SET schedule = 'fifo';", "SET overload = 'fail';"])
def test_one_that_does_is_rejected_in_batches_alone(settings: str) -> None:
    one = planned(settings)
    assert not_put_off(one, Machine) is None
    check_put_off([one], Machine)
    with pytest.raises(OptionError, match=settings[:-1]):
        check_put_off([planned(""), one], lambda: in_partitions(4))
