"""Every example, run as its README says; its answer is compared with one that plain loops give, at every instant."""

from __future__ import annotations

import csv
import math
import random
from bisect import bisect_right
from collections import Counter, defaultdict, deque
from collections.abc import Iterable
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.examples.readme import EXAMPLES, follow, run
from tests.postgres_server import PostgresServer
from transom.testing.kafka_broker import KafkaBroker

Row = tuple[Any, ...]
Net = dict[datetime, Counter[Any]]

HOUR = timedelta(hours=1)
DAY = timedelta(days=1)


def records(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(text.splitlines()))


def read(path: Path) -> list[dict[str, str]]:
    return records(path.read_text(encoding="utf-8"))


def at(record: dict[str, str], column: str = "ts") -> datetime:
    return datetime.fromisoformat(record[column])


def changes(text: str) -> Net:
    """What every instant of a printed answer adds and takes away."""
    net: Net = defaultdict(Counter)
    for record in records(text):
        sign, instant = record.pop("change"), at(record, "at")
        del record["at"]
        net[instant][tuple(record.values())] += 1 if sign == "+" else -1
    return dict(net)


def changes_of(snapshots: Iterable[tuple[datetime, Counter[Any]]]) -> Net:
    """The same of the snapshots from each instant on, in time order."""
    net: Net = {}
    before: Counter[Any] = Counter()
    for instant, snapshot in snapshots:
        change = Counter(snapshot)
        change.subtract(before)
        net[instant] = Counter({row: n for row, n in change.items() if n})
        before = snapshot
    return {instant: change for instant, change in net.items() if change}


def averages(prices: dict[str, deque[int]]) -> Counter[Row]:
    return Counter((who, str(len(last)), math.fsum(last) / len(last)) for who, last in prices.items())


def with_average(net: Net) -> Net:
    """The last column as a number."""
    return {
        instant: Counter({(*row[:-1], float(row[-1])): n for row, n in change.items()})
        for instant, change in net.items()
    }


# --- backbone --------------------------------------------------------------------------------------------------------


def test_backbone(tmp_path: Path) -> None:
    printed = follow("backbone", tmp_path)
    backbone, branch = read(tmp_path / "data" / "backbone.csv"), read(tmp_path / "data" / "branch.csv")
    steps: Counter[datetime] = Counter({min(at(row) for row in backbone + branch): 0})
    packets = [(row["src"], row["dest"], at(row)) for row in branch]
    for packet in backbone:
        src, dest, when = packet["src"], packet["dest"], at(packet)
        for other_src, other_dest, other_when in packets:
            if src == other_src and dest == other_dest and abs(when - other_when) < HOUR:
                steps[max(when, other_when)] += 1
                steps[min(when, other_when) + HOUR] -= 1
    counts, alive = [], 0
    for instant in sorted(steps):
        alive += steps[instant]
        counts.append((instant, Counter([(str(alive),)])))
    answer = changes(printed["transom run backbone.cql"])
    assert answer == changes_of(counts)
    assert max(int(row[0]) for change in answer.values() for row in change) > 100


# --- sales -----------------------------------------------------------------------------------------------------------


def last_ten(sales: list[tuple[datetime, str, int]]) -> Net:
    prices: dict[str, deque[int]] = defaultdict(lambda: deque(maxlen=10))
    snapshots: dict[datetime, Counter[Row]] = {}
    for when, seller, cents in sorted(sales, key=lambda sale: sale[0]):
        prices[seller].append(cents)
        snapshots[when] = averages(prices)
    return changes_of(snapshots.items())


@pytest.mark.nightly
def test_sales(tmp_path: Path) -> None:
    printed = follow("sales", tmp_path)
    sales = [(at(row), row["seller"], int(row["cents"])) for row in read(tmp_path / "data" / "sales.csv")]
    assert sales != sorted(sales, key=lambda sale: sale[0]), "they should not come in order"
    assert with_average(changes(printed["transom run sales.cql"])) == last_ten(sales)

    sellers = {row["auction"]: row["seller"] for row in read(tmp_path / "data" / "auctions.csv")}
    highest: dict[str, int] = {}
    for bid in read(tmp_path / "data" / "bids.csv"):
        highest[bid["auction"]] = max(highest.get(bid["auction"], 0), int(bid["cents"]))
    ends = [(at(row), row["auction"]) for row in read(tmp_path / "data" / "closings.csv")]
    # Auctions of one seller that are closed at one instant come in the order of their numbers.
    closed = [
        (when, sellers[i], highest[i])
        for when, i in sorted(ends, key=lambda end: (end[0], int(end[1])))
        if i in highest
    ]
    assert len(closed) < len(ends), "some should have no bid"
    assert with_average(changes(printed["transom run auctions.cql"])) == last_ten(closed)


# --- transfers -------------------------------------------------------------------------------------------------------


