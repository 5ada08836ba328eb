"""What `/status` answers, in a file: it is replaced as a whole, so that nobody reads half of it."""

from __future__ import annotations

import json
import os
from typing import Final

from transom.core.errors import OptionError
from transom.core.text import visible
from transom.monitoring.logs import LOGGER
from transom.monitoring.monitor import Monitor, Sight

_NEW: Final = ".new"


class StatusFile:
    """Written after every look: put `write` into `Monitor.after`. That it can be written is found out at once."""

    def __init__(self, path: str, monitor: Monitor) -> None:
        self._path = path
        self._monitor = monitor
        self._failed = False
        try:
            self._replace()
        except OSError as error:
            raise OptionError(
                f"cannot write the status to '{visible(path)}': {error.strerror or error}",
                remedy="give a file in a folder that is there and can be written to",
            ) from None

    def write(self, sights: list[Sight]) -> None:
        """A disk that is full does not end a query; it is said once."""
        try:
            self._replace()
            self._failed = False
        except OSError as error:
            if not self._failed:
                LOGGER.warning("the status file could not be written: %s", visible(str(error)))
            self._failed = True

    def _replace(self) -> None:
        with open(self._path + _NEW, "w", encoding="utf-8", errors="backslashreplace") as file:
            json.dump({"queries": self._monitor.snapshots()}, file)
            file.write("\n")
        os.replace(self._path + _NEW, self._path)
