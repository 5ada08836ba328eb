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
        "kernels/slide_join/turn.py",
        "work.attempt += 1",
        "work.attempt += 0",
        "nobody can tell the rows of an attempt that was void from those of the next",
    ),
    Bug(
        "a_marker_from_every_bucket",
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
)
