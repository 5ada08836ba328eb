"""What a session must have, what it should have, and what is said when it has not."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Thread

import pytest
from pyspark.sql import SparkSession

from transom.core.errors import SparkError
from transom.runtimes.spark import settings
from transom.runtimes.spark.settings import NEEDED, WANTED, check, missing, partitions, settings_of

PROVIDER = "spark.sql.streaming.stateStore.providerClass"
PARTITIONS = "spark.sql.shuffle.partitions"
CHANGELOG = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"


@pytest.fixture
def other(spark: SparkSession) -> Iterator[SparkSession]:
    """A session in the same JVM whose settings can be spoilt."""
    yield spark.newSession()


def test_our_own_session_lacks_nothing(spark: SparkSession) -> None:
    assert missing(spark) == []
    check(spark)


def test_what_is_needed_is_an_error_with_the_line_to_write(other: SparkSession) -> None:
    other.conf.set(PROVIDER, "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider")
    other.conf.set(CHANGELOG, "false")
    assert [(each.name, each.needed) for each in missing(other)] == [(PROVIDER, True), (CHANGELOG, False)]
    with pytest.raises(SparkError, match="lacks what a query needs: spark") as raised:
        check(other)
    line = f'.config("{PROVIDER}", "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider")'
    assert raised.value.remedy is not None and line in raised.value.remedy and CHANGELOG not in raised.value.remedy


def test_what_is_wanted_is_only_reported(other: SparkSession) -> None:
    other.conf.set(CHANGELOG, "false")
    other.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    found = {each.name: (each.wanted, each.present) for each in missing(other)}
    assert found == {CHANGELOG: ("true", "false"), "spark.sql.session.timeZone": ("UTC", "Asia/Tokyo")}
    check(other)


@pytest.mark.parametrize("said", [True, False])
def test_nobody_sees_the_partitions_of_a_query_that_starts(
    spark: SparkSession, other: SparkSession, said: bool
) -> None:
    """Whether the session says a number or has Spark's own; and it has it again whatever happens."""
    session = spark if said else other
    before = session.conf.get(PARTITIONS)
    polled_at: list[str | None] = []
    another = Thread(target=lambda: polled_at.append(partitions(session)))
    with pytest.raises(ZeroDivisionError), settings_of(session, 17):
        another.start()
        assert session.conf.get(PARTITIONS) == "17"
        raise ZeroDivisionError
    another.join()
    assert polled_at == [before] and session.conf.get(PARTITIONS) == before


class Conf:
    """The settings of a session that does not run."""

    def __init__(self, **values: str) -> None:
        self.values = {setting.name: setting.value for setting in (*NEEDED, *WANTED)}
        self.values |= {"spark.master": "local[2,4]", PARTITIONS: "2"} | values
        self.conf = self.sparkContext = self
        self.defaultParallelism = 2

    def get(self, name: str, default: str | None = None) -> str | None:
        return self.values.get(name, default)


def test_far_more_partitions_than_cores_are_reported() -> None:
    (found,) = missing(Conf(**{PARTITIONS: "200"}))  # type: ignore[arg-type]
    assert (found.name, found.wanted, found.present, found.needed) == (PARTITIONS, "2", "200", False)
    assert missing(Conf(**{PARTITIONS: "8"})) == []  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("master", "wanted"),
    [
        ("local", "local[1,4]"),
        ("local[2]", "local[2,4]"),
        ("local[*]", "local[*,4]"),
        ("local[3, 2]", "local[3,4]"),
        ("local[*,4]", None),
        ("local[2,9]", None),
        ("local-cluster[2,1,1024]", None),
        ("spark://host:7077", None),
    ],
)
def test_local_mode_has_to_try_again(master: str, wanted: str | None) -> None:
    session = Conf(**{"spark.master": master})
    found = missing(session)  # type: ignore[arg-type]
    assert [(each.name, each.wanted) for each in found] == ([] if wanted is None else [("spark.master", wanted)])


def test_a_cluster_that_does_not_try_again_is_reported() -> None:
    session = Conf(**{"spark.master": "yarn", "spark.task.maxFailures": "1"})
    found = missing(session)  # type: ignore[arg-type]
    assert [(each.name, each.wanted, each.present) for each in found] == [("spark.task.maxFailures", "4", "1")]


def test_every_setting_has_its_reason_and_stands_once() -> None:
    names = [setting.name for setting in (*NEEDED, *WANTED)] + list(settings.LOCAL)
    assert len(names) == len(set(names))
    assert all(setting.why for setting in (*NEEDED, *WANTED))
