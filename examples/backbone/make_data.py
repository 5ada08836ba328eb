"""Makes `data/backbone.csv` and `data/branch.csv`: packets of three hours, in the order in which they are seen."""

from __future__ import annotations

import random
import sys
from datetime import datetime, timedelta
from pathlib import Path

START = datetime(2024, 5, 1, 9)
SECONDS = 3 * 3600

Packet = tuple[float, str, str]


def packets(chance: random.Random) -> tuple[list[Packet], list[Packet]]:
    """Half of what the branch sends stays within it; the rest reaches the backbone within two minutes."""
    branch, backbone = [], []
    for _ in range(900):
        # Nothing comes from the branch in the middle of the second hour, so that the count falls.
        at = chance.choice([chance.uniform(0, 4500), chance.uniform(6600, SECONDS - 300)])
        src, dest = f"10.1.0.{chance.randint(1, 30)}", f"192.0.2.{chance.randint(1, 40)}"
        branch.append((at, src, dest))
        if chance.random() < 0.5:
            backbone.append((at + chance.uniform(0.01, 120), src, dest))
    for _ in range(2100):
        src, dest = f"198.51.100.{chance.randint(1, 200)}", f"192.0.2.{chance.randint(1, 40)}"
        backbone.append((chance.uniform(0, SECONDS), src, dest))
    return backbone, branch


def write(path: Path, rows: list[Packet], chance: random.Random) -> None:
    """Packets are seen up to four seconds after their time."""
    seen = sorted(rows, key=lambda row: row[0] + chance.uniform(0, 4))
    lines = [
        f"{(START + timedelta(seconds=at)).isoformat(sep=' ', timespec='milliseconds')},{src},{dest}"
        for at, src, dest in seen
    ]
    path.write_text("\n".join(["ts,src,dest", *lines, ""]), encoding="utf-8")


def main(folder: Path, seed: int = 5) -> None:
    chance = random.Random(seed)
    folder.mkdir(parents=True, exist_ok=True)
    backbone, branch = packets(chance)
    write(folder / "backbone.csv", backbone, chance)
    write(folder / "branch.csv", branch, chance)


if __name__ == "__main__":
    main(Path(__file__).parent / "data", *map(int, sys.argv[1:]))
