"""Each kind of plan in a real streaming query: conformance and certified cases, cut into batches in several ways."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pyspark.sql import SparkSession

from tests.profile import NIGHTLY, first_of
from tests.run_on_spark import run_on_spark
from tests.runtimes.spark.sampled_cases import OVER, Sampled, all_cases, cases, kept_sample

CASES = cases()
MANNERS = (("changes", 1), ("lifetimes", 1 << 20), ("changes", 2), ("lifetimes", 1))
"""Form of the answer, and the rows that a batch takes of every input if they are few."""


def test_the_sample_is_one_of_every_kind() -> None:
    kinds = frozenset().union(*(case.kinds for case in CASES))
    assert {"Aggregate sliding", "Join ring_hash", "2 stages", "answer ToStream"} <= kinds, sorted(kinds)
    assert NIGHTLY or len(CASES) <= 40


@pytest.mark.nightly
def test_every_kind_that_occurs_is_in_the_sample() -> None:
    def kinds(some: list[Sampled]) -> set[str]:
        return {kind for case in some for kind in case.kinds if OVER not in kind}

    assert kinds(kept_sample()) == kinds(all_cases()), "make seeds"


RUNS = [(i, lifetimes) for lifetimes in first_of("direct", "negative") for i in range(len(CASES))]


@pytest.mark.parametrize(("number", "lifetimes"), RUNS, ids=[f"{CASES[i].id}-{lifetimes}" for i, lifetimes in RUNS])
def test_case_on_spark(spark: SparkSession, number: int, lifetimes: str) -> None:
    case: Sampled = CASES[number]
    emit, batch_rows = MANNERS[number % len(MANNERS)]
    most = max((len(rows) for rows in case.inputs.values()), default=0)
    batch_rows = max(batch_rows, -(-most // (4 if NIGHTLY else 2)))  # every batch takes its time
    catalogue = replace(case.catalogue, options={**case.catalogue.options, "lifetimes": lifetimes})
    answer = run_on_spark(spark, case.query, catalogue, case.inputs, emit=emit, batch_rows=batch_rows)
    reported = case.disagreement(answer)
    assert reported is None, f"{case.id} (first: expected, second: Spark, {batch_rows} rows a batch)\n{reported}"
