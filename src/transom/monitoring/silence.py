"""How long an input has been silent, by whoever looks at it more than once."""

from __future__ import annotations

from typing import Any


class Silence:
    """Since when neither a row of an input has come nor its time gone on.

    >>> silence, status = Silence(), {"inputs": [{"name": "s", "rows_in": 5, "watermark": None, "ended": False}]}
    >>> for now in (100.0, 107.5):
    ...     silence.mark(status, now)
    >>> status["inputs"][0]["silent_seconds"]
    7.5
    """

    def __init__(self) -> None:
        self._since: dict[str, tuple[object, float]] = {}

    def mark(self, status: dict[str, Any], now: float) -> None:
        """Write it to the inputs of a status, and to what holds time back."""
        held = status.get("held_back_by")
        for each in status["inputs"]:
            seen = (each["rows_in"], each.get("watermark"))
            before, since = self._since.get(each["name"], (None, now))
            if seen != before or each.get("ended"):
                since = now
            self._since[each["name"]] = seen, since
            each["silent_seconds"] = now - since
            if held and held["input"] == each["name"]:
                held["silent_seconds"] = now - since
