"""The NEXMark model: people, their auctions and the bids on them, made up from a seed and written as Parquet files.

Of every fifty events the first is a person, three are auctions and 46 are bids. An event comes every 100 microseconds
(10,000 a second), 50 microseconds off the whole millisecond: so no time is that of another event or the bound of a
window, and whether a bound belongs to a window makes no difference. Who sells, bids and is bid on has the proportions
of the generator of Apache Beam: three of four auctions are of one hot seller, three of four bids by one hot bidder,
every second bid on one hot auction, and the hot ones change with every hundredth person or auction; the others are
drawn from the last thousand people and the last hundred auctions, and a few of those to come.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

PERSON, AUCTION, BID, SIDE = "person", "auction", "bid", "side_input"
STREAMS: Final = (PERSON, AUCTION, BID)
COLUMNS: Final = {
    PERSON: {
        "id": "BIGINT",
        "name": "VARCHAR",
        "email_address": "VARCHAR",
        "credit_card": "VARCHAR",
        "city": "VARCHAR",
        "state": "VARCHAR",
        "date_time": "TIMESTAMP",
        "extra": "VARCHAR",
    },
    AUCTION: {
        "id": "BIGINT",
        "item_name": "VARCHAR",
        "description": "VARCHAR",
        "initial_bid": "BIGINT",
        "reserve": "BIGINT",
        "date_time": "TIMESTAMP",
        "expires": "TIMESTAMP",
        "seller": "BIGINT",
        "category": "BIGINT",
        "extra": "VARCHAR",
    },
    BID: {
        "auction": "BIGINT",
        "bidder": "BIGINT",
        "price": "BIGINT",
        "channel": "VARCHAR",
        "url": "VARCHAR",
        "date_time": "TIMESTAMP",
        "extra": "VARCHAR",
    },
    SIDE: {"key": "BIGINT", "value": "VARCHAR"},
}
START: Final = 1_704_067_200_000_050  # 2024-01-01 in microseconds, and a little
STEP: Final = 100
ROUND, AUCTIONS_A_ROUND = 50, 3
FIRST_ID: Final = 1_000
FIRST_CATEGORY, CATEGORIES = 10, 5
ACTIVE_PEOPLE, ACTIVE_AUCTIONS, LEAD, HOT_EVERY = 1_000, 100, 10, 100
PERSON_BYTES, AUCTION_BYTES, BID_BYTES = 200, 500, 100
CHANNELS: Final = 10_000
SIDE_KEYS: Final = 10_000
EVENTS_A_FILE: Final = 250_000
STATES: Final = ("AZ", "CA", "ID", "OR", "WA", "WY")
CITIES: Final = "Phoenix,Los Angeles,San Francisco,Boise,Portland,Bend,Redmond,Seattle,Kent,Cheyenne".split(",")
FIRST_NAMES: Final = "Peter,Paul,Luke,John,Saul,Vicky,Kate,Julie,Sarah,Deiter,Walter".split(",")
LAST_NAMES: Final = "Shultz,Abrams,Spencer,White,Bartels,Walton,Smith,Jones,Noris".split(",")
HOT_CHANNELS: Final = ("Google", "Facebook", "Baidu", "Apple")

Numbers = npt.NDArray[np.int64]
Chance = np.random.Generator


@dataclass(frozen=True)
class Size:
    """So many events, so many microseconds apart; a file of each stream is for the same stretch of time."""

    events: int
    step: int = STEP
    seed: int = 7

    @property
    def events_a_file(self) -> int:
        """At least four files, so that there are some batches; whole rounds."""
        return min(EVENTS_A_FILE, -(-self.events // (4 * ROUND)) * ROUND)

    @property
    def files(self) -> int:
        return -(-self.events // self.events_a_file)


def write_events(size: Size, folder: Path) -> dict[str, int]:
    """A folder of files for each stream, and one for the table of q13. The rows of each."""
    for name in COLUMNS:
        (folder / name).mkdir(parents=True)
    rows = dict.fromkeys(STREAMS, 0)
    channels = _channels(np.random.default_rng((size.seed, 1_000_000)))
    for number in range(size.files):
        first = number * size.events_a_file
        events = np.arange(first, min(first + size.events_a_file, size.events), dtype=np.int64)
        random = np.random.default_rng((size.seed, number))
        for name, table in _tables(events, size.step, channels, random).items():
            rows[name] += len(table)
            path = folder / name / f"events-{number:05d}.parquet"
            pq.write_table(table, path, use_dictionary=["channel", "url", "city", "state"])
            os.utime(path, (number, number))  # Spark takes files by their age
    keys = np.arange(SIDE_KEYS, dtype=np.int64)
    side = pa.table({"key": keys, "value": pa.array([f"value {key}" for key in keys.tolist()])})
    pq.write_table(side, folder / SIDE / "side.parquet")
    return rows


def _tables(events: Numbers, step: int, channels: tuple[pa.Array, pa.Array], random: Chance) -> dict[str, pa.Table]:
    turn = events % ROUND
    people, bids = turn == 0, turn > AUCTIONS_A_ROUND
    return {
        PERSON: _people(events[people], step, random),
        AUCTION: _auctions(events[~people & ~bids], step, random),
        BID: _bids(events[bids], step, channels, random),
    }


def _people(events: Numbers, step: int, random: Chance) -> pa.Table:
    n = len(events)
    name = _two(_draw(FIRST_NAMES, n, random), _draw(LAST_NAMES, n, random), " ")
    email = _two(_letters(np.full(n, 7), random), _letters(np.full(n, 5), random), "@")
    card = _digits(16, n, random)
    city, state = _draw(CITIES, n, random), _draw(STATES, n, random)
    used = np.sum([_lengths(text) for text in (name, email, card, city, state)], axis=0) + 8
    return pa.table(
        {
            "id": FIRST_ID + events // ROUND,
            "name": name,
            "email_address": email,
            "credit_card": card,
            "city": city,
            "state": state,
            "date_time": _times(events, step),
            "extra": _extra(used, PERSON_BYTES, random),
        }
    )


def _auctions(events: Numbers, step: int, random: Chance) -> pa.Table:
    n = len(events)
    item, description = _letters(random.integers(3, 20, n), random), _letters(random.integers(3, 100, n), random)
    first, more = _prices(n, random), _prices(n, random)
    last_person = events // ROUND
    hot = random.random(n) < 3 / 4
    seller = np.where(hot, last_person // HOT_EVERY * HOT_EVERY, _some_person(last_person, random))
    # As many events as bring the auctions that are open at a time, on average.
    open_for = ACTIVE_AUCTIONS * ROUND // AUCTIONS_A_ROUND * step
    return pa.table(
        {
            "id": FIRST_ID + _last_auction(events),
            "item_name": item,
            "description": description,
            "initial_bid": first,
            "reserve": first + more,
            "date_time": _times(events, step),
            "expires": _times(events, step, 1_000 * (1 + random.integers(0, 2 * open_for // 1_000, n))),
            "seller": FIRST_ID + seller,
            "category": FIRST_CATEGORY + random.integers(0, CATEGORIES, n),
            "extra": _extra(48 + _lengths(item) + _lengths(description), AUCTION_BYTES, random),
        }
    )


def _bids(events: Numbers, step: int, channels: tuple[pa.Array, pa.Array], random: Chance) -> pa.Table:
    n = len(events)
    last_person, last_auction = events // ROUND, _last_auction(events)
    oldest = np.maximum(last_auction - ACTIVE_AUCTIONS, 0)
    some_auction = oldest + _below(last_auction - oldest + 1 + LEAD, random)
    auction = np.where(random.random(n) < 1 / 2, last_auction // HOT_EVERY * HOT_EVERY, some_auction)
    hot = random.random(n) < 3 / 4
    bidder = np.where(hot, last_person // HOT_EVERY * HOT_EVERY + 1, _some_person(last_person, random))
    hot_channel = random.random(n) < 1 / 2
    channel = np.where(hot_channel, random.integers(0, len(HOT_CHANNELS), n), random.integers(0, CHANNELS, n))
    channel += np.where(hot_channel, 0, len(HOT_CHANNELS))
    names, urls = channels
    return pa.table(
        {
            "auction": FIRST_ID + auction,
            "bidder": FIRST_ID + bidder,
            "price": _prices(n, random),
            "channel": names.take(pa.array(channel)),
            "url": urls.take(pa.array(channel)),
            "date_time": _times(events, step),
            "extra": _extra(np.full(n, 32), BID_BYTES, random),
        }
    )


def _channels(random: Chance) -> tuple[pa.Array, pa.Array]:
    """Their names and addresses, the hot ones first; nine of ten of the others have their number in the address."""
    n = len(HOT_CHANNELS) + CHANNELS
    folders = (_letters(np.full(n, 5), random).to_pylist() for _ in range(3))
    paths = ["/".join(path) for path in zip(*folders, strict=True)]
    numbered = (np.arange(n) >= len(HOT_CHANNELS)) & (random.random(n) < 9 / 10)
    urls = [
        f"https://www.nexmark.com/{path}/item.htm?query=1" + (f"&channel_id={i - len(HOT_CHANNELS)}" if has else "")
        for i, (path, has) in enumerate(zip(paths, numbered.tolist(), strict=True))
    ]
    return pa.array([*HOT_CHANNELS, *(f"channel-{i}" for i in range(CHANNELS))]), pa.array(urls)


def _last_auction(events: Numbers) -> Numbers:
    """The number of the last auction up to an event, from 0; of an auction, its own."""
    last: Numbers = events // ROUND * AUCTIONS_A_ROUND + np.minimum(events % ROUND, AUCTIONS_A_ROUND) - 1
    return last


def _some_person(last: Numbers, random: Chance) -> Numbers:
    active = np.minimum(last + 1, ACTIVE_PEOPLE)
    some: Numbers = last + 1 - active + _below(active + LEAD, random)
    return some


def _below(bounds: Numbers, random: Chance) -> Numbers:
    return (random.random(len(bounds)) * bounds).astype(np.int64)


def _prices(n: int, random: Chance) -> Numbers:
    """Cents, from one to a million dollars, as many of each magnitude."""
    return np.round(np.power(10.0, random.random(n) * 6) * 100).astype(np.int64)


def _times(events: Numbers, step: int, later: Numbers | int = 0) -> pa.Array:
    return pa.array(START + events * step + later).cast(pa.timestamp("us", "UTC"))


def _draw(of: Sequence[str], n: int, random: Chance) -> pa.Array:
    return pa.array(of).take(pa.array(random.integers(0, len(of), n)))


def _two(left: pa.Array, right: pa.Array, between: str) -> pa.Array:
    pairs = zip(left.to_pylist(), right.to_pylist(), strict=True)  # one person in fifty events: few
    return pa.array([f"{a}{between}{b}" for a, b in pairs], pa.string())


def _digits(count: int, n: int, random: Chance) -> pa.Array:
    return _texts(np.full(n, count), random.integers(48, 58, n * count, dtype=np.uint8))


def _letters(lengths: Numbers, random: Chance) -> pa.Array:
    return _texts(lengths, random.integers(97, 123, int(lengths.sum()), dtype=np.uint8))


def _texts(lengths: Numbers, characters: npt.NDArray[np.uint8]) -> pa.Array:
    offsets = np.zeros(len(lengths) + 1, dtype=np.int32)
    np.cumsum(lengths, out=offsets[1:])
    return pa.StringArray.from_buffers(len(lengths), pa.py_buffer(offsets), pa.py_buffer(characters))


def _lengths(texts: pa.Array) -> Numbers:
    offsets = np.frombuffer(texts.buffers()[1], dtype=np.int32, count=len(texts) + 1)
    return np.diff(offsets).astype(np.int64)


def _extra(used: Numbers, wanted: int, random: Chance) -> pa.Array:
    """What is missing to the size of an event, give or take a fifth."""
    missing = np.maximum(wanted - used, 0)
    give = np.round(missing / 5).astype(np.int64)
    return _letters(missing - give + _below(2 * give, random), random)
