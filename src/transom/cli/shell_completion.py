"""How a word that is begun in the shell can go on."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from transom.cli.shell_text import SHOWN
from transom.plan.catalogue import Catalogue, ViewDefinition
from transom.plan.functions import AGGREGATES, FUNCTIONS
from transom.plan.options import OPTIONS

_WORDS: Final = (
    "CREATE STREAM TABLE VIEW SINK WITH WATERMARK FOR PRIMARY KEY INSERT INTO SELECT DISTINCT FROM WHERE GROUP BY "
    "HAVING AS ON USING JOIN LEFT RIGHT FULL OUTER CROSS UNION ALL EXCEPT INTERSECT AND OR NOT IN EXISTS BETWEEN LIKE "
    "IS NULL CASE WHEN THEN ELSE END CAST INTERVAL RANGE ROWS SLIDE PARTITION UNBOUNDED NOW ISTREAM DSTREAM RSTREAM "
    "EXPLAIN ANALYZE SET SHOW STOP HELP QUIT SECOND MINUTE HOUR DAY TIMESTAMP VARCHAR INTEGER BIGINT DOUBLE BOOLEAN "
    "DATE DECIMAL"
).split()


def completions(before: str, catalogue: Catalogue, running: Iterable[int] = ()) -> list[str]:
    """The words that the text before the cursor can go on with. Names stand before words of the language.

    >>> completions("show s", Catalogue())
    ['STREAMS', 'SINKS']
    >>> completions("stop ", Catalogue(), [1, 3])
    ['1', '3', 'ALL']
    >>> completions("sel", Catalogue())
    ['select']
    """
    last_word = re.search(r"\w*$", before)
    begun = last_word[0] if last_word else ""
    command = re.fullmatch(r"\s*(show|stop)\s+\w*", before, re.IGNORECASE)
    if command is not None:
        choices = list(SHOWN) if command[1].lower() == "show" else [*map(str, running), "ALL"]
        return [word for word in choices if word.lower().startswith(begun.lower())]
    if not begun:
        return []
    names = [word for word in _names(catalogue) if word.lower().startswith(begun.lower())]
    functions = [name.upper() for name in (*AGGREGATES, *(f.name for f in FUNCTIONS)) if name.isidentifier()]
    words = [word for word in (*_WORDS, *functions) if word.lower().startswith(begun.lower())]
    cased = [word.lower() if begun.islower() else word for word in words]
    return list(dict.fromkeys([*names, *sorted(cased)]))


def _names(catalogue: Catalogue) -> list[str]:
    """All names that were declared, columns after what has them."""
    names = [definition.name for definition in (*catalogue.relations.values(), *catalogue.sinks.values())]
    for definition in catalogue.relations.values():
        names += (definition.query.schema if isinstance(definition, ViewDefinition) else definition.columns).names
    return list(dict.fromkeys([*names, *OPTIONS]))
