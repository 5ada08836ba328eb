"""Values as Python has them: of answers, and of parameters."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any

Value = bool | int | float | Decimal | str | date | datetime | list[Any] | dict[str, Any] | None
"""An array is a list, a struct a dictionary."""

Row = dict[str, Value]
"""A row of an answer: its values by the names of their columns."""
