"""How far a silent stream is raised: to the progress that the others have reached, not to the fastest of them."""

from __future__ import annotations

from tests.pipeline.queries import Running
from transom.core.time import SECOND

THREE = "SELECT s.k FROM s [RANGE 5 SECONDS], t [RANGE 5 SECONDS], f [RANGE 5 SECONDS] WHERE s.k = t.k AND t.k = f.k"


def test_a_silent_stream_waits_for_the_slowest_of_the_others() -> None:
    running = Running(THREE)
    running.push("s", (1, 1))
    running.push("t", (10, 1))
    running.push("f", (8, 1), (20, 2))
    assert running.fall_idle("s")
    assert running.pipeline.watermark("s") == running.pipeline.progress == 8 * SECOND  # t allows for 2 seconds
    assert running.push("s", (9, 1)) is None, "in time, though f is far ahead"
    running.push("t", (30, 2))
    assert running.end("s") == [("+", 10.0, 1), ("-", 13.0, 1)]
