"""The application: LibreTranslate's interface, explanations, worked problems, metrics, and the page.

    app = make(translator, explained_by=load_pipeline, settings=ServerSettings())

Errors are `{"error": message}` with a 4xx status; a request that had to be turned away for a while gets a 503 with
Retry-After. What a client sends is read in one place (`bodies`), whatever form it takes.
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI
from fastapi.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request

from regard.serving import page, schema
from regard.serving.bodies import asked_in, number_of, text_of, texts_of
from regard.serving.clients import Clients
from regard.serving.connections import WithHeads
from regard.serving.directions import name
from regard.serving.errors import Refused, busy, missing, unsupported
from regard.serving.explanations import Explanations, record
from regard.serving.metrics import Metrics
from regard.serving.settings import ServerSettings
from regard.serving.translating import Translated, Translator
from regard.serving.worked import worked_routes
from regard.support.errors import Misuse
from regard.support.memory import give_back_freed_memory
from regard.text.detector import Guess
from regard.text.sentences import sentences
from regard.version import __version__

if TYPE_CHECKING:
    from regard.pipeline.model import Pipeline

log = logging.getLogger("regard.serving")
FORMATS = ("text", "html")
TIDY = 10.0
"""Seconds after which freed memory is given back."""
PLAIN = ("/", "/health", "/metrics", "/docs", "/openapi.json")
"""What is answered without a key and is not counted against a client."""

Handler = Callable[[Request], Awaitable[Response]]
Route = tuple[str, str, Handler, dict[str, Any]]


def make(
    translator: Translator,
    explained_by: "Callable[[], Pipeline] | None" = None,
    settings: ServerSettings | None = None,
) -> FastAPI:
    """`explained_by` gives the model that explanations are worked with, when the first is asked for; None: there are
    none."""
    settings = settings or translator.settings
    server = _Server(translator, explained_by, settings)

    @asynccontextmanager
    async def living(_: FastAPI) -> AsyncIterator[None]:
        tidying = asyncio.create_task(_tidying(translator))
        yield
        tidying.cancel()
        translator.close()

    app = FastAPI(
        title="regard", version=__version__, lifespan=living, docs_url=None, redoc_url=None,
        description="Translates, and shows the arithmetic of every number in a translation.",
    )  # fmt: skip
    app.state.server = server
    routes: list[Route] = [
        ("POST", "/translate", server.translate, schema.TRANSLATE),
        ("POST", "/detect", server.detect, schema.DETECT),
        ("GET", "/languages", server.languages, schema.LANGUAGES),
        ("GET", "/health", server.health, schema.HEALTH),
        ("GET", "/frontend/settings", server.frontend, schema.FRONTEND),
        ("POST", "/explain", server.explain, schema.EXPLAIN),
        ("GET", "/explain/{id}/{step}", server.derivation, schema.DERIVATION),
        ("POST", "/explain/{id}/{step}/cells", server.cells, schema.CELLS),
        ("GET", "/metrics", server.metrics_text, schema.METRICS),
        *worked_routes(),
    ]
    for method, path, handler, shape in routes:
        app.add_api_route(
            path, server.guarded(path, handler), methods=[method], openapi_extra=shape, response_model=None,
            operation_id=f"{method.lower()}{path.replace('/', '_')}",
        )  # fmt: skip
    app.add_api_route("/", _page, include_in_schema=False)
    app.add_api_route("/docs", _docs, include_in_schema=False)
    app.add_exception_handler(HTTPException, _as_error)
    app.add_middleware(WithHeads)
    if settings.origins:
        app.add_middleware(
            CORSMiddleware, allow_origins=list(settings.origins), allow_methods=["*"], allow_headers=["*"]
        )
    app.openapi_schema = schema.cleaned(app.openapi())
    return app


async def _tidying(translator: Translator) -> None:
    """What searches have freed is given back to the system, every few seconds in which there were any."""
    before = 0
    while True:
        await asyncio.sleep(TIDY)
        if (begun := translator.batcher.begun) != before:
            before = begun
            await asyncio.to_thread(give_back_freed_memory)


class _Server:
    def __init__(
        self, translator: Translator, explained_by: "Callable[[], Pipeline] | None", settings: ServerSettings
    ) -> None:
        self.translator, self.explained_by, self.settings = translator, explained_by, settings
        self.clients, self.metrics, self.explanations = Clients(settings), Metrics(), Explanations(settings)
        self._explainer: Pipeline | None = None
        self._explaining = asyncio.Semaphore(1)

    def guarded(self, path: str, handler: Handler) -> Callable[[Request], Awaitable[Response]]:
        """With keys and limits before it, and every way it can end as an answer and a count."""

        async def answered(request: Request) -> Response:
            started = time.perf_counter()
            response = await self._answer(request, path, handler)
            self.metrics.request(path, response.status_code, time.perf_counter() - started)
            return response

        return answered

    async def _answer(self, request: Request, path: str, handler: Handler) -> Response:
        try:
            if path in PLAIN:
                return await handler(request)
            client = request.client.host if request.client else "unknown"
            with self.clients.counted(client):
                async with asyncio.timeout(self.settings.seconds):
                    return await handler(request)
        except Refused as error:
            return refusal(error)
        except TimeoutError:
            return refusal(busy(f"The request took longer than {self.settings.seconds:g} seconds", 5))
        except Exception:
            log.exception("%s failed", path)
            return JSONResponse({"error": "This request failed here; others go on"}, 500)

    async def _asked(self, request: Request) -> dict[str, Any]:
        """The parameters, once the key in them is known to be good."""
        asked = await asked_in(request, self.settings.body)
        key = asked.get("api_key") or request.headers.get("authorization", "").removeprefix("Bearer ").strip()
        self.clients.check_key(key if isinstance(key, str) else None)
        return asked

    async def translate(self, request: Request) -> Response:
        asked = await self._asked(request)
        texts, several = texts_of(asked, self.settings.characters, self.settings.items)
        source, target = text_of(asked, "source"), text_of(asked, "target")
        form = text_of(asked, "format", "text")
        if form not in FORMATS:
            raise Refused(400, f"{form} format is not supported")
        alternatives = number_of(asked, "alternatives", 0, self.settings.alternatives)
        self._check_languages(source, target)
        guesses = [self.translator.detect(text)[0] for text in texts] if source == "auto" else None
        groups: dict[str, list[int]] = {}
        for place in range(len(texts)):
            groups.setdefault(guesses[place].language if guesses else source, []).append(place)
        answers: dict[int, Translated] = {}
        for language, places in groups.items():
            found = await self.translator.translate(
                [texts[place] for place in places], language, target, alternatives=alternatives, markup=form == "html"
            )
            answers |= zip(places, found, strict=True)
        self.metrics.texts += len(texts)
        self.metrics.characters += sum(map(len, texts))
        ordered = [answers[place] for place in range(len(texts))]
        held: dict[str, Any] = {"translatedText": [each.best for each in ordered] if several else ordered[0].best}
        if guesses:
            told = [_guess(each) for each in guesses]
            held["detectedLanguage"] = told if several else told[0]
        if alternatives:
            others = [each.texts[1:] for each in ordered]
            held["alternatives"] = others if several else others[0]
        if any(each.remarks for each in ordered):
            remarks = [list(each.remarks) for each in ordered]
            held["remarks"] = remarks if several else remarks[0]
        return JSONResponse(held)

    def _check_languages(self, source: str, target: str) -> None:
        directions = self.translator.directions
        if source != "auto" and source not in directions.sources:
            raise unsupported(source)
        known = {code for each in directions.sources for code in (each, *directions.targets(each))}
        if target not in known:
            raise unsupported(target)

    async def detect(self, request: Request) -> Response:
        asked = await self._asked(request)
        texts, _ = texts_of(asked, self.settings.characters, self.settings.items)
        guesses = self.translator.detect("\n".join(texts))
        sure = [each for each in guesses if round(100 * each.confidence)] or guesses[:1]
        return JSONResponse([_guess(each) for each in sure])

    async def languages(self, request: Request) -> Response:
        await asked_in(request, self.settings.body)  # clients of LibreTranslate send a body with it
        return JSONResponse(self.translator.directions.listed())

    async def health(self, request: Request) -> Response:
        return JSONResponse({"status": "ok"})

    async def frontend(self, request: Request) -> Response:
        directions, settings = self.translator.directions, self.settings
        first = directions.sources[0]
        target = next(iter(directions.targets(first)), first)
        return JSONResponse({
            "charLimit": settings.characters, "frontendTimeout": 300, "apiKeys": bool(settings.api_keys),
            "keyRequired": bool(settings.api_keys), "suggestions": False, "filesTranslation": False,
            "supportedFilesFormat": [], "language": {
                "source": {"code": "auto", "name": "Detect"} if len(directions.sources) > 1
                else {"code": first, "name": name(first)},
                "target": {"code": target, "name": name(target)},
            },
            "explanations": self.explained_by is not None, "alternatives": settings.alternatives,
            "explainedCharacters": settings.explained,
        })  # fmt: skip

    async def explain(self, request: Request) -> Response:
        asked = await self._asked(request)
        if self.explained_by is None:
            raise Refused(404, "This model was exported, and exported models explain nothing")
        text = text_of(asked, "q").strip()
        if not text:
            raise missing("q")
        source, target = text_of(asked, "source"), text_of(asked, "target")
        self._check_languages(source, target)
        # What is translated is cut into sentences: one of them is explained, the first.
        spoken = [each.text for each in sentences(text) if each.text]
        text = spoken[0]
        if len(text) > self.settings.explained:
            raise Refused(400, f"Invalid request: request ({len(text)}) exceeds text limit ({self.settings.explained})")
        source = self.translator.detect(text)[0].language if source == "auto" else source
        way = self.translator.directions.way(source, target)
        if len(way) != 1:
            raise Refused(400, _unexplained(source, way, target))
        told = await self._in_turn(lambda: self._explained(text, target))
        return JSONResponse(told | {"sentence": text, "sentences": len(spoken)})

    def _explained(self, text: str, target: str) -> dict[str, Any]:
        from regard.decoding.settings import SearchSettings
        from regard.pipeline.explaining import explain

        assert self.explained_by is not None
        self._explainer = self._explainer or self.explained_by()
        to = target if self._explainer.tokenizer("source").languages else None
        try:
            told = explain(self._explainer, text, to=to, settings=SearchSettings(beam=self.settings.beam))
        except Misuse as error:
            raise Refused(400, f"Invalid request: {error}") from None
        return record(told, self.explanations.add(told))

    async def derivation(self, request: Request) -> Response:
        await self._asked(request)
        identity, step = self._place(request)
        text = await self._in_turn(lambda: self.explanations.derivation(identity, step))
        return Response(text, media_type="application/json")

    async def cells(self, request: Request) -> Response:
        asked = await self._asked(request)
        identity, step = self._place(request)
        of, cells = text_of(asked, "name"), asked.get("cells")
        if not isinstance(cells, list) or not all(type(each) is int for each in cells):
            raise Refused(400, "Invalid request: cells is not a list of whole numbers")
        return JSONResponse(await self._in_turn(lambda: self.explanations.cells(identity, step, of, cells)))

    @staticmethod
    def _place(request: Request) -> tuple[str, int]:
        """The explanation, and the step of its output: counted from 1 in addresses."""
        return str(request.path_params["id"]), number_of(dict(request.path_params), "step", 0, 100_000) - 1

    async def _in_turn(self, work: Callable[[], Any]) -> Any:
        """In a thread, one at a time: tracing changes what all of PyTorch does while it lasts."""
        async with self._explaining:
            return await asyncio.to_thread(work)

    async def metrics_text(self, request: Request) -> Response:
        batcher = self.translator.batcher
        sizes = list(batcher.sizes)
        gauges = {
            "waiting_texts": ("Sentences that wait to be translated.", float(batcher.waiting)),
            "batch_size": ("Mean size of the latest batches.", sum(sizes) / len(sizes) if sizes else 0.0),
            "explanations": ("Explanations that are kept.", float(len(self.explanations))),
        }
        return PlainTextResponse(self.metrics.told(gauges), media_type="text/plain; version=0.0.4")


def _guess(guess: Guess) -> dict[str, Any]:
    return {"confidence": round(100 * guess.confidence), "language": guess.language}


def _unexplained(source: str, way: list[str], target: str) -> str:
    """Why a way of no step, or of several, is not explained."""
    said = f"{name(source)} to {name(target)}"
    if not way:
        return f"{said}: there is nothing to translate, and nothing to explain"
    return f"{said} goes by way of {name(way[0])}: one step alone can be explained"


def refusal(error: Refused) -> Response:
    return JSONResponse({"error": error.message}, error.status, error.headers)


async def _page(request: Request) -> Response:
    return HTMLResponse(page.translating(), headers=page.HEADERS)


async def _docs(request: Request) -> Response:
    return HTMLResponse(page.documentation(request.app.openapi()), headers=page.HEADERS)


async def _as_error(request: Request, error: Exception) -> Response:
    """What the framework itself refuses (no such path, another method) in the same form."""
    assert isinstance(error, HTTPException)
    return JSONResponse({"error": str(error.detail)}, error.status_code, error.headers)
