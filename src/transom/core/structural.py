"""Frozen dataclasses that make up trees: equal by what is in them, hashed once.

A tree is looked up in dictionaries at every level, and parts of it may stand in it more than once. A hash that is
computed anew each time, and a comparison that enters parts which are the very same object, make the work quadratic in a
tree's size, and exponential in the depth of one that shares its parts.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any, ClassVar


class Structural:
    """A base of frozen dataclasses, whose `__eq__` and `__hash__` it replaces by ones that mean the same.

    >>> from dataclasses import dataclass, field
    >>> @dataclass(frozen=True)
    ... class Leaf(Structural):
    ...     name: str
    ...     note: str = field(default="", compare=False)
    >>> Leaf("a", "one") == Leaf("a", "two"), Leaf("a") == Leaf("b"), len({Leaf("a"), Leaf("a")})
    (True, False, 1)
    """

    _compared: ClassVar[tuple[str, ...] | None] = None

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        # A dataclass leaves alone what its class has already.
        cls.__hash__ = Structural.__hash__  # type: ignore[method-assign]
        cls.__eq__ = Structural.__eq__  # type: ignore[method-assign]
        cls._compared = None

    def _values(self) -> tuple[Any, ...]:
        kind = type(self)
        if kind._compared is None:
            kind._compared = tuple(field.name for field in fields(self) if field.compare)  # type: ignore[arg-type]
        attributes = self.__dict__
        return tuple([attributes[name] for name in kind._compared])

    def __hash__(self) -> int:
        hashed: int | None = self.__dict__.get("_hash")
        if hashed is None:
            hashed = self.__dict__["_hash"] = hash((type(self), self._values()))
        return hashed

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if type(self) is not type(other):
            return NotImplemented
        assert isinstance(other, Structural)
        # Tuples look at identity first, so parts that are the same object are not entered.
        return hash(self) == hash(other) and self._values() == other._values()

    def __getstate__(self) -> dict[str, Any]:
        """Without the hash: those of texts are others in every process; and without the text of the query, which is for
        people."""
        return {name: value for name, value in self.__dict__.items() if name not in ("_hash", "excerpt")}
