"""The physical plan: a tree of operators, each with the tactic that runs it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar
from typing import Literal as OneOf

from transom.core.schema import Schema
from transom.core.structural import Structural
from transom.kernels.kernel import Kernel
from transom.plan.algebra import Node, Relation, StreamScan, TableScan
from transom.plan.catalogue import Catalogue
from transom.plan.expression import ColumnRef, Expression
from transom.plan.same_key import same_key


@dataclass(frozen=True)
class Site:
    """Where the kernels of an operator are to run: in one of so many partitions, over instants that are a tick apart.

    `shown_as`: the form of the answer that alone sees what an operator gives, and shows less of it than could be given
    (see `planner/final.py`): what an aggregate gives at the end of a step, or what a join shows once it is over.
    """

    catalogue: Catalogue
    tick: int
    partitions: int = 1
    shown_as: str = ""


Key = tuple[int, ...]
"""Columns whose values name a row: no snapshot has two rows that agree on them (see `planner/answer_key.py`)."""


@dataclass(frozen=True)
class Alive:
    """The rows of a relation: the streams of which they are alive forever, and whether all of them end by a window."""

    forever: tuple[str, ...] = ()
    end: bool = False

    @staticmethod
    def streams(below: Sequence[Alive]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for rows in below for name in rows.forever))

    @staticmethod
    def joined(below: Sequence[Alive]) -> Alive:
        """Rows that are alive while rows of all inputs are."""
        return Alive(end=True) if any(rows.end for rows in below) else Alive.united(below)

    @staticmethod
    def united(below: Sequence[Alive]) -> Alive:
        return Alive(Alive.streams(below), bool(below) and all(rows.end for rows in below))


@dataclass(frozen=True)
class Tactic(ABC):
    """A way to run an operator. Its class has what it is, an instance is what was chosen for one operator and why.

    The class names the `nodes` that it runs, the classes of the `states` that its kernels start with, and how EXPLAIN
    calls the operator (`title`, where the name of the tactic does not tell). The instance says what is kept and what a
    row costs, and why the others do not run; where it was chosen by `estimates`, microseconds a row of each tactic,
    they rest on what is named there. What others have to know of an operator they ask here, never of its class.
    """

    name: ClassVar[str]
    nodes: ClassVar[tuple[type[Node], ...]]
    title: ClassVar[str] = ""
    states: ClassVar[tuple[type, ...]] = ()

    cheap: ClassVar[bool] = False
    """Whether a row takes a microsecond or so. What a row of a join costs nobody knows beforehand."""

    in_one_partition: ClassVar[str | None] = None
    """Why it runs in one partition of a process, however many are there; None where it can be spread."""

    stays_spread: ClassVar[bool] = False
    """Whether it is spread by all its keys, whatever is above it: queries come and go there."""

    keeps: str
    costs: str = "O(1) a row"
    not_taken: tuple[tuple[str, str], ...] = ()
    estimates: tuple[tuple[str, float], ...] = field(default=(), compare=False)
    rests_on: tuple[tuple[str, str], ...] = field(default=(), compare=False)

    @abstractmethod
    def describe(self, operator: Operator) -> str:
        """What the operator does, in a line for people."""

    @abstractmethod
    def kernels(self, operator: Operator, site: Site) -> tuple[Kernel, ...]:
        """What runs it, one after the other; nothing for a stream that is what came in."""

    def with_negative_tuples(self, operator: Operator) -> Tactic:
        """The tactic where rows come twice, as negative tuples: who keeps what is another matter then."""
        return self

    def keys_below(self, operator: Operator, key: Expression) -> tuple[Expression, ...] | None:
        """Keys over the columns of each input, so that the output is spread by `key`; None where that cannot be.

        Unless a tactic knows better, rows are spread by what it needs.
        """
        needed = any(same_key(key, need) for need in operator.needs[0].keys)
        return (key,) * len(operator.needs) if needed else None

    def answer_key(self, operator: Operator, below: Sequence[Key | None]) -> Key | None:
        """A key of its rows that the plan proves, given those of its inputs."""
        return None

    def lasts(self, operator: Operator, below: bool) -> bool:
        """Whether no row that has come ever leaves; `below`: none of the inputs ever does."""
        return False

    def alive(self, operator: Operator, below: Sequence[Alive]) -> Alive:
        """How long its rows live, given those of its inputs. Streams have no rows alive."""
        return Alive.united(below) if isinstance(operator.node, Relation) else Alive()

    def grows_by(self, operator: Operator) -> str | None:
        """What it keeps more and more of, over rows that never end; None if it does not grow with them."""
        return None if self.keeps == "nothing" else "rows"

    def counts_rows(self, operator: Operator) -> bool:
        """Whether the order of rows of one instant matters to it."""
        return False


@dataclass(frozen=True)
class JoinKeys:
    """left[i] = right[i] (over the columns of their side), and what else must hold of a pair."""

    left: tuple[Expression, ...]
    right: tuple[Expression, ...]
    residual: Expression | None


@dataclass(frozen=True)
class Partitioning:
    """How the rows of an input may be spread over partitions: in any way, by keys over the columns of that input, or
    not.

    Rows that agree on all keys must meet; so rows spread by some of the keys, or by one of them, meet as well. The
    inputs of one operator have equally many keys, and the keys at one place stand for the same value.
    """

    kind: OneOf["any", "keys", "single"]
    keys: tuple[Expression, ...] = ()

    def __str__(self) -> str:
        return f"by ({', '.join(str(key) for key in self.keys)})" if self.kind == "keys" else self.kind


def column(schema: Schema, index: int) -> ColumnRef:
    return ColumnRef(index, schema[index].type, schema[index].name)


ANY = Partitioning("any")
SINGLE = Partitioning("single")


@dataclass(frozen=True)
class Operator(Structural):
    """A node with the tactic that runs it. Equal operators are the same operator and run once.

    `needs` says how the rows of each input may be spread; a scan has one, for the rows of its source. `negative`: rows
    come twice, as negative tuples, instead of once with a lifetime. `sealed`: all rows that meet in it enter at one
    instant and stay, so it remembers nothing from step to step. `written` are expressions of the query that its node
    has in another form, for whoever shows what it comes from.
    """

    node: Node
    tactic: Tactic
    inputs: tuple[Operator, ...] = ()
    keys: JoinKeys | None = None
    needs: tuple[Partitioning, ...] = field(default=(), compare=False)
    ends_grow: bool = field(default=False, compare=False)
    open_ends: bool = field(default=False, compare=False)
    negative: bool = field(default=False, compare=False)
    sealed: bool = field(default=False, compare=False)
    written: tuple[Expression, ...] = field(default=(), compare=False, repr=False)

    @property
    def schema(self) -> Schema:
        return self.node.schema

    @property
    def kind(self) -> str:
        return type(self.node).__name__

    @property
    def ends_known(self) -> bool:
        """Whether every row knows its end when it comes."""
        return not self.open_ends and not self.negative

    def walk(self) -> Iterator[Operator]:
        """The operator and all below it, each once, children before parents."""
        seen: set[int] = set()
        order: list[Operator] = []

        def visit(operator: Operator) -> None:
            if id(operator) in seen:
                return
            seen.add(id(operator))
            for child in operator.inputs:
                visit(child)
            order.append(operator)

        visit(self)
        return iter(order)


def all_columns(operator: Operator) -> Partitioning:
    """Rows of an operator that agree on everything meet."""
    schema = operator.schema
    return Partitioning("keys", tuple(column(schema, i) for i in range(len(schema))))


def scanned(operator: Operator) -> str:
    """The name of the stream or table that a scan reads."""
    assert isinstance(operator.node, StreamScan | TableScan)
    return operator.node.name.lower()
