"""Seeds of the examples of a property: by day those that are kept because they are lively, at night new ones.

`make seeds` tries many for each property and keeps those whose first draw is lively and which bring most that others
have not brought, for the time that they take.
"""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from random import Random
from time import process_time
from types import MappingProxyType
from typing import Final

from tests.profile import NIGHTLY
from tests.properties import occurrences

KEPT: Final = Path(__file__).with_name("seeds.json")
CHOOSING: Final = os.environ.get("TRANSOM_CHOOSE_SEEDS")
"""A folder that gets a file with the chosen seeds of each property."""
CANDIDATES: Final = 4
WANTED: Final = "wanted"


def over_seeds(
    name: str, count: int, seen: Mapping[str, int] = MappingProxyType({})
) -> Callable[[Callable[[int], None]], Callable[[], None]]:
    """So many examples of a property; the seed of one that fails is in its traceback.

    `seen` counts what the property wants to have seen in all of them.
    """

    def decorate(check: Callable[[int], None]) -> Callable[[], None]:
        def run() -> None:
            if CHOOSING:
                _choose(Path(CHOOSING), name, count, check, seen)
                return
            for seed in _seeds(name, count):
                try:
                    check(seed)
                except BaseException as error:
                    error.add_note(f"in '{name}', seed {seed}")
                    raise

        return run

    return decorate


def _seeds(name: str, count: int) -> list[int]:
    if NIGHTLY:
        fresh = Random()
        return [fresh.randrange(1 << 48) for _ in range(count)]
    kept = _kept().get(name, [])
    assert len(kept) >= count, f"{len(kept)} seeds are kept for '{name}', {count} are wanted: make seeds"
    return kept[:count]


@cache
def _kept() -> dict[str, list[int]]:
    kept: dict[str, list[int]] = json.loads(KEPT.read_text(encoding="utf-8"))
    return kept


def _choose(folder: Path, name: str, count: int, check: Callable[[int], None], seen: Mapping[str, int]) -> None:
    """Of several times as many as are wanted, one after the other that which brings most for its time."""
    candidates: dict[int, tuple[float, Counter[object]]] = {}
    for seed in range(CANDIDATES * count):
        occurrences.begin()
        begin, before = process_time(), dict(seen)
        check(seed)
        took = process_time() - begin
        occurrences.see(*((WANTED, what) for what, times in seen.items() if times > before.get(what, 0)))
        candidates[seed] = (took, occurrences.brought())
    chosen: list[int] = []
    have: Counter[object] = Counter()
    while len(chosen) < count:
        best = max(
            (seed for seed in candidates if seed not in chosen),
            key=lambda seed: (_worth(candidates[seed][1], have) / (0.05 + candidates[seed][0]), -seed),
        )
        chosen.append(best)
        have += candidates[best][1]
    folder.mkdir(exist_ok=True, parents=True)
    (folder / f"{name}.json".replace("/", "-")).write_text(json.dumps({name: chosen}))


def _worth(brought: Counter[object], have: Counter[object]) -> float:
    """The tenth of a kind is worth a tenth of the first; an example that was drawn again, or is dull, little."""
    worth = sum(_weight(what) / (1 + have[what]) for what in brought if what != occurrences.DULL)
    return worth * (0.1 if brought[occurrences.DULL] else 1.0)


def _weight(what: object) -> float:
    """What the property wants to have seen comes before all else."""
    return 50.0 if isinstance(what, tuple) and what[0] == WANTED else 1.0


def gather(folder: Path) -> None:
    """Write what was chosen beside this module, sorted, a property a line."""
    seeds_of: dict[str, list[int]] = {}
    for path in sorted(folder.glob("*.json")):
        seeds_of |= json.loads(path.read_text(encoding="utf-8"))
    lines = [f"  {json.dumps(name)}: {json.dumps(seeds_of[name])}" for name in sorted(seeds_of)]
    KEPT.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    print(f"{sum(map(len, seeds_of.values()))} seeds of {len(seeds_of)} properties")


if __name__ == "__main__":
    gather(Path(sys.argv[1]))
