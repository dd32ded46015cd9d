"""What the server's paths take and give, as OpenAPI says it."""

from typing import Any

Json = dict[str, Any]

TEXT: Json = {"type": "string", "minLength": 1}
TEXTS: Json = {"oneOf": [TEXT, {"type": "array", "items": {"type": "string"}, "minItems": 1}]}
KEY: Json = {"type": "string", "description": "Where the server asks for one."}
ERROR: Json = {
    "type": "object", "required": ["error"], "properties": {"error": {"type": "string"}},
}  # fmt: skip
GUESS: Json = {
    "type": "object", "required": ["confidence", "language"],
    "properties": {"confidence": {"type": "number", "minimum": 0, "maximum": 100}, "language": {"type": "string"}},
}  # fmt: skip
REFUSALS = {
    "400": "What was asked cannot be read, or is not to be had.",
    "403": "A key is needed, or this is none.",
    "413": "The body is too large.",
    "415": "Bodies of this kind are not read.",
    "429": "Too many requests.",
    "503": "Too much is waiting, or it took too long; Retry-After says when to come back.",
}


def answer(said: str, shape: Json | None, *, kind: str = "application/json") -> Json:
    return {"description": said, "content": {kind: {"schema": shape or {"type": "string"}}}}


def route(summary: str, gives: Json, takes: Json | None = None, refusals: tuple[str, ...] = tuple(REFUSALS)) -> Json:
    """An operation: its answers, and its body as JSON or as a form."""
    responses = {"200": gives} | {status: answer(REFUSALS[status], ERROR) for status in refusals}
    held: Json = {"summary": summary, "responses": responses}
    if takes is not None:
        kinds = ("application/json", "application/x-www-form-urlencoded")
        held["requestBody"] = {"required": True, "content": {kind: {"schema": takes} for kind in kinds}}
    return held


def parameters(required: tuple[str, ...], **properties: Json) -> Json:
    return {"type": "object", "required": list(required), "properties": {**properties, "api_key": KEY}}


def with_status(held: Json, status: str, said: str) -> Json:
    held["responses"][status] = answer(said, ERROR)
    return held


LANGUAGE: Json = {"type": "string", "minLength": 1, "description": "A code of GET /languages.", "example": "es"}
SOURCE: Json = {**LANGUAGE, "description": "A code, or auto.", "example": "en"}

TRANSLATE = route(
    "Translate a text, or a list of texts.",
    answer("The translation.", {
        "type": "object", "required": ["translatedText"], "properties": {
            "translatedText": {"oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]},
            "detectedLanguage": {"oneOf": [GUESS, {"type": "array", "items": GUESS}]},
            "alternatives": {"type": "array"},
            "remarks": {"type": "array", "description": "Where something was cut that is too long for the model."},
        },
    }),
    parameters(
        ("q", "source", "target"), q=TEXTS, source=SOURCE, target=LANGUAGE,
        format={"type": "string", "enum": ["text", "html"], "default": "text"},
        alternatives={"type": "integer", "minimum": 0, "default": 0},
    ),
)  # fmt: skip
DETECT = route(
    "Which language a text is in.",
    answer("Guesses, the likeliest first.", {"type": "array", "items": GUESS}),
    parameters(("q",), q=TEXTS),
)
LANGUAGES = route(
    "The languages there are.",
    answer("Each source language with its targets.", {
        "type": "array", "items": {
            "type": "object", "required": ["code", "name", "targets"], "properties": {
                "code": {"type": "string"}, "name": {"type": "string"},
                "targets": {"type": "array", "items": {"type": "string"}},
            },
        },
    }), refusals=("400", "413", "415", "429", "503"),
)  # fmt: skip
HEALTH = route(
    "Whether the server is there.",
    answer("It is.", {"type": "object", "required": ["status"], "properties": {"status": {"const": "ok"}}}),
    refusals=(),
)
FRONTEND = route(
    "What a page needs to know.", answer("Limits and languages.", {"type": "object"}), refusals=("429", "503")
)
EXPLAIN = with_status(
    route(
        "Translate a text and tell how it came about: where each word looked, and what else was likely.",
        answer("The translation, its steps, its alignment, and an id to ask further by.", {
            "type": "object", "required": ["id", "translatedText", "steps"],
            "properties": {
                "id": {"type": "string"}, "translatedText": {"type": "string"}, "logProbability": {"type": "number"},
                "steps": {"type": "array", "items": {"type": "object"}}, "alignment": {"type": "object"},
            },
        }),
        parameters(("q", "source", "target"), q=TEXT, source=SOURCE, target=LANGUAGE),
    ),
    "404", "The model explains nothing.",
)  # fmt: skip
_PLACE: list[Json] = [
    {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}},
    {"name": "step", "in": "path", "required": True, "schema": {"type": "integer", "minimum": 1},
     "description": "Of the output, from 1."},
]  # fmt: skip
DERIVATION = with_status(
    route(
        "How the probabilities of a step were computed: every operation, large tensors without their numbers.",
        answer("A derivation, as docs/derivation.schema.json has it.", {"type": "object"}),
    )
    | {"parameters": _PLACE},
    "404", "It is not kept, or there is no such step.",
)  # fmt: skip
CELLS = with_status(
    route(
        "Numbers of one step of a derivation.",
        answer("The numbers, and the largest magnitude of the step.", {
            "type": "object", "required": ["values", "reach"],
            "properties": {"values": {"type": "array"}, "reach": {"type": "number"}},
        }),
    )
    | {
        "parameters": _PLACE,
        "requestBody": {"required": True, "content": {"application/json": {"schema": parameters(
            ("name", "cells"), name=TEXT, cells={"type": "array", "items": {"type": "integer", "minimum": 0}},
        )}}},
    },
    "404", "It is not kept, or there is no such step.",
)  # fmt: skip
METRICS = route("Counts, for Prometheus.", answer("Text.", None, kind="text/plain"), refusals=())
WORK = route(
    "Work a problem step by step, and mark the answer in it if there is one.",
    answer("A derivation, and the marks.", {"type": "object", "required": ["derivation", "marks"]}),
    parameters(("problem",), problem={**TEXT, "description": "A problem file (YAML)."}),
)
PROBLEMS = route(
    "The worked problems that come with regard.",
    answer("Each with its text.", {"type": "array", "items": {"type": "object"}}), refusals=("429", "503"),
)  # fmt: skip


def cleaned(schema: Json) -> Json:
    """Without the answers that the framework would give and this server does not."""
    for operations in schema["paths"].values():
        for operation in operations.values():
            operation["responses"].pop("422", None)
    for unused in ("HTTPValidationError", "ValidationError"):
        schema.get("components", {}).get("schemas", {}).pop(unused, None)
    return schema
