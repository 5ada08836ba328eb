"""The memory of a partition survives in its log, whatever becomes of the warm one, and costs what a batch brings."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.memory_log import MemoryCache, MemoryLog
from tests.pipeline.spread_queries import laid_out, rows
from tests.run_locally import batch_of
from transom.core.errors import CheckpointError
from transom.core.time import SECOND
from transom.kernels.slide_join import labour
from transom.kernels.slide_join.estimates import SlideDecision
from transom.kernels.slide_join.memory import SlideJoinState
from transom.pipeline import state_backend
from transom.pipeline.fragment_partition import FragmentPartition
from transom.pipeline.frames import OUT, Message
from transom.pipeline.layout import Layout
from transom.pipeline.packer import Packer
from transom.pipeline.state_backend import KeptStep
from transom.plan.catalogue import StreamDefinition
from transom.state import codec

LAYOUT = laid_out("SELECT k, x FROM s [PARTITION BY k ROWS 3]", partitions=1, emit="lifetimes")


def messages(t: int, count: int = 1, layout: Layout = LAYOUT, name: str = "s") -> list[Message]:
    packer = Packer(layout, 0)
    given = rows(layout, name, *((t, i, t) for i in range(count))).rows
    taken = packer.take(name, batch_of(layout.sources[name].columns, given))
    return [*taken, *packer.finish()]


class SavedPartition:
    def __init__(self, layout: Layout = LAYOUT) -> None:
        self.partition = FragmentPartition(layout, 1, 0)
        self.log = MemoryLog()
        self.cache = MemoryCache()

    def step(self, came: list[Message]) -> KeptStep:
        return state_backend.step(self.partition, self.log, self.cache, came)


def reported(messages: list[Message]) -> list[bytes]:
    return [bytes(message.packed()) for message in messages if message.kind == OUT]


@pytest.mark.parametrize("least", [0, 1 << 30])
def test_without_warm_memory_it_is_made_again_from_the_log(least: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_backend, "LEAST_BYTES", least)
    sure, forgetful = SavedPartition(), SavedPartition()
    forgetful.log.part_bytes = 100
    for t in range(8):
        forgetful.cache = MemoryCache()
        kept, known = forgetful.step(messages(t, 200)), sure.step(messages(t, 200))
        assert reported(kept.messages) == reported(known.messages)
        assert (kept.rebuilt, known.rebuilt) == (t > 0, False)
    assert reported(kept.messages), "something was reported"


def test_what_leaves_a_step_refers_to_nothing_of_its_memory() -> None:
    """Its rows may lie where the cached state was, and that room is given to others."""
    index = SavedPartition()
    kept = [message for t in range(5) for message in index.step(messages(t, 3)).messages]
    assert reported(kept) and not any(message.parts for message in kept)


def test_what_was_not_committed_is_not_trusted() -> None:
    index = SavedPartition()
    index.step(messages(0))
    committed = index.log.copy()
    lost = index.step(messages(1))
    index.log = committed
    again = index.step(messages(1))
    assert again.rebuilt and reported(again.messages) == reported(lost.messages)
    assert index.partition.state.steps == 2


def test_what_an_attempt_left_in_one_worker_is_not_taken_for_what_another_committed() -> None:
    index, elsewhere = SavedPartition(), SavedPartition()
    index.step(messages(0))
    elsewhere.log = index.log.copy()
    index.step(messages(1))
    elsewhere.step(messages(2))
    index.log = elsewhere.log
    assert index.step(messages(3)).rebuilt
    assert index.partition.inputs.gates.state.inputs["1.0"].ledger.used == 2, "the rows of 0 and 2"


def test_a_large_memory_is_not_written_with_every_small_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_backend, "LEAST_BYTES", 0)
    index = SavedPartition()
    large = index.step(messages(0, 20_000)).written + index.step(messages(1, 20_000)).written
    written = [index.step(messages(2 + i, 100)).written for i in range(20)]
    assert max(written) < large / 10
    assert sum(len(blob) for blob in index.log.entries.values()) < 3 * large, "the log does not grow for ever"


def test_the_log_before_a_memory_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_backend, "LEAST_BYTES", 1 << 30)
    index = SavedPartition()
    for t in range(5):
        index.step(messages(t))
    assert list(index.log.entries) == [(4, 0)]


def test_a_log_that_is_taken_otherwise_than_it_was_is_no_memory() -> None:
    """With another bound the rows would be late, and time elsewhere: what was reported would be reported again, or
    never."""
    index = SavedPartition(laid_out("SELECT k, x FROM d [PARTITION BY k ROWS 3]", partitions=1, emit="lifetimes"))
    for t in (3, 9):
        index.step(messages(t, layout=index.partition.layout, name="d"))
    layout = index.partition.layout
    definition = layout.sources["d"]
    assert isinstance(definition, StreamDefinition)
    bound = replace(definition, time=replace(definition.time, bound=5 * SECOND))
    catalogue = replace(layout.catalogue, relations={**layout.catalogue.relations, "d": bound})
    other = SavedPartition(replace(layout, catalogue=catalogue))
    other.log = index.log
    with pytest.raises(CheckpointError, match=r"the time of 'd' came to 1970-01-01 00:00:04, where it .* 00:00:07"):
        other.step(messages(12, layout=other.partition.layout, name="d"))


def test_the_log_of_another_query_or_number_of_partitions_is_rejected() -> None:
    index = SavedPartition()
    index.step(messages(0))
    other = SavedPartition(laid_out("SELECT k, x FROM s [PARTITION BY k ROWS 3]", partitions=2, emit="lifetimes"))
    other.log = index.log
    with pytest.raises(CheckpointError, match="another number of partitions"):
        other.step(messages(1, layout=other.partition.layout))


def test_what_was_decided_by_measuring_is_decided_alike_when_memory_is_made_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    window = "[RANGE 4 SECONDS SLIDE 1 SECOND]"
    layout = laid_out(
        f"SET slide_join = 'hybrid'; RSTREAM(SELECT s.x FROM s {window}, t {window} WHERE s.k = t.k)", partitions=1
    )
    requested: list[str] = []

    def whim(*_: object) -> SlideDecision:
        """As if the disk were fast today and slow tomorrow."""
        requested.append("full" if len(requested) % 3 else "incremental")
        return SlideDecision(requested[-1], requested[-1] == "incremental")

    monkeypatch.setattr(labour, "choose", whim)
    monkeypatch.setattr(state_backend, "LEAST_BYTES", 0)
    monkeypatch.setattr(codec, "saved_bytes", lambda state, whole=False: 1 << 40)  # all of it stays in the log
    index = SavedPartition(layout)
    for t in range(12):
        index.step([*messages(t, 3, layout, "s"), *messages(t, 3, layout, "t")])
    (state,) = (
        s for memories in index.partition.state.part.operators for s in memories if isinstance(s, SlideJoinState)
    )
    decided, tactics = len(requested), dict(state.report.tactics)
    assert len(tactics) > 1
    again = state_backend.recovered(FragmentPartition(layout, 1, 0), index.log)
    (state,) = (s for memories in again.part.operators for s in memories if isinstance(s, SlideJoinState))
    assert len(requested) == decided and state.report.tactics == tactics
