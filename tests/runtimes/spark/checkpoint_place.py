"""Where the checkpoint of a query on Spark may be."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.connectors.memory_storage import memory_storage


@pytest.fixture(params=["a disk", "a storage"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Where a checkpoint may be."""
    if request.param == "a disk":
        yield str(tmp_path)
        return
    with memory_storage() as (uri, _):
        yield f"{uri}/check"
