"""Values as Python has them: of answers, and of parameters."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal

Value = bool | int | float | Decimal | str | date | datetime | None

Row = dict[str, Value]
"""A row of an answer: its values by the names of their columns."""
