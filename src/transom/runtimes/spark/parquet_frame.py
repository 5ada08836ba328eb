"""A streaming DataFrame that is a folder of Parquet files and nothing else: Spark lists the files, our tasks read them.

Which files a batch has is Spark's business: its file source finds them, limits them by the options of the user and logs
them in the checkpoint. That log does not depend on the format, so the same source is asked for names (`binaryFile`,
without the content) instead of rows, and a query may go from one way to the other at any start.

Only what Spark would read just so is read here. What can be known beforehand is looked at in the plan, the options and
the settings; what only a file can tell, when it is opened: then the task raises `UnlikeSparkError`, and the query goes
on with Spark as the reader.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame
from pyspark.sql import types as T

from transom.connectors.conform import fold
from transom.connectors.connector import Split, SplitRows
from transom.connectors.files import FileSource
from transom.core.errors import UnlikeSparkError
from transom.core.schema import Schema
from transom.pipeline.layout import Definition
from transom.runtimes.spark.types import declared_columns
from transom.runtimes.spark.workers import on_one_machine

FILES: Final = "path string, modificationTime timestamp, length bigint, content binary"
"""What Spark's `binaryFile` has to say of a file. What is not asked for is not read."""

_LISTING: Final = frozenset(
    (
        *("path", "maxfilespertrigger", "maxbytespertrigger", "latestfirst", "maxfileage", "filenameonly"),
        *("pathglobfilter", "recursivefilelookup", "cleansource", "sourcearchivedir", "sourcecleanernumthreads"),
        *("maxcachedfiles", "discardcachedinputratio"),
    )
)
"""Options that say which files are read when, and nothing of what is in them."""

_SETTINGS: Final = ("spark.sql.parquet.", "spark.sql.files.", "spark.sql.legacy.parquet.", "spark.sql.caseSensitive")
"""Settings by which Spark may read something else. Nobody sets them for nothing."""

_PATTERN: Final = frozenset("*?[]{}\\")

_IN_FILE: Final[dict[type[T.DataType], tuple[pa.DataType, ...]]] = {
    T.BooleanType: (pa.bool_(),),
    T.ByteType: (pa.int8(),),
    T.ShortType: (pa.int16(),),
    T.IntegerType: (pa.int32(),),
    T.LongType: (pa.int64(),),
    T.FloatType: (pa.float32(),),
    T.DoubleType: (pa.float64(),),
    T.StringType: (pa.string(), pa.large_string()),
    T.DateType: (pa.date32(),),
}
"""The types of columns in files from which Spark takes the very same values. There are more, which it reads itself."""

_LEGACY: Final = (b"org.apache.spark.legacyDateTime", b"org.apache.spark.legacyINT96")
_WRITER: Final = b"org.apache.spark.version"


@dataclass(frozen=True)
class ParquetFrame:
    """The `columns` of a stream with their types in Spark, by the names that they have in the files of the folder."""

    folder: str
    options: dict[str, str]
    columns: dict[str, T.DataType]

    def files(self, like: DataFrame) -> DataFrame:
        """The files of a batch, in the session of a DataFrame."""
        return like.sparkSession.readStream.format("binaryFile").schema(FILES).options(**self.options).load()

    @property
    def partitioned(self) -> bool:
        """Whether folders below name values of columns, unless Spark is told to pay no heed to it."""
        return not self._flat and any("=" in name for _, below, _ in os.walk(self.folder) for name in below)

    @property
    def _flat(self) -> bool:
        return self.options.get("recursivefilelookup", "").lower() == "true"

    def source(self, declared: Schema, time_column: str, read: Collection[int]) -> FileSource:
        """Reads the files; of the columns not in `read` only what has to be shown."""
        source = FileSource(declared, {"path": self.folder, "format": "parquet"}, time_column=time_column)
        source.narrow([declared[i].name for i in sorted(read)])
        return source

    def read(self, source: FileSource, uri: str) -> Iterator[SplitRows]:
        """The rows of a file, by the name that Spark has for it."""
        name = os.path.relpath(uri.removeprefix("file:"), self.folder)
        if not self._flat and "=" in os.path.dirname(name):
            raise unlike(name, "the name of its folder tells the value of a column")
        rows = self._rows(name)
        if rows:
            yield from source.read_split(Split(name, 0, rows, True))

    def _rows(self, name: str) -> int:
        """How many a file has, if Spark finds in it what we find."""
        try:
            with pq.ParquetFile(os.path.join(self.folder, name), coerce_int96_timestamp_unit="us") as file:
                described, schema, metadata = file.schema, file.schema_arrow, file.metadata
        except (OSError, pa.ArrowException, UnicodeDecodeError) as error:
            raise unlike(name, str(error)) from None
        about = metadata.metadata or {}
        if any(key in about for key in _LEGACY) or about.get(_WRITER, b"3") < b"3":
            raise unlike(name, "it has times of an old calendar")
        if len({fold(each) for each in schema.names}) < len(schema.names):
            raise unlike(name, "names of columns differ in nothing but their case")
        physical = {described.column(i).path: described.column(i) for i in range(len(described))}
        for column, wanted in self.columns.items():
            if column not in physical or column not in schema.names:
                raise unlike(name, f"it has no column '{column}'")
            if not _same(schema.field(column).type, wanted, physical[column]):
                raise unlike(name, f"its column '{column}' is {schema.field(column).type}")
        rows: int = metadata.num_rows
        return rows


