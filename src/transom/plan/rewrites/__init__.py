"""Rewrites that keep every answer: one rule a file, and their order is the list below.

A view that is used twice is one node with two above it, and equal nodes are made one between the rules; a rule does
each node once for each thing that is asked of it. So a rewrite takes as long as there are different nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from transom.plan.algebra import Node
from transom.plan.rewrites.flatten_joins import flatten_joins
from transom.plan.rewrites.join_frames import join_frames
from transom.plan.rewrites.join_sub_queries import join_sub_queries
from transom.plan.rewrites.prune_columns import prune_columns
from transom.plan.rewrites.push_filters import push_filters

JOINING = (join_frames, join_sub_queries)
RULES = (*JOINING, push_filters, flatten_joins, push_filters, prune_columns)


def rewrite(query: Node) -> Node:
    """The query after all rules, in order; in it equal nodes are the same object."""
    return _after(RULES, query)


def only_joined(query: Node) -> Node:
    """The query after the rules that leave views as they are: sub-queries and frames have become joins of them."""
    return _after(JOINING, query)


def _after(rules: Sequence[Callable[[Node], Node]], query: Node) -> Node:
    query = _with_equal_nodes_once(query)
    for rule in rules:
        query = _with_equal_nodes_once(rule(query))
    return query


def _with_equal_nodes_once(query: Node) -> Node:
    made: dict[int, Node] = {}
    unique: dict[Node, Node] = {}

    def once(node: Node) -> Node:
        same_node = made.get(id(node))
        if same_node is None:
            same = node.over(tuple(once(child) for child in node.inputs))
            same_node = made[id(node)] = unique.setdefault(same, same)
        return same_node

    return once(query)
