"""Profiles of generated examples: `ci` is repeatable and quick, `nightly` looks further, and with a planted bug it is
enough to know that an example fails."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import pytest
from hypothesis import HealthCheck, Phase, settings

from tests.profile import NIGHTLY, PLANTED

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.postgres_server import Database, PostgresServer

# A shell that starts the tests in the background has them ignore Ctrl-C; the runs that they interrupt must not.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Commands that do not say where they run do so in this process, which is quick; those about Spark say it.
os.environ["TRANSOM_RUNTIME"] = "local"

# Thousands of tests leave hardly any cycles behind, and the collector would spend an eighth of their time in looking.
gc.set_threshold(1_000, 10, 300)

SERVERS: Final = ("spark", "kafka", "postgres_server", "object_storage")
"""Fixtures that start something which lasts as long as the test process."""

pytest_plugins = ["tests.properties.occurrences", "tests.connectors.kafka_topics"]

# How long an example takes depends on the machine and on what is compiled already: no deadlines.
settings.register_profile(
    "ci",
    max_examples=50,
    deadline=None,
    derandomize=True,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "planted", settings.get_profile("ci"), phases=[Phase.explicit, Phase.generate], print_blob=False
)
settings.register_profile(
    "nightly",
    max_examples=2_000,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("nightly" if NIGHTLY else "planted" if PLANTED else "ci")


@pytest.hookimpl(tryfirst=True)  # before tests are chosen by their marks
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """By day without those of the night; tests on Spark run first, then those that need another server.

    They take seconds each. Of several test processes the first has them all, and one Spark and one server of a kind for
    them; the others take over from it what is behind them, and many small tests are left at the end, so all end
    together.
    """
    if not NIGHTLY:
        config.hook.pytest_deselected(items=[item for item in items if item.get_closest_marker("nightly")])
        items[:] = [item for item in items if not item.get_closest_marker("nightly")]
    first: dict[pytest.Item, None] = {}
    for server in SERVERS:
        first.update(dict.fromkeys(item for item in items if server in getattr(item, "fixturenames", ())))
    for item in first:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker("spark")
    items[:] = [*first, *(item for item in items if item not in first)]


def pytest_collection_finish() -> None:
    """What was imported and collected is there to the end: the collector need not look at it again and again."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """One Spark session for all tests of a test process, as Transom starts it for users: two cores, quick to start.

    Each process of a parallel run has its own: ports and folders are never shared.
    """
    from transom.runtimes.spark import launch  # which takes long to import, for tests that need none of it

    session = launch.start(2, lasting=False)
    yield session
    session.stop()


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """One PostgreSQL for all tests of a test process that need it: it takes two seconds to start."""
    from tests.postgres_server import PostgresServer  # whose driver takes long to import, too

    server = PostgresServer()
    server.start()
    yield server
    server.remove()


@pytest.fixture
def postgres(postgres_server: PostgresServer) -> Iterator[Database]:
    """A schema of its own for a test."""
    database = postgres_server.schema()
    yield database
    database.close()


@pytest.fixture(scope="session")
def object_storage() -> Iterator[str]:
    """One S3 for all tests of a test process; its address."""
    from tests.object_store import object_store

    with object_store() as address:
        yield address


@pytest.fixture
def bucket(object_storage: str) -> str:
    """An empty bucket, as a URI."""
    from tests.object_store import new_bucket

    return new_bucket()
