"""The standing queries of a text as specs for a runtime: what each is called, and where its rows go."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import zip_longest

import pyarrow as pa

from transom.connectors.callback import CallbackSink
from transom.connectors.connector import OpenSink, Sink, SinkDeclaration
from transom.connectors.memory import MemorySink
from transom.connectors.open import open_files, open_sink_of
from transom.connectors.screen import Screen
from transom.core.emit_modes import EMITS
from transom.core.errors import OptionError
from transom.program.checkpoint_folder import run_of
from transom.program.planned import Planned
from transom.program.run import QuerySpec
from transom.program.taps import Taps

Answer = Callable[[Planned, str, pa.Schema], Sink]
"""Makes the sink of a bare query, of the statement, its name and the columns."""


OnRows = Callable[[pa.Table], None]


def handing(on_rows: OnRows | None) -> Answer | None:
    """The answer goes to a function of the program, if there is one."""
    if on_rows is None:
        return None
    sink = CallbackSink(on_rows)
    return lambda planned, name, schema: sink


def check_emit(emit: str) -> None:
    if emit not in EMITS:
        raise OptionError(f"emit cannot be '{emit}'", remedy=f"write {', '.join(EMITS[:-1])} or {EMITS[-1]}")


@dataclass(frozen=True)
class SpecBuilder:
    """Answers of bare queries go to what `answer` makes, otherwise to memory. Rejected rows go to files below the
    folder `dead_letters`, otherwise to the sink `rejected`, if there is one.
    `checkpoint` is the folder of the run. `taps` are put before the sinks, for whoever looks at what comes."""

    screen: Screen
    emit: str
    follow: bool = False
    dead_letters: str | None = None
    rejected: Sink | None = None
    answer: Answer | None = None
    checkpoint: str | None = None
    taps: Taps | None = None

    def specs(self, planned: Sequence[Planned], names: Sequence[str] = ()) -> list[QuerySpec]:
        """A query is called by its sink or its number, unless `names` say otherwise."""
        check_emit(self.emit)
        standing = [query for query in planned if query.standing]
        specs: list[QuerySpec] = []
        for query, given in zip_longest(standing, names):
            name = given or _name(query, [spec.name for spec in specs])
            emit = self.emit if query.sink is None else query.sink.emit
            open_sink = self._sink_maker(query, name)
            open_sink = open_sink if self.taps is None else self.taps.answer(open_sink, query, name)
            spec = QuerySpec(query, name, emit, open_sink, self._dead_letter_maker(query, name))
            for maker in (spec.open_sink, spec.open_dead_letters):
                if maker is not None:
                    maker.check()
            specs.append(spec)
        return specs

    def _sink_maker(self, planned: Planned, name: str) -> OpenSink:
        sink, answer = planned.sink, self.answer
        if sink is not None:
            folder, within = self.checkpoint, planned.catalogue.within
            staging = None if folder is None else os.path.join(folder, f"staged-{name}")
            declared = SinkDeclaration(sink.name, sink.properties, None, staging, within, self.screen, self.follow)
            return open_sink_of(sink, declared, lambda: self._run(name))
        if answer is not None:
            return OpenSink(lambda opening: answer(planned, name, opening.schema))
        return OpenSink(lambda opening: MemorySink(opening.schema, planned.view()))

    def _dead_letter_maker(self, planned: Planned, name: str) -> OpenSink | None:
        rejected = self.rejected if self.taps is None else self.taps.shared(self.rejected)
        if self.dead_letters is not None:
            properties = {"path": os.path.join(self.dead_letters, name, ""), "format": "jsonl"}
            files = open_files(properties, lambda: self._run(f"{name}/rejected"), planned.catalogue.within)
            return files if self.taps is None else self.taps.rejected(files)
        return None if rejected is None else OpenSink(lambda opening: rejected)

    def _run(self, name: str) -> str | None:
        """What the run is called to a sink: each has epochs of its own, and several may keep them in one place."""
        run = None if self.checkpoint is None else run_of(self.checkpoint)
        return None if run is None else f"{run}/{name}"


def _name(planned: Planned, taken: list[str]) -> str:
    """What a query is called in messages and folders: its sink, or its number."""
    name = "" if planned.sink is None else planned.sink.name
    return name if re.fullmatch(r"\w+", name) and name not in taken else f"query-{len(taken) + 1}"
