"""What the log of a bucket is called in Spark's state."""

from __future__ import annotations

from typing import Final

LOG: Final = "log"
"""The state variable that a bucket has its log in."""

HEADER: Final = (-1, 0)
"""Where the header is among its entries."""
