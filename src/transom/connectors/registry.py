"""Connectors by their names: those that come with Transom, those that a program registers, and those of packages that
are installed (entry points of the group `transom.connectors`), which are loaded when a query names them."""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import Final

from transom.connectors.connector import Connector
from transom.core.errors import OptionError

GROUP: Final = "transom.connectors"

_CONNECTORS: Final[dict[str, Connector]] = {}


def register(name: str, connector: Connector, *, replace: bool = False) -> None:
    """Let connector = 'name' mean this one, in this process and in the tasks that its queries start.

    `replace` is for those who define it anew, as in a notebook.
    """
    key = name.lower()
    if key in _CONNECTORS and _CONNECTORS[key] != connector and not replace:
        raise OptionError(f"there is a connector '{key}' already", remedy="choose another name, or say replace=True")
    _CONNECTORS[key] = connector


def find_connector(properties: dict[str, str], owner: str, *, sink: bool) -> Connector:
    """The connector of a stream, table or sink; one that can do what is asked of it."""
    given = properties.get("connector")
    if given is None:
        raise OptionError(
            f"'{owner}' does not say where it is", remedy="write WITH (path = ..) for files, or connector = '..'"
        )
    name = given.lower()
    connector = _CONNECTORS.get(name) or _installed(name)
    if connector is None or (connector.sink if sink else connector.source) is None:
        able = "" if connector is None else " to write to" if sink else " to read from"
        names = [f"'{each}'" for each in _names(sink)]
        raise OptionError(
            f"there is no connector '{given}'{able}", remedy=f"connectors are {', '.join(names[:-1])} and {names[-1]}"
        )
    return connector


def _installed(name: str) -> Connector | None:
    for entry in entry_points(group=GROUP):
        if entry.name.lower() == name:
            try:
                connector = entry.load()
            except Exception as error:  # of a package that is not ours
                raise OptionError(
                    f"connector '{name}' cannot be loaded from {entry.value}: {error}",
                    remedy="install what it needs, or write to whoever made it",
                ) from error
            if not isinstance(connector, Connector):
                raise OptionError(f"{entry.value} is no connector", remedy="let it be a transom.connectors.Connector")
            return _CONNECTORS.setdefault(name, connector)
    return None


def _names(sink: bool) -> list[str]:
    """The names of all connectors that can be written, also of installed ones, which nobody has loaded yet."""
    able = {name for name, each in _CONNECTORS.items() if (each.sink if sink else each.source) is not None}
    able.discard("one_row")  # what SELECT without FROM reads
    return sorted(able | {entry.name.lower() for entry in entry_points(group=GROUP)} - _CONNECTORS.keys())
