"""Variables of the environment, for as long as a block of code runs: PySpark takes some answers from nowhere else."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager


@contextmanager
def environment(variables: Mapping[str, str | None]) -> Iterator[None]:
    """Set these while the block runs; None is taken out."""
    before = {name: os.environ.get(name) for name in variables}
    _set(variables)
    try:
        yield
    finally:
        _set(before)


def _set(variables: Mapping[str, str | None]) -> None:
    for name, value in variables.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
