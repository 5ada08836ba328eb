"""The key of an answer: columns whose values name a row of it, because no snapshot has two rows that agree on them.

Only what the plan proves counts: a GROUP BY, DISTINCT, one row a partition, a table that is kept by its primary key.
NULL is a value like any other here, as in GROUP BY. An empty key: no snapshot has more than one row.
"""

from __future__ import annotations

from transom.kernels.operator import Key, Operator


def answer_key(root: Operator) -> Key | None:
    """The columns of a key, by their index; None where there is none that the plan proves."""
    return root.tactic.answer_key(root, [answer_key(child) for child in root.inputs])
