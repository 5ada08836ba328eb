"""Bugs of joins that queries share."""

from __future__ import annotations

from typing import Final

from tests.planted.bug import Bug

SHARING: Final = (
    Bug(
        "row_leaves_by_count_while_time_holds_it",
        "kernels/shared_join/counted_window.py",
        "te = np.maximum(by_time[:ended], times[self.rows : self.rows + ended])",
        "te = np.minimum(by_time[:ended], times[self.rows : self.rows + ended])",
        "a query by time misses pairs as soon as another one counts few rows",
    ),
    Bug(
        "numbers_begin_anew_with_every_step",
        "kernels/shared_join/counted_window.py",
        "state.seen += fresh",
        "state.seen += 0",
        "a row-count window over a shared join ends rows after the wrong row",
    ),
    Bug(
        "counting_query_sees_rows_before_it_came",
        "kernels/shared_join/narrow_rows.py",
        "mine &= older >= self.begin",
        "mine &= pairs.ta >= self.begin",
        "a query that is added has pairs with rows from before",
    ),
    Bug(
        "open_pair_ended_by_one_row_only",
        "kernels/shared_join/narrow_rows.py",
        "by_count = np.minimum(*(came.ends(at) for came, at in zip(arrived, numbers, strict=True)))",
        "by_count = np.maximum(*(came.ends(at) for came, at in zip(arrived, numbers, strict=True)))",
        "where both sides count rows a pair outlives the first of its rows",
    ),
    Bug(
        "slot_of_a_pair_used_again_too_early",
        "kernels/shared_join/narrow_rows.py",
        "state.slots.give_back(ended[state.sets[ended] == 0])",
        "state.slots.give_back(ended[alive])",
        "a pair ends when another one, long gone, would have",
    ),
    Bug(
        "columns_carried_over_by_place",
        "kernels/shared_join/carry.py",
        "known.get(name, column)",
        "known.get(old.columns[min(new.columns.index(name), len(old.columns) - 1)], column)",
        "after a query has come or gone others show values of another column",
    ),
    Bug(
        "rows_shortened_to_the_new_window_of_the_other_side",
        "kernels/shared_join/carry.py",
        "_carry(side, before, after)",
        "_carry(side, before, new[0])",
        "rows of one side leave too early after a query has gone",
    ),
    Bug(
        "selection_asked_of_one_side_only",
        "planner/sharing_shape.py",
        "above = (*left.predicates, *(_moved(e, width) for e in right.predicates))",
        "above = (*left.predicates, *right.predicates)",
        "a selection on one stream of a shared join is asked of columns of the other",
    ),
    Bug(
        "windows_stay_when_streams_are_turned",
        "planner/sharing_shape.py",
        "windows = (left.window, right.window)",
        "windows = (_side(join.relations[0]).window, _side(join.relations[1]).window)",
        "a query that names the streams the other way round has their windows exchanged",
    ),
    Bug(
        "what_leaves_and_enters_at_once_is_told",
        "kernels/direct_stream.py",
        "                kept[j] = False",
        "                kept[j] = True",
        "changes mention a row that stays as it was",
    ),
    Bug(
        "open_lifetimes_not_told",
        "pipeline/output.py",
        "rows = pa.concat_batches([rows, self.emit.remaining(state)])",
        "rows = pa.concat_batches([rows, self.emit.remaining(state).slice(0, 0)])",
        "rows that are still open at the end are missing from lifetimes",
    ),
    Bug(
        "what_is_due_of_an_answer_waits_for_rows",
        "pipeline/output.py",
        "if is_something(answer) or self.emit.due(state) < step.upto:",
        "if is_something(answer):",
        "a row that ends while nothing comes is not told",
    ),
    Bug(
        "newcomer_in_a_bucket_begins_with_the_others",
        "pipeline/bucket.py",
        "origin = self.consumer.begin",
        "origin = origin",
        "a COUNT that comes to others on Spark has its 0 from long before it came",
    ),
    Bug(
        "shared_join_spread_as_a_grouping_likes",
        "planner/fragments.py",
        "                for part in joining:\n                    slots",
        "                for part in ():\n                    slots",
        "after a query has come on Spark rows no longer meet those that were kept before",
    ),
    Bug(
        "doors_of_a_bucket_open_anew",
        "pipeline/migration.py",
        "state = replace(state, part=part, consumers=consumers)",
        "state = replace(state, part=part, consumers=consumers, doors=new.state.doors)",
        "rows that waited on Spark while a query came or went are lost",
    ),
    Bug(
        "query_beside_a_join_begins_anew_when_others_come",
        "pipeline/migration.py",
        "consumers = {key: state.consumers.get(key, fresh) for key, fresh in new.state.consumers.items()}",
        "consumers = new.state.consumers",
        "when a query comes on Spark the groups that others have counted begin at nothing",
    ),
    Bug(
        "query_above_a_join_begins_anew_when_others_come",
        "pipeline/migration.py",
        "for bucket in range(0 if name in old.numbers else new.buckets_of(number)):",
        "for bucket in range(0 if name[0] == SHARED else new.buckets_of(number)):",
        "after a query has come on Spark rows that a row count ends stay for ever",
    ),
    Bug(
        "numbered_rows_of_a_join_counted_anew",
        "pipeline/migration.py",
        "if operator is window and note.length is None:",
        "if operator is trunk and note.length is None:",
        "a row-count window over a shared join ends rows after the wrong row once a query has come or gone",
    ),
    Bug(
        "columns_of_a_shared_join_read_as_if_alone",
        "pipeline/consumer.py",
        "found = {PAIRS: (*(node.places.index(place) for place in mine.places), len(node.places))}",
        "found = {PAIRS: (*range(len(mine.places)), len(node.places))}",
        "a query shows values of columns that another one asked for",
    ),
    Bug(
        "silence_of_a_query_beside_a_join_unheard",
        "pipeline/bucket.py",
        "due = min(due, branch.due)",
        "due = min(due, due)",
        "on Spark a row of a query on a shared join that ends in silence is told when the next row comes",
    ),
    Bug(
        "first_memories_forgotten_after_a_lost_worker",
        "pipeline/keeper.py",
        "known = None if header.memory else start()",
        "known = None if header.memory or header.parts else start()",
        "a worker that dies after a query came or went takes the windows of all with it",
    ),
)
