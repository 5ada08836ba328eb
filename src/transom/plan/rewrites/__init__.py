"""Rewrites that keep every answer: one rule a file, and their order is the list below."""

from __future__ import annotations

from transom.plan.algebra import Node
from transom.plan.rewrites.flatten_joins import flatten_joins
from transom.plan.rewrites.prune_columns import prune_columns
from transom.plan.rewrites.push_filters import push_filters

RULES = (push_filters, flatten_joins, push_filters, prune_columns)


def rewrite(query: Node) -> Node:
    """The query after all rules, in order."""
    for rule in RULES:
        query = rule(query)
    return query