@pytest.mark.nightly
def test_transfers(tmp_path: Path) -> None:
    printed = follow("transfers", tmp_path)
    transfers = [row for path in sorted((tmp_path / "data" / "transfers").iterdir()) for row in read(path)]
    by_instant = defaultdict(list)
    for transfer in transfers:
        by_instant[at(transfer)].append(transfer)
    answer = changes((tmp_path / "out" / "balances.csv").read_text())
    expected: dict[str, Decimal] = {}
    alive: Counter[tuple[str, str]] = Counter()
    assert set(answer) <= set(by_instant)
    for instant in sorted(by_instant):
        for transfer in by_instant[instant]:
            for account, amount in (
                (transfer["target"], transfer["amount"]),
                (transfer["source"], "-" + transfer["amount"]),
            ):
                expected[account] = expected.get(account, Decimal(0)) + Decimal(amount)
        alive.update(answer.get(instant, Counter()))
        balances = Counter({(account, Decimal(balance)): n for (account, balance), n in alive.items() if n})
        assert sum(balance for _, balance in balances.elements()) == 0, instant
        assert balances == Counter(expected.items()), instant
    (total,) = records(printed["transom run transfers.cql"])
    assert (total["change"], at(total, "at"), total["total"]) == ("+", min(by_instant), "0.00")
    assert run("transom run transfers.cql --set batch_rows=100", tmp_path) == printed["transom run transfers.cql"]


# --- flights ---------------------------------------------------------------------------------------------------------


@pytest.mark.nightly
def test_flights(tmp_path: Path) -> None:
    printed = follow("flights", tmp_path)
    data = tmp_path / "data"
    planes = {row["tailnum"]: row for row in read(data / "planes.csv")}
    airlines = {row["carrier"]: row["name"] for row in read(data / "airlines.csv")}
    weather: dict[str, list[dict[str, str]]] = defaultdict(list)
    for row in read(data / "weather.csv"):
        weather[row["origin"]].append(row)
    observed = {origin: [at(row) for row in rows] for origin, rows in weather.items()}
    departures = []
    flights = read(data / "flights.csv")
    for flight in flights:
        seen = bisect_right(observed[flight["origin"]], at(flight))
        if not seen or flight["tailnum"] not in planes:
            continue
        plane, sky = planes[flight["tailnum"]], weather[flight["origin"]][seen - 1]
        wind = sky["wind_speed"] if sky["wind_gust"] == "NA" else sky["wind_gust"]
        texts = (flight["flight"], airlines[flight["carrier"]], flight["origin"], flight["dest"], plane["manufacturer"])
        numbers = [
            None if text == "NA" else float(text) for text in (plane["year"], sky["visib"], wind, flight["dep_delay"])
        ]
        departures.append((at(flight), texts, tuple(numbers)))
    given = [
        (at(row, "at"), tuple(list(row.values())[1:6]), tuple(float(v) if v else None for v in list(row.values())[6:]))
        for row in read(tmp_path / "out" / "departures.csv")
    ]
    assert Counter(given) == Counter(departures)
    assert [row[0] for row in given] == sorted(row[0] for row in given)
    built, delays = {numbers[0] for *_, numbers in given}, [numbers[3] for *_, numbers in given]
    assert None in built and None in delays and len(given) < len(flights), "something should be missing"

    days: dict[datetime, dict[str, list[float | None]]] = defaultdict(lambda: defaultdict(list))
    for when, texts, (_, visibility, _, delay) in departures:
        if visibility is not None and visibility < 3:
            midnight = datetime(when.year, when.month, when.day)
            days[midnight if when == midnight else midnight + DAY][texts[1]].append(delay)
    first, last = min(days), max(days)
    snapshots = []
    for day in (first + DAY * i for i in range((last - first).days + 2)):
        rows = []
        for airline, late in days.get(day, {}).items():
            minutes_late = [delay for delay in late if delay is not None]
            average = math.fsum(minutes_late) / len(minutes_late) if minutes_late else None
            rows.append((airline, str(len(late)), str(len(late) - len(minutes_late)), average))
        snapshots.append((day, Counter(rows)))
    answer = {
        instant: Counter({(*row[:3], float(row[3]) if row[3] else None): n for row, n in change.items()})
        for instant, change in changes(printed["transom run flights.cql"]).items()
    }
    assert answer == changes_of(snapshots)
    assert any(row[2] != "0" for change in answer.values() for row in change), "something should be cancelled"


def test_every_example_is_tested() -> None:
    """building is the demo; that and nexmark have tests of their own."""
    folders = {path.name for path in EXAMPLES.iterdir() if path.is_dir()}
    tested = {name.removeprefix("test_") for name in globals() if name.startswith("test_")}
    assert folders - tested == {"building", "nexmark"}


# --- kafka -----------------------------------------------------------------------------------------------------------


@pytest.mark.nightly
def test_kafka(
    kafka: KafkaBroker, postgres_server: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The example starts a broker and a database of its own; the other ones show that they can be had."""
    (runtime := tmp_path / "runtime").mkdir(mode=0o700)  # the package of the database puts its lock there
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
    (printed,) = follow("kafka", tmp_path).values()
    draw, unpaid, paid = random.Random(7), 0, Counter[str]()
    for _ in range(200):
        customer, _ = draw.choice(["ann", "bob", "eve", "joe"]), draw.randrange(5, 500)
        fate = draw.random()
        if fate > 0.1:
            paid[customer] += 1
            unpaid += fate < 0.15
            _ = 700 if fate < 0.15 else draw.randrange(1, 590)
        else:
            unpaid += 1
    assert printed.startswith(f"{unpaid} of 200 orders")
    assert all(f"  {customer}: {count} orders, " in printed for customer, count in paid.items())
