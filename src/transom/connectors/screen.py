"""What a person sees: rows that scroll by on standard output and, on a terminal, parts below them that are renewed in
their place. Whoever shows something shares one screen, so that nobody writes over another."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any, Final

from transom.core.errors import SinkError
from transom.core.text import ESCAPED, visible

if TYPE_CHECKING:
    from rich.live import Live

_FEWEST_ROWS: Final = 3


class Screen:
    """`several`: more than one speaks, so that each is named when it begins.

    `keyboard`: somebody types, and the lower lines of the terminal are not ours. Everything can be called from any
    thread.
    """

    def __init__(self, several: bool = False) -> None:
        self.several = several
        self.keyboard = False
        self._lock = threading.RLock()
        self._last: str | None = None
        self._parts: dict[str, Any] = {}
        self._live: Live | None = None
        self._lost = False

    @property
    def shows_rows(self) -> bool:
        """Whether rows are seen on a terminal, where they can be renewed in their place."""
        return not _is_dumb() and sys.stdout.isatty()

    @property
    def shows_parts(self) -> bool:
        """Whether there is a terminal to renew anything on, though rows may go elsewhere."""
        return not self._lost and not _is_dumb() and (sys.stdout.isatty() or sys.stderr.isatty())

    # --- rows that scroll --------------------------------------------------------------------------------------------

    def say(self, speaker: str, heading: str, text: str) -> None:
        """Whole lines, after the heading if somebody else spoke last."""
        with self._lock:
            if self._last != speaker:
                named = self.several or self._last is not None
                text = (
                    ("\n" if self._last is not None else "")
                    + (f"-- {visible(speaker)}\n" if named else "")
                    + heading
                    + text
                )
                self._last = speaker
            self.write(text)

    def forget_speaker(self) -> None:
        """The next one to speak is the first one again."""
        with self._lock:
            self._last = None

    def write(self, text: str) -> None:
        """Whole lines, above the parts that stand."""
        if not text:
            return
        with self._lock, _terminal_errors():
            if sys.stdout.isatty():
                text = visible(text, keep="\n\t")
            text = _writable(text)
            if self._live is not None and sys.stdout.isatty():
                self._live.console.out(text.removesuffix("\n"), highlight=False)
            else:
                sys.stdout.write(text)
                sys.stdout.flush()

    @contextmanager
    def lend(self, keyboard: AbstractContextManager[Any]) -> Iterator[None]:
        """Within it somebody types; `keyboard` changes standard output so that rows do not disturb the typing."""
        with self._lock:
            self.keyboard = True
            self._draw()
            keyboard.__enter__()
        try:
            yield
        finally:
            with self._lock:  # nobody is in the middle of writing to what is taken away
                keyboard.__exit__(None, None, None)
                self.keyboard = False

    # --- parts that stand --------------------------------------------------------------------------------------------

    @property
    def room_for_rows(self) -> int:
        """How many rows each part may have."""
        height = 24 if self._live is None else self._live.console.size.height
        return max(_FEWEST_ROWS, (height - 4) // max(1, len(self._parts)) - 3)

    def stand(self, part: str, shown: Any) -> None:
        """Show a part, in the place of what it showed before: anything that rich can draw."""
        with self._lock:
            self._parts[part] = shown
            self._draw()

    def remove(self, part: str) -> None:
        with self._lock:
            if self._parts.pop(part, None) is not None:
                self._draw()

    def clear(self) -> None:
        """Take away what is shown: the terminal is as it was."""
        with self._lock:
            self._parts.clear()
            self._draw()

    def _draw(self) -> None:
        try:
            self._renew()
        except (OSError, UnicodeError):  # the terminal is gone, or has no room or no letters for it: the run goes on
            self._live, self._lost = None, True
            self._parts.clear()

    def _renew(self) -> None:
        if not self._parts or self.keyboard or not self.shows_parts:
            if self._live is not None:
                live, self._live = self._live, None
                live.stop()
            return
        from rich.console import Console, Group  # only who looks at it waits for it
        from rich.live import Live

        shown = Group(*self._parts.values())
        if self._live is None:
            console = Console(stderr=not sys.stdout.isatty())
            self._live = Live(
                shown,
                console=console,
                auto_refresh=False,
                transient=True,
                redirect_stdout=False,
                redirect_stderr=False,
            )
            self._live.start()
        self._live.update(shown, refresh=True)


def output_error(error: OSError) -> SinkError:
    return SinkError(
        f"standard output cannot be written: {error.strerror or error}",
        remedy="make room where it goes, or send it elsewhere",
    )


@contextmanager
def _terminal_errors() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:  # whoever reads it has seen enough, which is no error
        raise
    except OSError as error:
        raise output_error(error) from None


def _writable(text: str) -> str:
    """The text as standard output can encode it."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    return text if encoding.lower() == "utf-8" else text.encode(encoding, ESCAPED).decode(encoding)


def _is_dumb() -> bool:
    return os.environ.get("TERM", "") in ("dumb", "unknown")
