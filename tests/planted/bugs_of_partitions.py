"""Bugs of plans that are laid out over partitions: what travels, who judges it, and what is kept of it."""

from __future__ import annotations

from typing import Final

from tests.planted.bug import Bug

EXCHANGES: Final = (
    Bug(
        "decided_anew_when_memory_is_made_again",
        "pipeline/state_backend.py",
        "partition.step(*_apart(data))",
        "partition.step(_apart(data)[0])",
        "memory that is made again from its log is not the one that was lost",
    ),
    Bug(
        "number_of_a_closed_open_row_id_kept",
        "pipeline/exchange.py",
        "open_ids[theirs[open_here]] = -1",
        "open_ids[theirs[open_here]] = ours[open_here]",
        "a row that comes under a number used before has the open row id of another row, or of none",
    ),
    Bug(
        "senders_share_their_numbers",
        "pipeline/exchange.py",
        "closed += _closed(state, str(sent.sender),",
        'closed += _closed(state, "0",',
        "an end in one partition ends rows that came from another",
    ),
    Bug(
        "end_of_a_union_sent_twice",
        "pipeline/exchange.py",
        "if len(delta.ends.chunks) > 1:",
        "if len(delta.ends.chunks) > 9:",
        "a union of a relation with itself stops the query behind an exchange",
    ),
    Bug(
        "streams_of_partitions_by_time_alone",
        "pipeline/exchange.py",
        "(t,) if alone else (value_ranks(values.columns, len(values)), t)",
        "(t,)",
        "rows of one instant of a derived stream come in an order that depends on the number of partitions",
    ),
    Bug(
        "ended_rows_are_still_somewhere",
        "pipeline/routes.py",
        "head[open_ids[i]] = -1",
        "head[open_ids[i]] = head[open_ids[i]]",
        "an end is notified of rows that went elsewhere under a number that is used again",
    ),
    Bug(
        "later_levels_hear_of_one_task",
        "pipeline/seen.py",
        'total["greatest"] = _greater(total["greatest"], seen["greatest"])',
        'total["greatest"] = seen["greatest"]',
        "where time is on later stages depends on which task was the last",
    ),
    Bug(
        "equal_rows_emitted_in_two_partitions",
        "planner/fragments.py",
        "if part.single or part.free:\n            return part.single",
        "if part.single or part.free:\n            return True",
        "a row that leaves one partition and enters another at once is reported as two changes",
    ),
    Bug(
        "filtered_rows_sent_to_the_wrong_partition",
        "pipeline/pushed_prefix.py",
        "[positions[part] for part in by_partition]",
        "[part for part in by_partition]",
        "behind a filter other rows are sent than were meant",
    ),
    Bug(
        "rejected_change_of_another_partition",
        "pipeline/partitions.py",
        "here = changes.positions[partition.number][unmatched[channel.name]]",
        "here = unmatched[channel.name]",
        "in several partitions of a process another change is rejected than the one that met no row",
    ),
    Bug(
        "slides_of_the_last_partition_alone",
        "pipeline/partitions.py",
        "slides[window] = max(last, slides.get(window, last))",
        "slides[window] = last",
        "snapshots over slides end with the last row of one partition",
    ),
    Bug(
        "ties_of_partitions_left_as_they_came",
        "pipeline/merge.py",
        "order[tied] = some[np.lexsort((ranks, index[tied]))]",
        "order[tied] = some",
        "rows of one instant are reported in an order that depends on the number of partitions",
    ),
    Bug(
        "null_key_spread_by_what_lies_beneath",
        "kernels/spread.py",
        "hashes[null] = 0",
        "hashes[:0] = 0",
        "rows with a NULL key do not meet",
    ),
)

GATES: Final = (
    Bug(
        "unwanted_row_is_never_late",
        "pipeline/packer.py",
        "if channel.accounts and wanted is not None and t is not None:",
        "if channel.accounts and wanted is not None and t is None:",
        "rows that a filter takes away on their way are missing in the ledger and in the dead-letter table",
    ),
    Bug(
        "every_channel_accounts",
        "pipeline/layout.py",
        "accounts = source not in accounted",
        "accounts = True",
        "rows of a stream that is read twice are counted twice",
    ),
    Bug(
        "late_row_begins_the_query",
        "pipeline/partition_inputs.py",
        "admitted = times[times >= watermark]",
        "admitted = times",
        "time begins with a row that is late by what another task read",
    ),
    Bug(
        "unfit_row_is_never_late",
        "pipeline/admission.py",
        "late &= np.isin(codes, (FIT, *UNFIT))",
        "late &= codes == FIT",
        "a late change without a key is late or rejected, depending on how the input was cut",
    ),
    Bug(
        "every_gate_stamps_for_itself",
        "pipeline/partition_inputs.py",
        'if (source, about["sender"]) not in stamps:',
        "if source:",
        "a row that two read has two times of arrival",
    ),
    Bug(
        "silent_stream_waits_for_itself",
        "pipeline/input_gates.py",
        "source = self.inputs[name].definition.idle, self.source_of[name]",
        "source = self.inputs[name].definition.idle, name",
        "a silent stream that is read twice holds back all the others for ever",
    ),
    Bug(
        "frames_of_a_task_in_any_order",
        "pipeline/fragment_partition.py",
        'about.get("sender", 0), about.get("number", 0)',
        'about.get("sender", 0), 0',
        "rows of one instant lose their order when a task sends several frames, and ROWS counts other rows",
    ),
)

STEPS: Final = (
    Bug(
        "open_rows_in_slices",
        "pipeline/fragment_partition.py",
        "return sources and not any(channel.exchange.sender.open_ends",
        "return sources or not any(channel.exchange.sender.open_ends",
        "what others send is taken in the first slice of a batch, or again in every one",
    ),
    Bug(
        "uncommitted_memory_is_trusted",
        "pipeline/state_backend.py",
        "header.token = secrets.token_hex(8)",
        "header.token = str(header.first + len(header.parts))",
        "what a step left in one worker is taken for what another worker committed",
    ),
    Bug(
        "arrival_before_the_origin",
        "pipeline/partition_inputs.py",
        "early = gate.before_origin(t)",
        "early = 0",
        "rows that are stamped on arrival before the origin are taken in partitions, and rejected in one process",
    ),
)
