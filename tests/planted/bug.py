"""What a planted bug is."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Bug:
    """In `file`, `old` becomes `new`; `why` says what a user would see."""

    name: str
    file: str
    old: str
    new: str
    why: str
