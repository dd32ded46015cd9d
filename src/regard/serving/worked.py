"""Worked problems over HTTP: the shipped ones, and one that a person writes, worked and marked."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import cache
from typing import Any

from fastapi.responses import JSONResponse, Response
from starlette.requests import Request

from regard.serving import schema
from regard.serving.bodies import asked_in, text_of
from regard.serving.errors import Refused
from regard.support.errors import Misuse

LARGEST = 100_000
"""The most characters of a problem."""
Route = tuple[str, str, Callable[[Request], Awaitable[Response]], dict[str, Any]]


def worked_routes() -> list[Route]:
    return [("GET", "/problems", problems, schema.PROBLEMS), ("POST", "/work", work, schema.WORK)]


async def problems(request: Request) -> Response:
    return JSONResponse(await asyncio.to_thread(_shipped))


async def work(request: Request) -> Response:
    server = request.app.state.server
    asked = await asked_in(request, server.settings.body)
    text = text_of(asked, "problem")
    if len(text) > LARGEST:
        raise Refused(400, f"Invalid request: request ({len(text)}) exceeds text limit ({LARGEST})")
    held: dict[str, Any] = await server._in_turn(lambda: _worked(text))
    return JSONResponse(held)


@cache
def _shipped() -> list[dict[str, str]]:
    from regard.worked import read_problem
    from regard.worked.shipped import shipped

    found = []
    for name, path in shipped().items():
        found.append({"name": name, "title": read_problem(path).title, "text": path.read_text(encoding="utf-8")})
    return found


def _worked(text: str) -> dict[str, Any]:
    import json

    from regard.worked import problem_from, solve
    from regard.worked.marking import mark
    from regard.worked.report import told

    try:
        problem = problem_from(text, "problem")
        derivation = solve(problem).derivation
        marks = mark(problem) if problem.claimed else None
    except Misuse as error:
        raise Refused(400, str(error)) from None
    return {
        "title": problem.title,
        "derivation": json.loads(derivation.to_json()),
        "marks": None if marks is None else marks.as_json(),
        "report": None if marks is None else told(marks, width=72),
    }
