"""Which tests run, and how many examples: by day those that a change is held to, at night all (`make nightly`)."""

from __future__ import annotations

import os
from typing import Final

NIGHTLY: Final = os.environ.get("TRANSOM_TESTS") == "nightly"


def examples(by_day: int, at_night: int) -> int:
    return at_night if NIGHTLY else by_day
