"""The benchmark of Kafka runs once in a small size; nobody asks how long it takes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from benchmarks import kafka as kafka_benchmark
from tests.benchmarks.running import quick
from transom.testing.kafka_broker import KafkaBroker


@pytest.mark.nightly
def test_it_runs_and_ends_in_a_summary(
    kafka: KafkaBroker, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    @contextmanager
    def running() -> Iterator[KafkaBroker]:
        yield kafka

    monkeypatch.setattr(kafka_benchmark, "KafkaBroker", running)
    monkeypatch.setattr(kafka_benchmark, "WINDOW", 100)  # few rows meet by as few keys
    monkeypatch.setattr(kafka_benchmark, "QUICK_JOIN_ROWS", 500)
    monkeypatch.setattr(kafka_benchmark, "QUICK_SOURCE_ROWS", 500)
    reported = quick(capsys, "kafka")
    assert reported["summary"]["kafka_over_files"] > 0
    assert [cell["experiment"] for cell in reported["cells"]] == ["join", "source"]
