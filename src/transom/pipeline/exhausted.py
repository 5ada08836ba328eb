"""When there is no memory left: an error that names the operator which keeps most."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress

from transom.core.errors import OutOfMemoryError
from transom.core.text import size_text

Kept = tuple[str, int, int]
"""What an operator is called, and the rows and bytes that it keeps."""


@contextmanager
def reported_when_exhausted(kept: Callable[[], Sequence[Kept]]) -> Iterator[None]:
    """`kept` is asked for when it has come to that."""
    try:
        yield
    except MemoryError as error:
        raise out_of_memory(kept) from error


def out_of_memory(kept: Callable[[], Sequence[Kept]] = tuple) -> OutOfMemoryError:
    most = ""
    with suppress(Exception):  # to find out takes memory, too, and what was broken off need not be whole
        name, rows, size = max(kept(), key=lambda entry: entry[2])
        most = f"; {name} keeps most: {rows:,} rows in {size_text(size)}"
    return OutOfMemoryError(
        f"there is no memory left{most}",
        remedy="make its windows shorter, lower SET batch_rows, or give the process more memory",
    )
