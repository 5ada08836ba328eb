"""Bugs of paths and folders: files that are removed, read or written which should not be."""

from __future__ import annotations

from typing import Final

from tests.planted.bug import Bug

FILES: Final = (
    Bug(
        "a_folder_of_others_is_ours",
        "connectors/sink_folder.py",
        "if mark is None and not private:",
        "if mark is None and private:",
        "the first commit of a query removes the parts that somebody else has in the folder",
    ),
    Bug(
        "no_log_is_an_empty_log",
        "connectors/sink_folder.py",
        "mark.run is not None and mark.run == run and dict(_parts(path))",
        "mark.run is None and dict(_parts(path))",
        "a run whose log is not found removes all that it has shown",
    ),
    Bug(
        "a_link_leads_out",
        "core/location.py",
        "os.path.realpath(path)]) == self.folder",
        "os.path.abspath(path)]) == self.folder",
        "a link in the folder of --within leads to any file",
    ),
    Bug(
        "spark_looks_elsewhere",
        "core/location.py",
        'return f"file://{os.path.abspath(path)}"',
        "return os.path.abspath(path)",
        "where Spark's paths begin in another file system its log is not where it is looked for",
    ),
    Bug(
        "a_zero_in_front_is_lost",
        "connectors/file_columns.py",
        '_WHOLE: Final = rf"^[+-]?(0|[1-9]\\d{{0,{_MOST_DIGITS - 1}}})$"',
        '_WHOLE: Final = rf"^[+-]?\\d{{1,{_MOST_DIGITS}}}$"',
        "a code such as 007, of files whose columns nobody declared, is read as the number 7",
    ),
    Bug(
        "columns_taken_anew",
        "program/taken_columns.py",
        "if before is not None and before.path == real_path(",
        "if before is None and '' == real_path(",
        "after a restart the columns are those of the file that is first by then",
    ),
    Bug(
        "what_never_comes_again_in_a_dictionary",
        "connectors/part_writers.py",
        "if distinct <= different]",
        "if distinct >= different]",
        "Parquet files are larger and take longer to write",
    ),
    Bug(
        "a_folder_is_its_first_letters",
        "core/location.py",
        """return f"{path.rstrip('/')}/".startswith(f"{self.folder}/")""",
        "return path.startswith(self.folder)",
        "a query that is kept within s3://b/in reads s3://b/inside",
    ),
    Bug(
        "a_commit_counts_again",
        "connectors/storage_sink.py",
        "if self._log.run == self._run and self._log.epoch >= epoch:",
        "if self._log.run == self._run and self._log.epoch > epoch:",
        "the rows of a batch that is run again after its commit are there twice",
    ),
    Bug(
        "both_runs_count",
        "connectors/commit_log.py",
        "if not instead:",
        "if instead or not instead:",
        "a run that takes over a folder of a storage shows its rows beside those of the other one",
    ),
    Bug(
        "prepared_files_are_left_over",
        "connectors/storage_sink.py",
        """self._tidy({name for _, (name, *_) in token.get("files", ())})""",
        "self._tidy(set())",
        "a run that resumes before the commit of its last epoch removes the files of that epoch",
    ),
    Bug(
        "two_owners_of_a_checkpoint",
        "program/checkpoint_folder.py",
        "self.read(_OWNER) != self._owner",
        "self.read(_OWNER) is None",
        "of two runs with one checkpoint on a storage both go on, and each writes over the other",
    ),
    Bug(
        "staged_rows_are_left_over",
        "connectors/staged_sink.py",
        """if token is None or entry.name != token.get("file"):""",
        """if token is None or entry.name:""",
        "rows that a checkpoint on a storage counts are removed before they are sent",
    ),
    Bug(
        "read_files_whose_log_is_gone",
        "runtimes/spark/offset_log.py",
        "int(match[1]) < number - KEPT",
        "int(match[1]) < number",
        "a batch that is run again finds no more what had been read before it",
    ),
    Bug(
        "a_log_of_another_run_is_believed",
        "runtimes/spark/offset_log.py",
        "if data is None or _mark(data) != named[1]:",
        "if data is None:",
        "files are read twice or left out after a checkpoint was put together from two copies",
    ),
    Bug(
        "two_drivers_on_one_storage",
        "runtimes/spark/run.py",
        "unit.guard.before = self._folder.check_owner",
        "unit.guard.after = unit.guard.after",
        "a driver that was thought dead goes on writing beside the one that took its place",
    ),
    Bug(
        "rows_of_a_run_that_never_began",
        "runtimes/spark/checkpoint.py",
        "return [entry.name for entry in storage_of(folder).entries(folder) if entry.folder]",
        "return []",
        "a checkpoint on a storage is taken for empty, and another query may have it",
    ),
)
