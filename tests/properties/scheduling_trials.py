"""Queries on one join whose work is put in order, driven by hand: rows, a clock, queries that come and go."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from random import Random

from tests.properties.queries import DECLARATIONS, FUNCTIONS
from tests.properties.sharing_queries import SharedJoins
from tests.properties.streams import inputs
from tests.run_locally import Answer, Push, Rows, batch_of
from transom.core.time import FOREVER, UNBOUNDED, from_datetime
from transom.cql.statements import parse_statements
from transom.pipeline.consumer import ConsumerSpec
from transom.pipeline.scheduled import ScheduledGroup
from transom.pipeline.scheduled_state import Shed
from transom.plan.algebra import Node, Stream
from transom.plan.catalogue import Catalogue, QueryStatement, StreamDefinition
from transom.planner.scheduling import Schedule, schedule_of
from transom.planner.sharing import length_of
from transom.planner.sharing_shape import Sharable, sharable
from transom.program.clock import HeldClock
from transom.runtimes.reference.evaluate import evaluate
from transom.runtimes.reference.history import History, RelationHistory, StreamHistory, difference


class TickingClock(HeldClock):
    """Each look at it takes its time."""

    def __init__(self, micros: int) -> None:
        super().__init__()
        self._micros = micros

    def now(self) -> int:
        self.sleep(self._micros)
        return super().now()


@dataclass
class AskedQuery:
    """A query, what has come out of it, and from where to where it was there."""

    text: str
    member: ConsumerSpec
    query: Node
    answer: Answer
    begin: int | None = None
    left: int | None = None

    @property
    def counts(self) -> bool:
        return "COUNT" in self.text

    @property
    def windows(self) -> tuple[int, int]:
        left, right = (length_of(window, 1_000_000) for window in self.member.of_join.windows)
        return left, right


@dataclass
class Trial:
    catalogue: Catalogue
    rows: dict[str, Rows]
    waiting: list[AskedQuery]
    schedule: Schedule
    clock: TickingClock
    random: Random
    here: list[AskedQuery] = field(default_factory=list)
    gone: list[AskedQuery] = field(default_factory=list)

    def __post_init__(self) -> None:
        count = self.random.randint(1, len(self.waiting))
        self.here, self.waiting = self.waiting[:count], self.waiting[count:]
        self.shed: dict[str, Shed] = {}
        """What queries have lost, where somebody reported it."""
        self.group = self._made()

    def _made(self) -> ScheduledGroup:
        members = [requested.member for requested in self.here]
        return ScheduledGroup(members, self.catalogue, self.schedule, self.clock.now)

    # --- running -----------------------------------------------------------------------------------------------------

    def push(self, push: Push) -> None:
        definition = self.catalogue.relations[push.name]
        assert isinstance(definition, StreamDefinition)
        if push.rows:
            self.group.subplan.push(push.name, batch_of(definition.columns, push.rows))
        if push.end:
            self.group.subplan.end(push.name)
        self.advance()

    def advance(self) -> None:
        self.group.advance(lambda index, rows: self.here[index].answer.add(rows))

    def finish(self) -> None:
        for name in self.rows:
            self.push(Push(name, [], end=True))
        while not self.group.at_rest:
            self.advance()
            self.check_ledgers()
        assert self.group.finished
        self.group.close()

    # --- coming and going --------------------------------------------------------------------------------------------

    def come(self) -> None:
        requested = self.waiting.pop()
        requested.begin = self.group.subplan.state.gates.frontier
        self.group.add(requested.member)
        self.here.append(requested)

    def go(self, which: AskedQuery) -> None:
        which.left = self.group.progress_of(which.member.name)
        self.group.remove(which.member.name)
        self.here.remove(which)
        self.gone.append(which)

    def restart(self) -> None:
        """In another process, perhaps with other queries."""
        saved, frontier = self.group.snapshot(), self.group.subplan.state.gates.frontier
        last = {requested.member.name: self.group.progress_of(requested.member.name) for requested in self.here}
        self.group.close()
        if len(self.here) > 1 and self.random.random() < 0.2:
            self.here[0].left = last[self.here[0].member.name]
            self.gone.append(self.here.pop(0))
        if self.waiting and self.random.random() < 0.2 and frontier != FOREVER:
            self.waiting[-1].begin = frontier
            self.here.append(self.waiting.pop())
        self.random.shuffle(self.here)
        self.group = self._made()
        self.group.restore(saved)

    # --- checks ------------------------------------------------------------------------------------------------------

    def ledgers(self) -> list[tuple[int, int, int, int]]:
        ledgers = [self.group.work.ledger_of(requested.member.name) for requested in self.here]
        return [(each.due, each.processed, each.shed, each.pending) for each in ledgers]

    def check_ledgers(self) -> None:
        assert all(due == processed + shed + pending for due, processed, shed, pending in self.ledgers())

    def expected(self, requested: AskedQuery) -> History:
        """The reference, of that query alone, whose time begins when it came."""
        options = dict(self.catalogue.options)
        if requested.begin is not None:
            options["origin"] = requested.begin
        return evaluate(requested.query, Catalogue(self.catalogue.relations, {}, options), self.rows)

    def check(self, requested: AskedQuery, until: int | None) -> int:
        if until is not None and requested.member.emit == "lifetimes" and not requested.answer.stream:
            return 0  # a lifetime is not told before it is over
        expected = self.expected(requested)
        reported = difference(expected, requested.answer.history(), until=until)
        assert reported is None, (
            f"{requested.text} since {requested.begin}\n(first: reference, second: the group)\n{reported}"
        )
        return len(expected.instants)

    def check_partial(self, requested: AskedQuery) -> int:
        """Nothing is there that should not be, and every pair that is missing began with a lost row; how many are."""
        lost = self._lost(requested)
        expected, given = self.expected(requested), requested.answer.history()
        if isinstance(expected, StreamHistory) and isinstance(given, StreamHistory):
            gone = 0
            for instant in {*expected.instants, *given.instants}:
                right, there = Counter(expected.rows(instant)), Counter(given.rows(instant))
                assert not there - right, f"{requested.text}: pairs that there are not, at {instant}"
                missing = right - there
                assert not missing or instant in lost, f"{requested.text}: {missing} at {instant}, lost was {lost}"
                gone += sum(missing.values())
            return gone
        assert isinstance(expected, RelationHistory) and isinstance(given, RelationHistory)
        partial = 0
        for instant in self._instants(requested, expected, given):
            right, there = expected.snapshot(instant), given.snapshot(instant)
            if not requested.counts:
                assert not there - right, f"{requested.text}: pairs that there are not, at {instant}"
            if right != there:
                assert any(t <= instant < t + max(requested.windows) for t in lost), (
                    f"{requested.text}: not right at {instant}"
                )
                partial += 1
        return partial

    def exact_again(self, requested: AskedQuery) -> bool:
        """Whether there was a right answer after the largest window of the last lost row."""
        lost, expected = self._lost(requested), self.expected(requested)
        return bool(lost) and any(instant >= max(lost) + max(requested.windows) for instant in expected.instants)

    def _lost(self, requested: AskedQuery) -> set[int]:
        name = requested.member.name
        shed = self.shed.get(name) or self.group.work.state.accounts[name].shed
        assert (shed.first == shed.last).all()
        return set(shed.first.tolist())

    def _instants(self, requested: AskedQuery, *histories: History) -> set[int]:
        """Where something may change."""
        lost = self._lost(requested)
        instants = {t for history in histories for t in history.instants if t < FOREVER}
        return instants | lost | {t + window for t in lost for window in requested.windows if window < UNBOUNDED}


def trial_of(random: Random, policy: str, overload: str, *, keyed: bool = False) -> Trial:
    """Over a join with equalities if it is `keyed`."""
    generator: SharedJoins = SharedJoins(random, 0) if overload == "block" else PairsAlone(random, keyed)
    generator.equal = (generator.equal or ("k",)) if keyed else ()
    bounds = {"s": random.randint(0, 4), "t": random.randint(0, 4), "u": 0}
    catalogue = Catalogue(functions=FUNCTIONS)
    tick = random.choice(["1 SECOND", "1 SECOND", "1 MICROSECOND"])
    declared = DECLARATIONS.format(bound_s=bounds["s"], bound_t=bounds["t"])
    budget, buffer = random.choice([1, 1, 300, 50_000]), random.choice([1, 2, 5, 5_000 if overload == "block" else 3])
    requests = f"""SET tick = '{tick}'; SET schedule = '{policy}'; SET overload = '{overload}'; SET buffer = {buffer};
        SET step_budget = '{budget} MICROSECONDS';"""
    parse_statements(declared + requests, catalogue)
    rows = {name: some for name, some in inputs(random, bounds).items() if name in generator.streams}
    if random.random() < 0.15:
        catalogue.options["origin"] = from_datetime(random.choice(rows[generator.streams[0]])[0])
    requested: list[AskedQuery] = []
    wanted = random.randint(2, 6)
    while len(requested) < wanted:
        another = request_of(generator, catalogue, len(requested), requested)
        requested = [*requested, another] if another is not None else []
    schedule = schedule_of(requested[0].member.of_join, catalogue)
    assert isinstance(schedule, Schedule), schedule
    clock = TickingClock(random.choice([100, 10_000, 200_000]))
    return Trial(catalogue, rows, requested, schedule, clock, random)


def request_of(
    generator: SharedJoins, catalogue: Catalogue, number: int, others: list[AskedQuery]
) -> AskedQuery | None:
    """A query on the same join as the others; None if there is none: what one asks of pairs may be its own."""
    for _ in range(20):
        text = generator.statement()
        (statement,) = parse_statements(text, catalogue)
        assert isinstance(statement, QueryStatement)
        shape = sharable(statement.query, catalogue)
        assert isinstance(shape, Sharable), f"{text}: {shape}"
        if all(other.member.of_join.join == shape.join for other in others):
            emit = generator.pick(("changes", "changes", "lifetimes"))
            answer = Answer(isinstance(statement.query, Stream), emit)
            return AskedQuery(text, ConsumerSpec(f"q{number}", shape, emit), statement.query, answer)
    return None


class PairsAlone(SharedJoins):
    """Queries whose answers are the pairs, each to be known by its times, or how many there are."""

    def __init__(self, random: Random, keyed: bool) -> None:
        super().__init__(random, 0)
        self.streams = ("s", "t")
        self._keyed = keyed

    def statement(self) -> str:
        short = ("[RANGE 1 SECOND]", "[RANGE 2 SECONDS]", "[RANGE 3 SECONDS]")
        windows = [self.pick((*short, self.shared_window())) for _ in range(2)]
        joined = f"FROM s {windows[0]} AS a, t {windows[1]} AS b WHERE a.k {'=' if self._keyed else '<'} b.k"
        pairs = f"SELECT a.ts AS ats, b.ts AS bts, a.k AS ak, b.k AS bk {joined}"
        return self.pick((f"ISTREAM({pairs});", f"{pairs};", f"SELECT COUNT(*) AS n {joined};"))
