"""The benchmarks by name: the module with their `main(options) -> int`, and what they measure."""

from __future__ import annotations

from typing import Final

BENCHMARKS: Final[dict[str, tuple[str, str]]] = {
    "join": (
        "transom.benchmarks.join",
        "rows a second through the window join of two streams, by the size of the window",
    ),
}