def unlike(name: str, why: str) -> UnlikeSparkError:
    return UnlikeSparkError(f"file '{name}' is left to Spark: {why}", remedy="start the query again")


def _same(given: pa.DataType, wanted: T.DataType, column: Any) -> bool:
    if isinstance(wanted, T.DecimalType):
        return bool(given == pa.decimal128(wanted.precision, wanted.scale))
    if column.physical_type == "INT96":
        return isinstance(wanted, T.TimestampType)
    if isinstance(wanted, T.TimestampType | T.TimestampNTZType):
        # An instant that is asked for as a local time is its count, in all zones, and so it is the other way round.
        return bool(pa.types.is_timestamp(given) and given.unit == "us" and column.logical_type.type == "TIMESTAMP")
    return given in _IN_FILE.get(type(wanted), ())


def readable_files(frame: DataFrame, definition: Definition) -> ParquetFrame | str:
    """The folder whose files our tasks are to read in place of a DataFrame; or why Spark is to read it."""
    if not on_one_machine(frame.sparkSession):
        return "on a cluster it cuts files into parts"
    return parquet_frame(frame, definition.columns, f"'{definition.name}'")


def parquet_frame(frame: DataFrame, declared: Schema, name: str) -> ParquetFrame | str:
    """The folder that a DataFrame is; or why Spark is to read it."""
    plan = frame._jdf.queryExecution().analyzed()
    while plan.nodeName() == "Project":
        if any(each.getClass().getSimpleName() != "AttributeReference" for each in _each(frame, plan.projectList())):
            return "it is more than columns of files"
        plan = plan.child()
    if plan.nodeName() != "StreamingRelation":
        return "it is more than columns of files"
    source = plan.dataSource()
    if source.providingClass().getSimpleName() != "ParquetFileFormat":
        return "its files are not Parquet"
    options = {str(each._1()).lower(): str(each._2()) for each in _each(frame, source.options().toSeq())}
    if source.catalogTable().isDefined() or not source.partitionColumns().isEmpty() or not source.paths().isEmpty():
        return "it is a table of Spark's"
    odd = sorted(options.keys() - _LISTING)
    if odd:
        return f"it has the option '{odd[0]}'"
    folder = _local_folder(frame, options.get("path", ""))
    if folder is None:
        return "it is not a folder of this machine"
    changed = sorted(name for name in frame.sparkSession.conf.getAll if name.startswith(_SETTINGS))
    if changed:
        return f"the session has set {changed[0]}"
    fields = {fold(field.name): field for field in frame.schema.fields}
    if any(field.metadata for field in fields.values()) or any(
        column is None for column in declared_columns(frame, declared, name)
    ):
        return "a column has another type than it is declared with"
    columns = {fields[fold(column.name)].name: fields[fold(column.name)].dataType for column in declared}
    parquet = ParquetFrame(folder, options, columns)
    return "the names of its folders tell the values of columns" if parquet.partitioned else parquet


def _local_folder(frame: DataFrame, path: str) -> str | None:
    """The folder of this machine that Spark takes a path for."""
    context = frame.sparkSession.sparkContext
    assert context._jvm is not None
    if not path or _PATTERN & set(path):
        return None
    hadoop = context._jvm.org.apache.hadoop.fs.Path(path)
    system = hadoop.getFileSystem(context._jsc.hadoopConfiguration())
    folder: str = system.makeQualified(hadoop).toUri().getPath()
    is_local = system.getUri().getScheme() == "file" and ".." not in folder.split("/")
    return folder if is_local and os.path.isdir(folder) else None


def _each(frame: DataFrame, sequence: Any) -> Iterator[Any]:
    """The things in a sequence of Scala's."""
    return (sequence.apply(i) for i in range(sequence.size()))
