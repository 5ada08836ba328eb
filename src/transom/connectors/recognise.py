"""How a file is known again that has been read in part: by a mark of what it held, which is kept with the position.

A text may grow, so its mark is of its first bytes and of those before the place that has been read to. A Parquet file
may not, so its mark is of its size and its footer, which says where every column lies and how far its values reach.
"""

from __future__ import annotations

import hashlib
from typing import Any, Final

from transom.connectors.listing import Listed, show
from transom.connectors.storage import ReadFile, open_file
from transom.core.errors import CheckpointError, SourceError

_SAMPLE: Final = 1024
_TRAILER: Final = 8  # the length of the footer, and four letters


def read_entry(at: Any, numbers: int) -> tuple[list[int], str | None]:
    """What a position says of a file: so many numbers, and the mark. Raises CheckpointError where it says none."""
    if isinstance(at, list) and len(at) == numbers + 1:
        counts, mark = at[:-1], at[-1]
        if all(type(count) is int and 0 <= count < 1 << 63 for count in counts) and isinstance(mark, str | None):
            return counts, mark
    raise CheckpointError(
        "a position in the files of a source cannot be read",
        remedy="the checkpoint is damaged or of another version; start with an empty checkpoint folder",
    )


def mark_of_text(handle: ReadFile, read: int) -> str:
    """The mark of a text of which so many bytes have been read."""
    if handle.mark is not None:
        return handle.mark
    sample = min(read, _SAMPLE)
    head = handle.pread(sample, 0)
    return _mark(head, handle.pread(sample, read - sample))


def mark_of_parquet(path: str) -> str:
    with open_file(path) as handle:
        size = handle.status()[0]
        trailer = handle.pread(_TRAILER, max(0, size - _TRAILER))
        footer = min(size, int.from_bytes(trailer[:4], "little") + _TRAILER)
        return _mark(size.to_bytes(8), handle.pread(footer, size - footer))


def reject_another(file: Listed, mark: str | None, present: str, read: str) -> None:
    """Raise SourceError where a file is not the one that had the mark; None: nobody has taken it."""
    if mark is not None and mark != present:
        raise SourceError(
            f"file '{show(file.name)}' has been replaced: it is not the one of which {read} have been read",
            remedy="lines may be added to a file, but not changed, and other rows need a file of another name;"
            " start the query anew",
        )


def _mark(*parts: bytes) -> str:
    return hashlib.blake2b(b"".join(parts), digest_size=8).hexdigest()
