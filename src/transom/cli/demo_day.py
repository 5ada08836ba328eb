"""A day in a building, made up: readings of every room as files, in the order in which they would arrive.

Something burns on two occasions. Besides, there is a sunny room, a kitchen with toast, detectors that deliver late and
some that deliver nonsense.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet

Floats = npt.NDArray[np.float64]

FLOORS: Final = 5
ROOMS: Final = 8
DAY: Final = datetime(2024, 5, 1)

_SECONDS: Final = 86_400
_NOON: Final = _SECONDS // 2


@dataclass(frozen=True)
class Fire:
    """A room burns from `start` (a second of the day) on, for `seconds`."""

    floor: int
    room: int
    start: int
    seconds: int


def fires(seed: int) -> list[Fire]:
    """A waste basket in the morning, and a fire in the afternoon that spreads to the rooms beside and above it."""
    random = np.random.default_rng(seed)
    floor, room = int(random.integers(2, FLOORS)), int(random.integers(2, ROOMS))
    start = int(random.integers(13, 17)) * 3600 + int(random.integers(0, 3600))
    end = start + 3600
    spread = [(floor, room, 0), (floor, room - 1, 9), (floor, room + 1, 14), (floor + 1, room, 25)]
    afternoon = [Fire(f, r, start + minutes * 60, end - start - minutes * 60) for f, r, minutes in spread]
    return [Fire(1, 1 + int(random.integers(0, ROOMS)), 8 * 3600 + 900, 480), *afternoon]


def write_day(folder: Path, seed: int) -> None:
    """`temperature/*.csv` and `smoke.parquet` in the folder."""
    random = np.random.default_rng(seed + 1)
    burning = fires(seed)
    at, room = _readings(20)
    celsius = 21 + random.normal(0, 0.8, len(at)) + 6 * np.sin((at - _NOON) / _SECONDS * np.pi) ** 2
    celsius += 40 * _within(at, room, [Fire(FLOORS, ROOMS, 11 * 3600, 3 * 3600)])  # the sun through a roof window
    celsius += 180 * _grown(at, room, burning)
    order, at = _disordered(at, random)
    lines = [
        f"{DAY:%Y-%m-%d} {_clock(t)},{1 + r // ROOMS},{_name(r)},{c:.1f}"
        for t, r, c in zip(at.tolist(), room[order].tolist(), celsius[order].tolist(), strict=True)
    ]
    for broken in random.integers(0, len(lines), 12).tolist():
        lines[broken] = lines[broken].rpartition(",")[0] + ",n/a"
    (folder / "temperature").mkdir(parents=True, exist_ok=True)
    half = len(lines) // 2
    for name, part in (("1-morning", lines[:half]), ("2-afternoon", lines[half:])):
        text = "\n".join(["ts,floor,room,celsius", *part, ""])
        (folder / "temperature" / f"{name}.csv").write_text(text)

    at, room = _readings(30)
    density = np.abs(random.normal(0, 0.02, len(at)))
    density += 0.5 * _within(at, room, [Fire(1, ROOMS, 7 * 3600, 300), Fire(1, ROOMS, 12 * 3600, 300)])  # toast
    density += 0.9 * _grown(at, room, burning)
    order, at = _disordered(at, random)
    instants = pa.array(_micros(at), pa.int64()).cast(pa.timestamp("us"))
    names = pa.array([_name(r) for r in room[order].tolist()])
    table = pa.table({"ts": instants, "room": names, "density": density[order]})
    pyarrow.parquet.write_table(table, folder / "smoke.parquet")


def _readings(every: int) -> tuple[Floats, npt.NDArray[np.int64]]:
    """Seconds of the day and rooms, numbered from 0: every room so often, not all at the same second."""
    rooms = FLOORS * ROOMS
    at = np.arange(0, _SECONDS, every)[:, None] + np.arange(rooms)[None, :] * every // rooms
    return at.ravel().astype(np.float64), np.tile(np.arange(rooms), _SECONDS // every)


def _disordered(at: Floats, random: np.random.Generator) -> tuple[npt.NDArray[np.int64], Floats]:
    """The order of arrival: up to 8 seconds after the reading, and now and then a minute."""
    delay = random.uniform(0, 8, len(at))
    delay[random.integers(0, len(at), 15)] += 60
    order = np.argsort(at + delay, kind="stable")
    return order, at[order]


def _within(at: Floats, room: npt.NDArray[np.int64], causes: list[Fire]) -> npt.NDArray[np.bool_]:
    is_within = np.zeros(len(at), dtype=bool)
    for cause in causes:
        here = room == (cause.floor - 1) * ROOMS + cause.room - 1
        is_within |= here & (at >= cause.start) & (at < cause.start + cause.seconds)
    return is_within


def _grown(at: Floats, room: npt.NDArray[np.int64], burning: list[Fire]) -> Floats:
    """How much a room burns, from 0 to 1: within three minutes it does so fully."""
    grown = np.zeros(len(at))
    for fire in burning:
        here = _within(at, room, [fire])
        grown[here] = np.minimum(1, (at[here] - fire.start) / 180)
    return grown


def _name(room: int) -> str:
    """
    >>> _name(0), _name(ROOMS)
    ('1.01', '2.01')
    """
    return f"{1 + room // ROOMS}.{1 + room % ROOMS:02}"


def _clock(second: float) -> str:
    whole = int(second)
    return f"{whole // 3600:02}:{whole // 60 % 60:02}:{whole % 60:02}"


def _micros(at: Floats) -> npt.NDArray[np.int64]:
    start = np.datetime64(DAY, "us").astype(np.int64)
    return (at * 1_000_000).astype(np.int64) + start
