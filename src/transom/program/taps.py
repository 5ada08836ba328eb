"""What can be seen of the answers of a session while they come: a tap for each query, and one for dead letters."""

from __future__ import annotations

from collections.abc import Callable

from transom.connectors.connector import Opening, OpenSink, Sink
from transom.connectors.tapped import AnswerTap, TappedSink, tapped
from transom.pipeline.dead_letters import DEAD_LETTER_SCHEMA
from transom.plan.catalogue import QueryStatement
from transom.program.nowhere import Nowhere
from transom.program.planned import Planned

Remember = Callable[[Planned, str, OpenSink], OpenSink]


class Taps:
    """Taps of a run's sinks; nothing is kept before `watch`. `remember` may put something before each sink."""

    def __init__(self) -> None:
        self.answers: dict[str, AnswerTap] = {}
        self.dead_letters = AnswerTap()
        self.dead_letters.opened(Opening(DEAD_LETTER_SCHEMA))
        self.watched = False
        self.remember: Remember | None = None
        self._rejected: tuple[Sink, Sink] | None = None

    def watch(self) -> None:
        """Keep the newest rows of all answers, of those that run and of those that come."""
        self.watched = True
        for tap in (*list(self.answers.values()), self.dead_letters):
            tap.watch()

    def answer(self, open_sink: OpenSink, planned: Planned, name: str) -> OpenSink:
        """The sink of a query of this name, with a tap."""
        tap = self.answers[name] = AnswerTap(planned.view() if isinstance(planned.statement, QueryStatement) else None)
        if self.watched:
            tap.watch()
        if self.remember is not None:
            open_sink = self.remember(planned, name, open_sink)
        return tapped(open_sink, tap)

    def rejected(self, open_sink: OpenSink) -> OpenSink:
        """A tap before a sink of dead letters that one query has for itself."""
        return tapped(open_sink, self.dead_letters)

    def shared(self, sink: Sink | None) -> Sink | None:
        """A tap before a sink of dead letters that queries share: they know by its identity that it is one."""
        if sink is None:
            if not self.watched:
                return None
            sink = _NOWHERE
        if self._rejected is None or self._rejected[0] is not sink:
            self._rejected = sink, TappedSink(sink, self.dead_letters)
        return self._rejected[1]


_NOWHERE = Nowhere()
