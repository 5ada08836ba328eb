"""One Spark session for all tests of a test process, as Transom starts it for users."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from transom.runtimes.spark import launch


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """Two cores, quick to start. Each process of a parallel run has its own: ports and folders are never shared."""
    session = launch.start(2, lasting=False)
    yield session
    session.stop()
