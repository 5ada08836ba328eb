"""Bugs of the console: doors left open, and rows shown that are not there."""

from __future__ import annotations

from typing import Final

from tests.planted.bug import Bug

CONSOLE: Final = (
    Bug(
        "any_host_is_served",
        "console/guard.py",
        "return text in self._hosts",
        "return text in self._hosts or True",
        "a name that somebody else points to this machine makes their page the same site",
    ),
    Bug(
        "another_site_may_ask",
        "console/guard.py",
        'if origin.lower() != b"http://" + hosts[0].lower():',
        'if not origin.lower().startswith(b"http"):',
        "a page of another site can ask through the browser",
    ),
    Bug(
        "changes_without_the_token",
        "console/server.py",
        "return token is not None and same_token(token, given)",
        "return token is not None",
        "whoever reaches the address can start and stop queries",
    ),
    Bug(
        "a_page_that_looks_may_declare",
        "console/editor.py",
        "if spills or not isinstance(statement, _ASKS):",
        "if spills:",
        "a text in the editor reads whatever file it names",
    ),
    Bug(
        "a_tap_keeps_everything",
        "connectors/tapped.py",
        "while self._kept - len(self._rows[0]) >= self._most:",
        "while self._kept - len(self._rows[0]) >= 1000 * self._most:",
        "a console that is left open keeps the whole answer in memory",
    ),
    Bug(
        "each_browser_has_queries_looked_at",
        "console/feed.py",
        "number = made\n                parts",
        "number = made\n                self.tick()\n                parts",
        "ten that watch cost ten times as much as one",
    ),
    Bug(
        "a_page_has_all_queries_looked_at",
        "console/feed.py",
        "old = not names or now - watched.looked >= _IDLE_TICK",
        "old = True",
        "whoever looks at one of many queries pays for all of them",
    ),
    Bug(
        "an_answer_is_made_for_nobody",
        "console/feed.py",
        "for watched in wanted if watched.query.name in answers}",
        "for watched in wanted}",
        "whoever looks at the plan of a query pays for texts of its rows",
    ),
    Bug(
        "equals_of_a_row_that_went_are_forgotten",
        "kernels/seen_changes.py",
        "first[at] = next_[begin]",
        "first[at] = -1",
        "of equal rows that are there at once one has a bar that begins nowhere, and another one never ends",
    ),
    Bug(
        "equal_numbers_for_rows_that_differ",
        "program/seen_rows.py",
        "if size * more > _MOST_CODES:",
        "if False:",
        "in an answer of many columns rows are taken for each other",
    ),
    Bug(
        "old_sizes_for_everybody",
        "runtimes/local/job_statuses.py",
        "if now - measured >= lately or",
        "if now - measured >= 5.0 or",
        "the status says what a query kept some seconds ago",
    ),
    Bug(
        "a_heartbeat_is_silence",
        "monitoring/silence.py",
        'seen = (each["rows_in"], each.get("watermark"))',
        'seen = (each["rows_in"], None)',
        "an input whose time goes on with the clock is said to hold time back",
    ),
    Bug(
        "who_asks_for_nothing_stays",
        "console/patience.py",
        "if not answering and self._answers == self._answers_before:",
        "if answering and self._answers == self._answers_before:",
        "whoever opens connections and says nothing takes all that the process may open",
    ),
    Bug(
        "the_name_of_a_plan_has_the_text",
        "planner/fingerprint.py",
        "for field in fields(node) if field.compare]",
        "for field in fields(node)]",
        "a blank more in the text of a query, and its checkpoint is that of another one",
    ),
    Bug(
        "marks_are_counted_from_the_file",
        "planner/origin.py",
        "[each.start - begin, each.stop - begin]",
        "[each.start, each.stop]",
        "a click on an operator marks some other piece of the query, unless it is the first of its file",
    ),
)
