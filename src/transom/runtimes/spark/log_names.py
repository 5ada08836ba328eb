"""What the log of a partition is called in Spark's state, and how it is written there."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Final

from transom.core.errors import CheckpointError

LOG: Final = "log"
"""The state variable that a partition has its log in."""

STATE: Final = "state"
"""The folder of a checkpoint in which long entries are files."""

HEADER: Final = (-1, 0)
"""Where the header is among its entries."""


def kept_header(header: str, gone: Sequence[str]) -> bytes:
    """The header as the state keeps it, with the files that count no more once it is committed."""
    return json.dumps([header, list(gone)]).encode()


def header_of(kept: bytes) -> tuple[str, list[str]]:
    try:
        header, gone = json.loads(kept)
    except ValueError:
        raise CheckpointError(
            "the log of the checkpoint was written by another version of Transom",
            remedy="go on with the version that wrote it, or start with an empty checkpoint folder",
        ) from None
    return header, gone


def files_of(folder: str, stage_number: int, label: int) -> str:
    """Where the files of a partition are, in the folder of a checkpoint."""
    return os.path.join(folder, STATE, f"{stage_number}-{label}")
