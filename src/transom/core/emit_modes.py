"""The forms in which a relation is written out."""

from __future__ import annotations

from typing import Final, get_args
from typing import Literal as OneOf

Emit = OneOf["changes", "net", "lifetimes", "latest"]

EMITS: Final[tuple[str, ...]] = get_args(Emit)
