"""Queries that ask for work to wait, with SET schedule or SET overload, where no work can wait."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from transom.core.errors import OptionError
from transom.plan.options import OPTIONS
from transom.planner.statistics import Machine
from transom.program.planned import Planned

Where = Callable[[], Machine]
"""Says where queries run, if somebody wants to know."""


@dataclass(frozen=True)
class NotPutOff:
    """An option that cannot have its way."""

    option: str
    value: str

    @property
    def reason(self) -> str:
        """
        >>> print(NotPutOff("schedule", "mqt").reason)
        on Spark each batch does all its work, and SET schedule = 'mqt' is not supported; run it in this process
        """
        return (
            f"on Spark each batch does all its work, and SET {self.option} = '{self.value}' is not supported;"
            " run it in this process"
        )

    @property
    def error(self) -> OptionError:
        return OptionError(
            f"SET {self.option} = '{self.value}' has no use on Spark: each batch does all its work, and nothing waits",
            remedy=f"SET {self.option} = '{OPTIONS[self.option].default}', or run the queries in this process"
            " (Session without spark=.., or --runtime local)",
        )


def not_put_off(planned: Planned, where: Where) -> NotPutOff | None:
    """What the query asks for and cannot have there; None if it can have everything."""
    for option in ("schedule", "overload"):
        default = OPTIONS[option].default
        value = planned.catalogue.options.get(option, default)
        if value != default:
            return None if where().puts_off else NotPutOff(option, value)
    return None


def check_put_off(planned: Sequence[Planned], where: Where) -> None:
    """Raises an error where a query of these asks for work to wait that cannot."""
    for one in planned:
        unsupported = not_put_off(one, where)
        if unsupported is not None:
            raise unsupported.error
