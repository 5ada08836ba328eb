"""Planted bugs of the Spark runtime: what is asked of workers before a query begins, and what Spark's errors say."""

from __future__ import annotations

from typing import Final

from tests.planted.bug import Bug

SPARK: Final = (
    Bug(
        "folders_not_asked_for_on_a_cluster",
        "runtimes/spark/runtime.py",
        "check_workers(self._given, needs)",
        "check_workers(self._given)",
        "on machines without a shared disk the state of a query falls apart into pieces, and nobody says so",
    ),
    Bug(
        "package_of_workers_not_looked_at",
        "runtimes/spark/workers.py",
        'if kind == "version" and report != __version__:',
        'if kind == "version" and not report:',
        "workers with another version of Transom compute by other rules",
    ),
    Bug(
        "plan_taken_for_damage",
        "runtimes/spark/worker_errors.py",
        "(*first, *filter(_EXCEPTION.search, rest))",
        "(*first, *rest)",
        "a plan in the text of a failure is reported as its cause",
    ),
    Bug(
        "any_exception_that_names_the_checkpoint_is_damage",
        "runtimes/spark/checkpoint.py",
        'if f"{folder}/" in line and _OF_A_FILE.search(line)]',
        'if f"{folder}/" in line]',
        "whoever is short of file handles is reported to start with an empty checkpoint folder",
    ),
    Bug(
        "a_backlog_taken_for_silence",
        "runtimes/spark/message_source.py",
        "        if plan.ended:\n            batch.at_end.append(name)",
        "        batch.at_end.append(name)",
        "heartbeats speak while there is a backlog, and the rows of it are late",
    ),
    Bug(
        "a_pause_taken_for_the_end",
        "runtimes/spark/message_source.py",
        "if time.monotonic() >= patience and not waits:",
        "if time.monotonic() >= patience:",
        "a run to the end of rows that a program makes ends when they pause, and the rest is missing",
    ),
    Bug(
        "a_spool_that_forgets_its_source",
        "runtimes/spark/prefetcher.py",
        "self._position = self._spool.offset",
        'self._position = {"rows": self._spool.rows}',
        "a source with an offset of its own is read again from its beginning after a restart, and its rows come twice",
    ),
    Bug(
        "a_state_file_removed_with_its_batch",
        "runtimes/spark/spark_log.py",
        "self._gone.append(name)",
        "self._files.remove([name])",
        "a batch that is run again finds the state before it gone",
    ),
    Bug(
        "leftovers_of_other_batches_taken_for_nobodys",
        "runtimes/spark/state_files.py",
        "if each[0] not in named and int(each[1]) < batch - KEPT_BATCHES)",
        "if int(each[1]) < batch - KEPT_BATCHES)",
        "state that is a hundred batches old is lost",
    ),
    Bug(
        "parts_of_a_batch_in_the_order_of_their_coming",
        "connectors/batch_files.py",
        'written = sorted(token["files"], key=lambda file: int(file[0]))',
        'written = token["files"]',
        "files of a batch that is run again have the names of others",
    ),
    Bug(
        "threads_of_a_writer_share_from_the_end",
        "connectors/batch_files.py",
        "begin, end = max(first - at, 0),",
        "begin, end = max(first - at, 1),",
        "the first row of every part is lost where an answer is large",
    ),
    Bug(
        "answers_reported_after_their_room_was_given_away",
        "pipeline/state_backend.py",
        "sent = beside.submit(lambda: [message.closed() for message in send(gone)])",
        "sent = beside.submit(lambda: list(send(gone)))",
        "the times of rows that go on are those of other rows",
    ),
    Bug(
        "stages_counted_from_the_first",
        "runtimes/spark/savepoint.py",
        "stage_number = stop.layout.stage_number[state_backend.Header.of(self.header()).fragment]",
        "stage_number = 1",
        "queries that come to others on several levels find no state",
    ),
    Bug(
        "silent_who_has_not_been_listened_to",
        "pipeline/partition_inputs.py",
        "source in spoke, now if source in quiet else None)",
        "source in spoke, now)",
        "a stream with rows that are still to be read falls idle, and they are late",
    ),
    Bug(
        "who_is_ahead_is_read_on",
        "program/alignment.py",
        "if time is None or time <= self.watermark:\n            return 0",
        "if time is None or time <= self.watermark:\n            return most",
        "slow streams run ahead of the others on Spark, and their rows fill its state",
    ),
    Bug(
        "a_file_of_another_type_read_all_the_same",
        "runtimes/spark/parquet_frame.py",
        "            if not _same(schema.field(column).type, wanted, physical[column]):",
        "            if False:",
        "a column that Spark would widen, or reject, is read by rules of our own",
    ),
    Bug(
        "partitions_in_paths_not_seen",
        "runtimes/spark/parquet_frame.py",
        'if not self._flat and "=" in os.path.dirname(name):',
        'if self._flat and "=" in os.path.dirname(name):',
        "values that stand in the names of folders are NULL",
    ),
    Bug(
        "an_option_that_changes_content_ignored",
        "runtimes/spark/parquet_frame.py",
        "odd = sorted(options.keys() - _LISTING)",
        "odd: list[str] = []",
        "what the user has told Spark of the files is not heeded",
    ),
    Bug(
        "few_cores_share_a_join",
        "runtimes/spark/sizing.py",
        "if tasks < MANY_TASKS if joins else not aggregates",
        "if not (joins or aggregates)",
        "two tasks hand rows to each other for longer than one works on them",
    ),
    Bug(
        "rows_of_a_file_that_was_replaced",
        "runtimes/spark/read_ahead.py",
        "if versioned is None or versioned[0] != self._inputs.source(name).version(split):",
        "if versioned is None:",
        "a batch has the rows of a file that was replaced before it began",
    ),
    Bug(
        "a_growing_file_read_before_its_batch",
        "connectors/files.py",
        'if is_remote(path) or self._format_of(split.partition) != "parquet":',
        "if is_remote(path):",
        "the last line of a file is read before it is whole, and counts as it was",
    ),
    Bug(
        "splits_foreseen_from_where_the_batch_began",
        "runtimes/spark/message_source.py",
        "batch.whole[name] = plan.position",
        "batch.whole.setdefault(name, before)",
        "what is read ahead is what has just been read, every time for nothing",
    ),
)
