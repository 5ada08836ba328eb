"""Sessions of rows by key: the memory and the loop that the SESSION window and the SESSION table share.

A session is rows of a key, each at most the gap after the one before. It is over once progress is past its last row and
the gap: then nobody can prolong it, since a row of exactly that instant would have.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from transom.core.delta import Int64s
from transom.core.time import FOREVER
from transom.kernels.columns import alike
from transom.kernels.jit import jit
from transom.kernels.key_index import KeyIndex
from transom.kernels.keys import encode_keys
from transom.kernels.sound import lengths, listed_in_use, numbered
from transom.kernels.window.range import end_after
from transom.state.checks import need, rooms, within
from transom.state.fifo import Fifo
from transom.state.slots import SlotPool, grown

_START, _LAST, _HEAD, _KEY = range(4)  # rows of `records`


class Closed(NamedTuple):
    """The rows of sessions that are over, by node, with the start and the end of their session."""

    node: Int64s
    start: Int64s
    end: Int64s


@dataclass
class Sessions:
    """The open session of each key, and its rows as a list of nodes.

    `of_key[p]` is the session of key p; `records[:, s]` the instants of the first and the last row of session s, the
    head of its list and its key; `following[n]` the next node of a list. `timers` has for each row when its session
    would be over.
    """

    keys: KeyIndex = field(default_factory=KeyIndex)
    of_key: Int64s = field(default_factory=lambda: np.full(0, -1, dtype=np.int64))
    slots: SlotPool = field(default_factory=SlotPool)
    records: Int64s = field(default_factory=lambda: np.zeros((4, 0), dtype=np.int64))
    nodes: SlotPool = field(default_factory=SlotPool)
    following: Int64s = field(default_factory=lambda: np.full(0, -1, dtype=np.int64))
    timers: Fifo = field(default_factory=lambda: Fifo.of(2))

    def check(self) -> None:
        rooms(self.keys.slots.high, self.of_key)
        rooms(self.slots.high, self.records)
        rooms(self.nodes.high, self.following)
        used, open_now = self.keys.slots.used(), self.slots.used()
        numbered(self.of_key[used], self.slots)
        need(bool((self.records[_KEY, self.of_key[used]] == used).all()) and len(used) == len(open_now))
        heads = self.records[_HEAD, open_now]
        need(bool((heads >= 0).all()))
        listed_in_use(heads, self.following, self.nodes)
        need(int(lengths(heads, self.following).sum()) == len(self.nodes.used()))
        within(self.timers.column(1), max(self.records.shape[1], 1))

    @property
    def next_timer(self) -> int:
        return int(self.timers.column(0)[0]) if len(self.timers) else FOREVER

    def take(self, columns: Sequence[pa.Array], t: Int64s, gap: int, frontier: int) -> tuple[Int64s, Closed]:
        """Rows in time order: the node of each, and the rows of all sessions that are over before the frontier.

        The nodes of those may be read until they are given back.
        """
        count = len(t)
        key, _ = self.keys.number(encode_keys(columns, count))
        if self.keys.slots.high > len(self.of_key):
            self.of_key = grown(self.of_key, self.keys.slots.high, -1)
        nodes = self.nodes.take(count)
        if self.nodes.high > len(self.following):
            self.following = grown(self.following, self.nodes.high, -1)
        fresh = self.slots.take(count)  # one for each row, should it begin a session
        if self.slots.high > self.records.shape[1]:
            self.records = grown(self.records, self.slots.high)
        session, begun, ended = assign(key, alike(t), nodes, gap, fresh, self.of_key, self.records, self.following)
        self.slots.give_back(fresh[begun:])
        self.timers.append(end_after(t, gap), session)
        passed = int(np.searchsorted(self.timers.column(0), frontier))
        due = expire(self.timers.column(0)[:passed], self.timers.column(1)[:passed], gap, self.of_key, self.records)
        self.timers.drop(passed)
        over = np.concatenate([ended, due])
        keys = self.records[_KEY, over]
        self.keys.forget(np.unique(keys[self.of_key[keys] == -1]))
        closed = Closed(*listed(over, gap, self.records, self.following))
        self.slots.give_back(over)
        return nodes, closed

    def give_back(self, closed: Closed) -> None:
        self.nodes.give_back(closed.node)


@jit
def assign(key, t, nodes, gap, fresh, of_key, records, following):  # type: ignore[no-untyped-def]
    """Each row to the session of its key, or to a new one; how many were begun, and those that were over by then."""
    session = np.empty(len(t), dtype=np.int64)
    ended = np.empty(len(t), dtype=np.int64)
    begun = 0
    over = 0
    for i in range(len(t)):
        s = of_key[key[i]]
        if s >= 0 and t[i] - records[1, s] > gap:
            ended[over] = s
            over += 1
            s = -1
        if s < 0:
            s = fresh[begun]
            begun += 1
            of_key[key[i]] = s
            records[0, s] = t[i]
            records[2, s] = -1
            records[3, s] = key[i]
        records[1, s] = t[i]
        following[nodes[i]] = records[2, s]
        records[2, s] = nodes[i]
        session[i] = s
    return session, begun, ended[:over]


@jit
def expire(due, sessions, gap, of_key, records):  # type: ignore[no-untyped-def]
    """The sessions that no row prolonged until they were due; of a key that has another one they were over before."""
    unprolonged = np.empty(len(due), dtype=np.int64)
    count = 0
    for i in range(len(due)):
        s = sessions[i]
        key = records[3, s]
        if of_key[key] == s and records[1, s] + gap == due[i]:
            of_key[key] = -1
            unprolonged[count] = s
            count += 1
    return unprolonged[:count]


@jit
def listed(over, gap, records, following):  # type: ignore[no-untyped-def]
    """The nodes of sessions, with the start and the end of theirs."""
    count = 0
    for s in over:
        node = records[2, s]
        while node >= 0:
            count += 1
            node = following[node]
    out = np.empty((3, count), dtype=np.int64)
    at = 0
    for s in over:
        node = records[2, s]
        while node >= 0:
            out[0, at] = node
            out[1, at] = records[0, s]
            out[2, at] = records[1, s] + gap
            at += 1
            node = following[node]
    return out[0], out[1], out[2]
