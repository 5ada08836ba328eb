"""Makes a day of a market place: `data/sales.csv`, and `data/auctions.csv`, `data/bids.csv` and `data/closings.csv`."""

from __future__ import annotations

import random
import sys
from datetime import datetime, timedelta
from pathlib import Path

START = datetime(2024, 5, 1, 8)
SELLERS = ("ada", "ben", "cleo", "dan", "eve")

Row = tuple[int, str]  # a second of the day, and the other columns


def sales(chance: random.Random) -> list[Row]:
    """Reported up to fifty seconds after they are made."""
    made = [(chance.randrange(12 * 3600), f"{chance.choice(SELLERS)},{chance.randint(100, 9_999)}") for _ in range(600)]
    return sorted(made, key=lambda row: row[0] + chance.uniform(0, 50))


def auctions(chance: random.Random) -> tuple[list[Row], list[Row], list[Row]]:
    opened, bids, closed = [], [], []
    for number in range(1, 201):
        start = chance.randrange(10 * 3600)
        end = start + chance.randint(60, 7000)
        price = chance.randint(100, 2_000)
        opened.append((start, f"{number},{chance.choice(SELLERS)}"))
        closed.append((end, f"{number}"))
        for at in sorted(chance.randint(start, end) for _ in range(chance.randint(0, 12))):
            price += chance.randint(-50, 400)  # whoever bids less than is offered already changes nothing
            bids.append((at, f"{number},{price}"))
    return sorted(opened), sorted(bids, key=lambda bid: bid[0]), sorted(closed)


def write(path: Path, heading: str, rows: list[Row]) -> None:
    lines = [f"{START + timedelta(seconds=at)},{rest}" for at, rest in rows]
    path.write_text("\n".join([heading, *lines, ""]), encoding="utf-8")


def main(folder: Path, seed: int = 10) -> None:
    chance = random.Random(seed)
    folder.mkdir(parents=True, exist_ok=True)
    write(folder / "sales.csv", "ts,seller,cents", sales(chance))
    opened, bids, closed = auctions(chance)
    write(folder / "auctions.csv", "ts,auction,seller", opened)
    write(folder / "bids.csv", "ts,auction,cents", bids)
    write(folder / "closings.csv", "ts,auction", closed)


if __name__ == "__main__":
    main(Path(__file__).parent / "data", *map(int, sys.argv[1:]))
