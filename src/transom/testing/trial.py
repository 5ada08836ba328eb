"""A query that a test feeds by hand: it says what arrives, how far the clock goes, and when all is started again."""

from __future__ import annotations

import difflib
import os
import re
import weakref
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from transom.core.errors import OptionError, QueryError, SourceError
from transom.core.time import BEGINNING, FOREVER, parse_duration
from transom.plan.catalogue import Catalogue, StreamDefinition, TableDefinition
from transom.plan.no_from import ONE_ROW
from transom.program.clock import HeldClock
from transom.program.planned import Planned, read_program
from transom.testing.answer import Answer
from transom.testing.instant_text import times_of
from transom.testing.rows import Definition, Given, batch_of, read_rows
from transom.testing.run import FedQuery, FedRun


class Trial:
    """The queries of a text or a file, over rows that the test sends in place of what the inputs declare.

    `inputs` are sent at once, tables that never change before the others. Times such as 10:00 are of `day`, and the
    clock begins there. The clock is for what depends on the wall clock: streams with time = 'arrival', `idle`,
    `heartbeat` and `ahead`.

    >>> trial = Trial('''
    ...     CREATE STREAM a (ts TIMESTAMP, x INTEGER, WATERMARK FOR ts AS ts) WITH (connector = 'files', path = 'a/');
    ...     CREATE STREAM b (ts TIMESTAMP, x INTEGER, WATERMARK FOR ts AS ts)
    ...     WITH (connector = 'files', path = 'b/', idle = '30 SECONDS');
    ...     ISTREAM(SELECT x FROM a [NOW] UNION ALL SELECT x FROM b [NOW])
    ... ''', day="2024-05-01")
    >>> trial.send("b", "09:59:59 7")
    >>> trial.send("a", "10:00:00 1")
    >>> trial.send("a", "10:00:05 2")
    >>> trial.held_back_by(), trial.progress()
    ('b', '09:59:59')
    >>> trial.advance("30 seconds")
    >>> print(trial.answer())
    09:59:59 7
    10:00:00 1
    >>> trial.restart()
    >>> trial.end()
    >>> print(trial.answer())
    09:59:59 7
    10:00:00 1
    10:00:05 2
    """

    def __init__(self, query: str | Path, inputs: Mapping[str, str] | None = None, *, day: str = "1970-01-01") -> None:
        self._times = times_of(day)
        self._clock = HeldClock(self._times.midnight)
        self._catalogue = Catalogue()
        planned = [each for each in read_program(_text_of(query), self._catalogue) if each.standing]
        if not planned:
            raise QueryError("the text has no query", remedy="write SELECT .. FROM .., or INSERT INTO a sink")
        self._queries: dict[str, FedQuery] = {}
        for each in planned:
            name = _name(each, self._queries)
            self._queries[name] = FedQuery(each, name)
        self._definitions = _definitions(self._catalogue)
        self._run = FedRun(list(self._queries.values()), self._definitions, self._clock)
        weakref.finalize(self, self._run.close)
        self._run.drain()
        given = inputs or {}
        for name in sorted(given, key=lambda name: self.definition(name).time is not None):
            self.send(name, given[name])

    # --- what the test does ------------------------------------------------------------------------------------------

    def send(self, name: str, text: str) -> None:
        """These rows of an input arrive, together; the answer goes on as far as that allows.

        Of a stream with time = 'arrival' each row arrives at the time that is written; the clock goes on to it.
        """
        self.arrive(name, self.read(name, text))

    def advance(self, duration: str) -> None:
        """The clock goes on, and nothing comes: what expires in that time is emitted.

        It takes streams with time = 'arrival' and those with a heartbeat on; those that have been silent for their idle
        time are left behind.
        """
        micros = parse_duration(duration)
        if micros is None:
            raise OptionError(f"'{duration}' is no duration", remedy="write a number and a unit, such as '30 seconds'")
        self._sleep(micros)

    def restart(self) -> None:
        """Everything is forgotten, and read back from the checkpoint, as after a crash."""
        self._run.restart()

    def end(self, *names: str) -> None:
        """These inputs have ended; without names, all of them."""
        self._run.end([self.definition(name).name.lower() for name in names])

    # --- what the test sees ------------------------------------------------------------------------------------------

    def answer(self, of: str | None = None) -> Answer:
        """What has come out so far; `of` names the sink where there are several queries."""
        return self._queries[self._name(of)].answer(self._definitions, self._times)

    def progress(self, of: str | None = None) -> str | None:
        """Every instant before it is final. None: not before each input has said something; 'the end': for good."""
        instant = self._run.statuses()[self._name(of)].progress
        return None if instant == BEGINNING else "the end" if instant == FOREVER else self._times.show(instant)

    def held_back_by(self, of: str | None = None) -> str | None:
        """The input that the answer waits for."""
        status = self._run.statuses()[self._name(of)]
        name = None if status.progress == FOREVER else status.held_back_by
        return None if name is None else self.definition(name).name

    # --- in parts ----------------------------------------------------------------------------------------------------

    def inputs(self) -> list[Definition]:
        """What the queries read, and a test gives."""
        read = [each.name for status in self._run.statuses().values() for each in status.inputs if each.name != ONE_ROW]
        return [self.definition(name) for name in dict.fromkeys(read)]

    def definition(self, name: str) -> Definition:
        """What the text declares by this name."""
        definitions = self._definitions
        definition = definitions.get(name.lower())
        if definition is None:
            close = difflib.get_close_matches(name.lower(), definitions, n=3, cutoff=0.4) or sorted(definitions)
            raise SourceError(f"the text declares no stream or table '{name}'", remedy=f"there is {', '.join(close)}")
        return definition

    def read(self, name: str, text: str) -> list[Given]:
        """The rows of a text, which need not arrive at once."""
        return read_rows(self.definition(name), text, self._times)

    def arrive(self, name: str, rows: Sequence[Given]) -> None:
        """Send rows that have been read."""
        definition = self.definition(name)
        if not (isinstance(definition, StreamDefinition) and definition.arrival_time):
            self._push(definition, rows)
            return
        for row in rows:
            assert row.at is not None
            now = self._clock.now()
            if row.at < now:
                raise SourceError(
                    f"a row of '{definition.name}' arrives at {self._times.show(row.at)}, and it is"
                    f" {self._times.show(now)} already",
                    remedy="write rows in the order of their arrival",
                )
            self._sleep(row.at - now)
            self._push(definition, [row])

    def _sleep(self, micros: int) -> None:
        if micros:
            self._clock.sleep(micros)
            self._run.drain()

    def _push(self, definition: Definition, rows: Sequence[Given]) -> None:
        self._run.push(definition.name.lower(), batch_of(definition.columns, rows))

    def _name(self, of: str | None) -> str:
        """The name of the query that is meant."""
        if of is None and len(self._queries) == 1:
            return next(iter(self._queries))
        name = None if of is None else of.lower()
        if name not in self._queries:
            what = f"no query writes to '{of}'" if of is not None else f"there are {len(self._queries)} queries"
            raise OptionError(what, remedy=f"ask for one of {', '.join(self._queries)}")
        return name


def _definitions(catalogue: Catalogue) -> dict[str, Definition]:
    """The streams and tables by their names, none of which drops late rows unseen: a test wants to know of them."""
    for name, definition in catalogue.relations.items():
        if isinstance(definition, StreamDefinition | TableDefinition) and definition.late == "drop":
            catalogue.relations[name] = replace(definition, late="dead_letter")
    return {
        name: definition
        for name, definition in catalogue.relations.items()
        if isinstance(definition, StreamDefinition | TableDefinition)
    }


def _text_of(query: str | Path) -> str:
    if isinstance(query, str):
        return query
    try:
        return query.read_text(encoding="utf-8-sig")
    except OSError as error:
        what = error.strerror or str(error)
    except UnicodeDecodeError:
        what = "it is not UTF-8 text"
    raise SourceError(f"cannot read '{os.fspath(query)}': {what}", remedy="give the path of a query file")


def _name(planned: Planned, taken: Collection[str]) -> str:
    """The name of a query as a run calls it: by its sink, or by its number."""
    name = "" if planned.sink is None else planned.sink.name.lower()
    return name if re.fullmatch(r"\w+", name) and name not in taken else f"query-{len(taken) + 1}"
