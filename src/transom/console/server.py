"""The console as a server: one page, what it is made of, and what it asks.

No request reaches a file: what is served is read into memory when the server is made.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from importlib import resources
from typing import Any, Final

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from transom.console.editor import Editor, error_json
from transom.console.feed import Feed, encoded
from transom.console.guard import same_token
from transom.core.errors import TransomError
from transom.core.text import visible

_KINDS: Final = {"html": "text/html", "js": "text/javascript", "css": "text/css", "svg": "image/svg+xml"}

Work = Callable[[dict[str, Any], bool], dict[str, Any]]


def page_files() -> dict[str, tuple[bytes, str]]:
    """What the page is made of, by the path under which it is served."""
    files = {}
    top = resources.files("transom.console") / "static"
    for folder, prefix in ((top, ""), (top / "vendor", "vendor/")):
        for file in folder.iterdir():
            kind = _KINDS.get(file.name.rpartition(".")[2])
            if kind is not None and file.is_file():
                files[f"/{prefix}{file.name}"] = file.read_bytes(), f"{kind}; charset=utf-8"
    files["/"] = files.pop("/index.html")
    return files


def console_app(feed: Feed, editor: Editor | None, token: str | None) -> Starlette:
    """Without a `token` nobody can change anything."""
    routes = [Route(path, _file(*file), methods=["GET"]) for path, file in page_files().items()]

    def may_change(request: Request) -> bool:
        given = request.headers.get("x-transom-token", "")
        return token is not None and same_token(token, given)

    async def about(request: Request) -> Response:
        relations = [] if editor is None else editor.relations()
        return _json(
            {
                "about": feed.board.about,
                "editor": editor is not None,
                "changes": may_change(request),
                "could_change": token is not None,
                "relations": relations,
            }
        )

    async def plan(request: Request) -> Response:
        query = feed.query(request.query_params.get("query", ""))
        if query is None:
            return _json({"ok": False, "what": "there is no query of this name"}, 404)
        explained = await run_in_threadpool(query.explained)
        plans = [] if explained is None else list(explained.plans)
        return _json({"ok": True, "text": query.text, "explain": explained, "plan": plans[0] if plans else None})

    async def history(request: Request) -> Response:
        reach = min(_number_of(request, "seconds", 600), 86_400)
        return _json(feed.history(request.query_params.get("query", ""), reach, _number_of(request, "since", 0)))

    async def events(request: Request) -> Response:
        if feed.full:
            return _json({"ok": False, "what": "too many pages are open"}, 503)
        name = request.query_params.get("query") or None
        wants = frozenset(request.query_params.get("wants", "").split(",")) & {"answer", "dead_letters"}
        return StreamingResponse(_until_gone(feed.events(name, wants)), media_type="text/event-stream")

    def posted(work: Work, *, changes: bool) -> Callable[[Request], Any]:
        async def endpoint(request: Request) -> Response:
            if editor is None:
                return _json({"ok": False, "what": "there is no session here to ask"}, 409)
            allowed = may_change(request)
            if changes and not allowed:
                return _json(_READ_ONLY, 403)
            try:
                body = json.loads(await request.body())
                if not isinstance(body, dict):
                    raise ValueError
            except (ValueError, RecursionError):
                return _json({"ok": False, "what": "the request is no JSON object"}, 400)
            try:
                return _json(await run_in_threadpool(work, body, allowed))
            except TransomError as error:
                return _json(error_json(error))  # what is wrong with a text is the answer
            except Exception as error:  # whatever it was, it was this request's own
                return _json({"ok": False, "what": visible(f"{type(error).__name__}: {error}")}, 500)

        return endpoint

    works: dict[str, tuple[Work, bool]] = {}
    if editor is not None:
        works = {
            "check": (lambda body, ok: editor.check(_text_of(body, "text"), ok), False),
            "preview": (lambda body, ok: editor.preview(_text_of(body, "text"), ok), False),
            "start": (lambda body, ok: _started(editor, body), True),
            "stop": (lambda body, ok: editor.stop(_text_of(body, "name")), True),
        }
    for name in ("check", "preview", "start", "stop"):
        work, changes = works.get(name, (_nothing, False))
        routes.append(Route(f"/api/{name}", posted(work, changes=changes), methods=["POST"]))
    routes += [
        Route("/api/about", about, methods=["GET"]),
        Route("/api/plan", plan, methods=["GET"]),
        Route("/api/history", history, methods=["GET"]),
        Route("/api/events", events, methods=["GET"]),
    ]
    return Starlette(routes=routes)


_READ_ONLY: Final = {
    "ok": False,
    "what": "this page may look, and change nothing",
    "remedy": "start the console with --allow-changes, and open the address that it prints",
}


def _started(editor: Editor, body: dict[str, Any]) -> dict[str, Any]:
    name = body.get("name")
    return editor.start(
        _text_of(body, "text"), name if isinstance(name, str) and name else None, body.get("follow") is True,
        body.get("together") is True,
    )  # fmt: skip


def _number_of(request: Request, name: str, default: int) -> int:
    text = request.query_params.get(name, "")
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 12 else default


def _text_of(body: dict[str, Any], name: str) -> str:
    value = body.get(name)
    if not isinstance(value, str):
        raise TransomError(f"the request has no '{name}'", remedy="send it as a text")
    return value


def _nothing(body: dict[str, Any], allowed: bool) -> dict[str, Any]:
    return {}


def _json(value: object, status: int = 200) -> Response:
    return Response(encoded(value), status, media_type="application/json")


def _file(data: bytes, kind: str) -> Callable[[Request], Any]:
    async def served(request: Request) -> Response:
        return Response(data, headers={"content-type": kind})

    return served


async def _until_gone(events: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    async for event in events:
        yield event
