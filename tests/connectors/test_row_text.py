"""Values as texts, against the texts that Python and Arrow make of each by itself."""

from __future__ import annotations

import random
from datetime import datetime, timedelta

import pyarrow as pa
import pytest

from transom.connectors.row_text import value_text

FIRST = datetime(1, 1, 1)
SPAN = int((datetime(9999, 12, 31) - FIRST) / timedelta(seconds=1))


@pytest.mark.parametrize("whole", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("zone", [None, "UTC"])
def test_instants_are_texts_with_as_many_digits_as_they_need(whole: float, zone: str | None) -> None:
    """A fraction has six digits, and a whole second none; before 1970, too."""
    chance = random.Random(whole)
    instants: list[datetime | None] = [None]
    for _ in range(300):
        second = FIRST + timedelta(seconds=chance.randrange(SPAN))
        fraction = 0 if chance.random() < whole else chance.choice([1, 500_000, 999_999])
        instants.append(second + timedelta(microseconds=fraction))
    found = value_text(pa.array(instants, pa.timestamp("us")).cast(pa.timestamp("us", zone))).to_pylist()
    end = "Z" if zone else ""
    assert found == [None if at is None else at.isoformat(" ") + end for at in instants]
