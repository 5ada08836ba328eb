"""Which assumption fails where adMandF drops more than MandF: tables in Markdown, and the same for programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from transom.benchmarks.shared_assumptions import OLD, Count, Miss
from transom.benchmarks.shared_scheduling import NEW
from transom.benchmarks.shared_scheduling_report import markdown


def summary(misses: Sequence[Miss], counts: Mapping[str, Count]) -> dict[str, Any]:
    return {
        "misses": [asdict(miss) for miss in misses],
        "counts": {name: {**asdict(count), "no_more": count.no_more} for name, count in counts.items()},
    }


def tables(misses: Sequence[Miss], counts: Mapping[str, Count]) -> str:
    return "\n\n".join(
        [
            "Which assumption fails: the plans under which admandf drops more than mandf, from when on for good, and "
            "what was in force when most of the excess was dropped.",
            markdown(
                ["seed", "fifo, %", "mandf, %", "admandf, %", "from, s", "case", "method", "as FIFO throughout"],
                [
                    [
                        str(miss.seed),
                        *(f"{100 * miss.dropped[name]:.2f}" for name in ("fifo", OLD, NEW)),
                        f"{miss.parted:g}",
                        str(miss.case) if miss.case else "none",
                        miss.method,
                        "yes" if miss.is_fifo else "no",
                    ]
                    for miss in misses
                ],
            ),
            "The same plans with an assumption made to hold:",
            markdown(
                [
                    "plans",
                    "number",
                    "admandf drops no more",
                    "it drops more: seeds",
                    "mandf, mean %",
                    "admandf, mean %",
                ],
                [
                    [
                        name,
                        str(count.plans),
                        str(count.no_more),
                        ", ".join(map(str, count.more)) or "-",
                        *(f"{100 * count.mean_dropped[policy]:.2f}" for policy in (OLD, NEW)),
                    ]
                    for name, count in counts.items()
                ],
            ),
        ]
    )
