"""Bugs of topics: offsets, partitions side by side, transactions and changes."""

from __future__ import annotations

from typing import Final

from tests.planted.bug import Bug

KAFKA: Final = (
    Bug(
        "partitions_share_a_watermark",
        "pipeline/admission.py",
        "return self if partition is None else self.partitions[partition]",
        "return self",
        "a partition that is read faster makes rows of the others late",
    ),
    Bug(
        "an_idle_partition_holds_the_others_back",
        "pipeline/admission.py",
        "raised = [partition for partition in fell if marks[partition] < reached]",
        "raised = [partition for partition in fell if marks[partition] > reached]",
        "a partition without keys stops the query for good",
    ),
    Bug(
        "batches_show_in_the_order_of_an_instant",
        "pipeline/admission.py",
        "if state.partitions:  # rows",
        "if not state.partitions:  # rows",
        "rows of one instant come as the partitions were read",
    ),
    Bug(
        "an_epoch_is_written_again",
        "connectors/kafka_sink.py",
        "if epoch >= self._next:",
        "if True:",
        "after a crash the rows of an epoch are there twice",
    ),
    Bug(
        "the_number_of_an_epoch_is_one_behind",
        "connectors/kafka_sink.py",
        "self._send_number(producer, consumer, epoch + 1)",
        "self._send_number(producer, consumer, epoch)",
        "the last epoch before a crash is there twice",
    ),
    Bug(
        "the_library_is_waited_for",
        "connectors/kafka_sink.py",
        "in_time(lambda: producer.send_offsets_to_transaction(offsets, group, PATIENCE), _ANSWER)",
        "producer.send_offsets_to_transaction(offsets, group, PATIENCE)",
        "a broker that comes back leaves the run where it was, without a word",
    ),
    Bug(
        "a_broker_is_believed_that_forgets",
        "connectors/kafka_sink.py",
        "if self._committed(consumer) <= epoch:",
        "if False:",
        "an epoch is lost of which a broker has said that it is committed",
    ),
    Bug(
        "a_transaction_that_nobody_ends_is_left_open",
        "connectors/kafka_sink.py",
        "self._end_left_open(producer, consumer)\n            self._next",
        "self._next",
        "nobody can read on behind a transaction that a broker forgot to end",
    ),
    Bug(
        "the_latest_is_that_of_every_look",
        "connectors/kafka_source.py",
        "if self._begun is None:",
        "if True:",
        "what comes between two looks is never read",
    ),
    Bug(
        "no_offset_is_an_offset",
        "connectors/kafka_client.py",
        "if OFFSET_INVALID in offset_of.values():",
        "if OFFSET_INVALID in offset_of:",
        "a broker that has just started ends a run that outlived it",
    ),
    Bug(
        "an_older_leader_is_asked_by_again",
        "connectors/kafka_client.py",
        "self._admin = None  # which knows",
        "pass  # which knows",
        "a broker that starts again is asked in a way that it rejects, until the run ends",
    ),
    Bug(
        "what_goes_is_behind_what_comes",
        "connectors/message_changes.py",
        'order = np.argsort(indexes, kind="stable")',
        "order = np.arange(len(indexes))",
        "a row that is changed comes before it goes",
    ),
    Bug(
        "offsets_without_gaps",
        "connectors/kafka_messages.py",
        "if last - first == len(messages) - 1:",
        "if last >= first:",
        "behind a transaction a dead letter names another message",
    ),
    Bug(
        "the_end_of_a_long_name_is_not_looked_at",
        "connectors/json_scan.py",
        "max(0, len(inner) - _WORD)",
        "0",
        "a name of more than eight letters that ends in another case is NULL",
    ),
    Bug(
        "a_run_of_digits_is_missed",
        "connectors/json_scan.py",
        "more = min(length, _RUN - length)",
        "more = length",
        "a decimal of 39 digits overflows without a word",
    ),
)
