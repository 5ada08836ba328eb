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
        "os.path.realpath(path)]) != self.folder",
        "os.path.abspath(path)]) != self.folder",
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
        "if known is not None and known.path == real_path(",
        "if known is None and '' == real_path(",
        "after a restart the columns are those of the file that is first by then",
    ),
    Bug(
        "what_never_comes_again_in_a_dictionary",
        "connectors/part_writers.py",
        "if found <= different]",
        "if found >= different]",
        "Parquet files are larger and take longer to write",
    ),
)
