"""What partitions are reported beside rows: where time is, once for each of them, however many tasks there were."""

from __future__ import annotations

import pytest

from tests.pipeline.spread_queries import laid_out
from tests.run_locally import batch_of
from transom.core.errors import CheckpointError, SourceError
from transom.core.time import SECOND, to_datetime
from transom.pipeline import packer
from transom.pipeline.fragment_partition import FragmentPartition
from transom.pipeline.frames import FRAMES, Frame, Message
from transom.pipeline.layout import Layout
from transom.pipeline.packer import Packer
from transom.pipeline.seen import heard, seen_frame, unpacked_times

TWO_STAGES = "SELECT n, COUNT(*) AS groups FROM (SELECT k, COUNT(*) AS n FROM {0} GROUP BY k) AS c GROUP BY n"


def task(layout: Layout, name: str, sender: int, *rows: tuple[float, int], begun: bool = False) -> list[Message]:
    """Rows are seconds and keys."""
    given = Packer(layout, sender, begun=begun)
    values = [(to_datetime(round(t * SECOND)), k, 0) for t, k in rows]
    return [*given.take(name, batch_of(layout.sources[name].columns, values)), *given.finish()]


def of_kind(messages: list[Message], kind: str, fragment: int, partition: int) -> list[Frame]:
    mine = [each for each in messages if (each.fragment, each.partition, each.kind) == (fragment, partition, FRAMES)]
    return [heard(part) for each in mine for part in each.opened() if part.kind == kind]


def sent_to(messages: list[Message], fragment: int, partition: int) -> list[Message]:
    return [each for each in messages if (each.fragment, each.partition) == (fragment, partition)]


def test_first_instants_are_reported_until_time_has_begun_and_few_of_them() -> None:
    layout = laid_out(TWO_STAGES.format("d"), 4)
    rows = [(t / 1000, 1) for t in range(3_000)]
    (first,) = of_kind(task(layout, "d", 0, *rows), "seen", 1, 2)
    assert unpacked_times(first.about["firsts"]).tolist() == [t * 1000 for t in range(packer.MOST_FIRSTS)]
    assert first.about["more"] and not first.about["begun"]
    (later,) = of_kind(task(layout, "d", 0, *rows, begun=True), "seen", 1, 2)
    assert later.about["firsts"] == [] and later.about["begun"]
    assert later.about["greatest"] == first.about["greatest"] and later.about["rows_in"] == 3_000


def test_what_is_as_usual_is_left_out() -> None:
    part = seen_frame("s", 3, rows_in=5, late=0, ended=False, greatest=None, reasons={})
    assert part.about == {"kind": "seen", "source": "s", "sender": 3, "rows_in": 5}
    assert heard(part).about["reasons"] == {} and heard(part).about["greatest"] is None


def test_later_levels_hear_where_time_is_however_many_tasks_there_were() -> None:
    layout = laid_out(TWO_STAGES.format("d"), 3)
    times = [7 + 7 * sender % 20 for sender in range(20)]
    tasks = [message for i, t in enumerate(times) for message in task(layout, "d", i, (t, i), (6 if i == 0 else t, 1))]
    sent = FragmentPartition(layout, 1, 0).step(sent_to(tasks, 1, 0))
    for partition in range(3):
        (seen,) = of_kind(sent, "seen", 2, partition)
        assert (seen.about["rows_in"], seen.about["greatest"]) == (40, 26 * SECOND)
        assert unpacked_times(seen.about["firsts"]).tolist() == [6 * SECOND]
        above = FragmentPartition(layout, 2, partition)
        above.step(sent_to(sent, 2, partition))
        assert above.state.gates.frontier == 24 * SECOND and above.state.gates.origin == 6 * SECOND
    others = FragmentPartition(layout, 1, 1).step(sent_to(tasks, 1, 1))
    assert not any(of_kind(others, "seen", 2, partition) for partition in range(3))


def test_a_level_that_rows_come_to_hears_of_every_task() -> None:
    text = "SELECT c.n, m.x FROM (SELECT k, COUNT(*) AS n FROM d GROUP BY k) AS c JOIN t [NOW] AS m ON c.n = m.k"
    layout = laid_out(text, 2)
    late = {
        source: max(layout.stage_number[channel.fragment] for channel in layout.channels_of(source))
        for source in ("d", "t")
    }
    assert late == {"d": 1, "t": 2}
    tasks = [message for sender in range(5) for message in task(layout, "dt"[sender % 2], sender, (sender, 1))]
    seen = of_kind(FragmentPartition(layout, 1, 0).step(sent_to(tasks, 1, 0)), "seen", 2, 1)
    assert sorted((part.about["source"], part.about["rows_in"]) for part in seen) == [("d", 3), ("t", 1), ("t", 1)]


def test_a_partition_whose_time_has_not_begun_does_not_believe_that_it_has() -> None:
    layout = laid_out(TWO_STAGES.format("d"), 2)
    with pytest.raises(CheckpointError, match="time has not begun"):
        FragmentPartition(layout, 1, 0).step(sent_to(task(layout, "d", 0, (1, 1), begun=True), 1, 0))


@pytest.mark.parametrize(("before", "fails"), [((8,), True), ((8, 20), False)])
def test_many_late_rows_matter_only_if_time_could_begin_with_those_after_them(
    before: tuple[float, ...], fails: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a bound of 2 seconds: where the watermark has passed the first row, none that is in time is before it."""
    monkeypatch.setattr(packer, "MOST_FIRSTS", 3)
    layout = laid_out("SELECT d.k FROM d [NOW], s [NOW] WHERE d.k = s.k", 1)
    partition = FragmentPartition(layout, 1, 0)
    partition.step(sent_to(task(layout, "d", 0, *((t, 1) for t in before)), 1, 0))
    late = sent_to(task(layout, "d", 0, (1, 1), (1.5, 1), (2, 1), (2.5, 1), (3, 1)), 1, 0)
    if fails:
        with pytest.raises(SourceError, match="where time begins"):
            partition.step(late)
    else:
        partition.step(late)
        assert {state.first for state in partition.state.gates.inputs.values()} == {8 * SECOND, None}
