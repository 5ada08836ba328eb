"""Makes `data/transfers/*.csv`: transfers of an hour between thirty accounts, as they arrive, cut into files."""

from __future__ import annotations

import random
import sys
from datetime import datetime, timedelta
from pathlib import Path

START = datetime(2024, 5, 1, 12)
ACCOUNTS = 30
TRANSFERS = 3_000
FILES = 4


def transfers(chance: random.Random) -> list[str]:
    """Many have the same second, some go from an account to itself, and all arrive up to nine seconds late."""
    made = []
    for _ in range(TRANSFERS):
        at = chance.randrange(3600)
        amount = chance.randint(1, 100_000) / 100
        made.append((at, f"{chance.randint(1, ACCOUNTS)},{chance.randint(1, ACCOUNTS)},{amount:.2f}"))
    made.sort(key=lambda one: one[0] + chance.uniform(0, 9))
    return [f"{START + timedelta(seconds=at)},{rest}" for at, rest in made]


def main(folder: Path, seed: int = 3) -> None:
    lines = transfers(random.Random(seed))
    (folder / "transfers").mkdir(parents=True, exist_ok=True)
    for number in range(FILES):
        part = lines[number * TRANSFERS // FILES : (number + 1) * TRANSFERS // FILES]
        text = "\n".join(["ts,source,target,amount", *part, ""])
        (folder / "transfers" / f"{number + 1}.csv").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(Path(__file__).parent / "data", *map(int, sys.argv[1:]))
