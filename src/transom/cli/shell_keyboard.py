"""The keyboard of a shell: lines with history and completion, until a statement is whole."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.patch_stdout import patch_stdout

from transom.cli.shell_text import is_whole
from transom.connectors.screen import Screen

PROMPT: Final = "transom> "
_GOES_ON: Final = "      -> "


class Keyboard:
    """`complete` gives the words that can follow a text."""

    def __init__(self, screen: Screen, complete: Callable[[str], Iterable[str]]) -> None:
        self._screen = screen
        self._session: PromptSession[str] = PromptSession(
            PROMPT,
            multiline=True,
            prompt_continuation=_GOES_ON,
            history=_history(),
            completer=_CompletedWords(complete),
            complete_while_typing=False,
            key_bindings=_keys(),
        )

    def read(self) -> str:
        """What was typed. Ctrl-C raises KeyboardInterrupt, Ctrl-D on an empty line EOFError.

        Rows of running queries scroll by above it.
        """
        with self._screen.lend(patch_stdout(raw=True)):
            return self._session.prompt()


class _CompletedWords(Completer):
    def __init__(self, complete: Callable[[str], Iterable[str]]) -> None:
        self._complete = complete

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        begun = document.get_word_before_cursor()
        for word in self._complete(document.text_before_cursor):
            yield Completion(word, start_position=-len(begun) if begun.strip() else 0)


def _keys() -> KeyBindings:
    keys = KeyBindings()

    @keys.add("enter")
    def _enter(event: KeyPressEvent) -> None:
        if is_whole(event.current_buffer.text):
            event.current_buffer.validate_and_handle()
        else:
            event.current_buffer.insert_text("\n")

    return keys


def _history() -> History:
    """The history, in a file of the user's state folder, if it can be written."""
    folder = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "transom"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "history").open("a").close()
    except (OSError, RuntimeError):
        return InMemoryHistory()
    return FileHistory(folder / "history")
