"""Every message a user can see is raised as one of these, with where, what and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass

from transom.core.secrets import hidden
from transom.core.text import visible, visible_lines


@dataclass(frozen=True)
class Span:
    """A place in a query text: 1-based line and column, and how many characters are meant."""

    line: int
    column: int
    length: int = 1


class TransomError(Exception):
    """Something a user can act on. `what` is one sentence, `remedy` says what to write or do instead.

    Of an error that comes from afar `operator` and `query` say where it came up.
    """

    def __init__(
        self, what: str, *, remedy: str | None = None, span: Span | None = None, text: str | None = None
    ) -> None:
        what, remedy = hidden(what), None if remedy is None else hidden(remedy)
        super().__init__(what)
        self.what = what
        self.remedy = remedy
        self.span = span
        self.text = text
        self.operator: str | None = None
        self.query: str | None = None

    def __str__(self) -> str:
        """Where, what, the quoted place, and the remedy, as it is shown to a person."""
        lines = []
        what = visible(self.what)
        if self.span is None:
            lines.append(what)
        else:
            lines.append(f"line {self.span.line}, column {self.span.column}: {what}")
            source = self.text.splitlines() if self.text else []
            if 0 < self.span.line <= len(source):
                quoted = source[self.span.line - 1]
                start = max(0, self.span.column - 60)
                quoted = quoted[start : start + 120].replace("\t", " ")  # so that the marks stand below what they mean
                at = self.span.column - 1 - start
                before, meant = visible(quoted[:at]), visible(quoted[at : at + self.span.length])
                lines.append(f"  {before}{meant}{visible(quoted[at + self.span.length :])}")
                lines.append("  " + " " * len(before) + "^" * max(1, len(meant)))
        if self.operator:
            lines.append(f"  in {visible(self.operator)}")
        if self.query:
            lines.append(f"  of {visible(_short(self.query))}")
        if self.remedy:
            lines.append(f"  {visible_lines(self.remedy)}")
        return "\n".join(lines)


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 200 else line[:199] + "…"


class QueryError(TransomError):
    """The query text is wrong: it does not parse, names something unknown, or mixes types."""


class UnsupportedError(TransomError):
    """The query means something, but no tactic of the chosen runtime can run it (yet)."""


class OptionError(TransomError):
    """An option of SET or WITH is unknown or has a value that it cannot take."""


class SourceError(TransomError):
    """Input cannot be read at all: a missing file, a missing column, a broken format."""


class UnlikeSparkError(SourceError):
    """A file of a DataFrame that Spark reads otherwise than we do: it is to read it itself."""


class SinkError(TransomError):
    """Output cannot be written."""


class LateRowError(TransomError):
    """A row came after the watermark on a stream declared `late = 'fail'`."""


class OverloadError(TransomError):
    """More rows wait for queries than may, and SET overload is 'fail'."""


class EvaluationError(TransomError):
    """An expression failed on a row: an overflow, a text that is no number."""


class CheckpointError(TransomError):
    """A checkpoint is damaged, of another query, or of a version that this one cannot read."""


class SpillError(TransomError):
    """What does not fit into a memory budget cannot be kept on disk."""


class OutOfMemoryError(TransomError):
    """There is no memory left for what a query has to keep."""


class SparkError(TransomError):
    """Spark cannot be used as it is: no Java that fits, a session without the settings that a query needs."""
