"""Bugs of joins that are reported slide by slide within a memory budget."""

from __future__ import annotations

from typing import Final

from tests.planted.bug import Bug

SLIDES: Final = (
    Bug(
        "cuts_of_a_share_overlap",
        "kernels/slide_join/combine.py",
        "np.arange(first + cut, last, cuts",
        "np.arange(first, last, cuts",
        "where a share has too many results, some come several times and others never",
    ),
    Bug(
        "columns_of_a_join_below_not_shifted",
        "planner/slide_join.py",
        "replace(each, index=width + i)",
        "replace(each, index=i)",
        "a join above a join reads the columns of its first input instead of those of its own",
    ),
    Bug(
        "slides_a_tick_apart_through_now",
        "planner/slide_join.py",
        "for each in inputs)) <= tick",
        "for each in inputs)) < tick",
        "ISTREAM over slides of a tick emits what equals a row of the slide before",
    ),
    Bug(
        "freed_memory_kept",
        "pipeline/spilling.py",
        "        if self._bounded:",
        "        if not self._bounded:",
        "a process keeps dozens of megabytes beside its budget",
    ),
    Bug(
        "new_rows_joined_twice",
        "kernels/slide_join/combine.py",
        "older[j] if j < i else alive[j]",
        "alive[j]",
        "a result of two rows of the same slide is reported twice",
    ),
    Bug(
        "result_outlives_its_oldest_member",
        "kernels/slide_join/combine.py",
        "min(death, run.te)",
        "max(death, run.te)",
        "results are merged into slides in which a member of theirs is gone",
    ),
    Bug(
        "null_keys_join",
        "kernels/slide_join/spec.py",
        "if null.any():",
        "if null.all():",
        "rows with a NULL in the key match each other",
    ),
    Bug(
        "reused_what_was_not_stored",
        "kernels/slide_join/labour.py",
        "state.covered = work.stores",
        "state.covered = True",
        "after a full join that stored nothing, the next slide has its new results alone",
    ),
    Bug(
        "shares_overlap",
        "kernels/slide_join/sorted_run.py",
        "return int(np.searchsorted(hashes, edges[0])), last",
        "return 0, last",
        "a join in shares reports results again",
    ),
    Bug(
        "rows_of_slides_put_off_forgotten",
        "kernels/slide_join/turn.py",
        "p.te <= following and not any(p.alive(at) for at in needed)",
        "p.te <= following",
        "what a slide that was put off needs is gone when there is time for it",
    ),
    Bug(
        "attempts_not_told_apart",
        "kernels/slide_join/memory.py",
        "self.attempt += 1",
        "self.attempt += 0",
        "nobody can tell the rows of an attempt that was void from those of the next",
    ),
    Bug(
        "a_marker_from_every_partition",
        "kernels/slide_join/marks.py",
        "wanted[marks[kept]] = True",
        "wanted[marks] = True",
        "a slide is called complete more than once",
    ),
    Bug(
        "file_of_a_checkpoint_removed_at_once",
        "state/spill.py",
        "self._given_up.append(file.name)",
        "self._unlink(file.name)",
        "a run that was killed cannot go on: its checkpoint refers to a file that is gone",
    ),
    Bug(
        "memory_of_another_join_not_counted",
        "kernels/slide_join/budget.py",
        "return self._emitted() + sum(state.bytes for state, _ in self._members.values())",
        "return self._emitted() + max((state.bytes for state, _ in self._members.values()), default=0)",
        "joins that share a budget have it each",
    ),
    Bug(
        "slides_of_another_join_not_put_off",
        "kernels/slide_join/budget.py",
        "                state.void(part, store)",
        "                state.covered = False",
        "what goes to disk for another join is forgotten in what was stored, and the attempt goes on",
    ),
    Bug(
        "rows_that_wait_in_a_sink_not_counted",
        "kernels/slide_join/budget.py",
        "return sum(held() for held in self.sinks)",
        "return 0",
        "what sinks have in memory comes on top of the budget",
    ),
    Bug(
        "a_slide_under_way_loses_what_it_merges",
        "kernels/slide_join/memory.py",
        "            if under_way is None:",
        "            if True:",
        "a slide that is being merged when a later one is put off lacks its older results",
    ),
    Bug(
        "stored_beyond_a_slide_that_was_put_off",
        "kernels/slide_join/memory.py",
        "                under_way.stores = False",
        "                under_way.stores = True",
        "slides behind one that was put off lack the results that began with it",
    ),
    Bug(
        "merged_results_not_folded",
        "kernels/slide_join/labour.py",
        "            self._give(work, part.read())",
        "            part.read()",
        "groups lack the results that earlier slides have stored",
    ),
    Bug(
        "groups_of_a_void_attempt_kept",
        "kernels/slide_join/memory.py",
        "        self.groups = None",
        "        self.groups = self.groups",
        "the results of an attempt that was void are counted again",
    ),
    Bug(
        "groups_spread_by_any_key",
        "planner/slide_join.py",
        "agreed = range(len(node.sources[0].keys)) if node.groups is None else node.groups.agree",
        "agreed = range(len(node.sources[0].keys))",
        "in partitions a group comes in pieces, each with a part of its totals",
    ),
)
