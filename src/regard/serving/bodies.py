"""What a request asks, wherever it stands: in a JSON body, in a form, or in the address."""

import json
from typing import Any
from urllib.parse import parse_qs

from starlette.requests import ClientDisconnect, Request

from regard.serving.errors import Refused

Asked = dict[str, Any]


async def asked_in(request: Request, most: int) -> Asked:
    """The parameters of a request: the address's, over them those of the body. Of a form, `q` may stand many times."""
    found: Asked = _of_pairs(request.url.query)
    body = await _read(request, most)
    if not body.strip():
        return found
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == "application/x-www-form-urlencoded":
        return found | _of_pairs(_text(body))
    if kind == "multipart/form-data":
        raise Refused(415, "multipart bodies are not read; send JSON, or a form of application/x-www-form-urlencoded")
    try:
        held = json.loads(_text(body))
    except (ValueError, RecursionError):
        raise Refused(400, "Invalid JSON format") from None
    if not isinstance(held, dict):
        raise Refused(400, "Invalid JSON format")
    return found | held


async def _read(request: Request, most: int) -> bytes:
    """The body, as far as it may go."""
    try:
        told = int(request.headers.get("content-length", "0"))
    except ValueError:
        raise Refused(400, "Invalid request: content-length is no number") from None
    parts, size = [], 0
    if told <= most:
        try:
            async for part in request.stream():
                size += len(part)
                parts.append(part)
                if size > most:
                    break
        except ClientDisconnect:
            raise Refused(400, "Invalid request: the body was cut off") from None
    if told > most or size > most:
        raise Refused(413, f"Invalid request: the body is larger than {most:,} bytes", {"Connection": "close"})
    return b"".join(parts)


def _of_pairs(text: str) -> Asked:
    try:
        pairs = parse_qs(text, keep_blank_values=True, errors="strict", max_num_fields=1000)
    except UnicodeDecodeError:
        raise Refused(400, "Invalid request: a parameter is not UTF-8") from None
    except ValueError:
        raise Refused(400, "Invalid request: too many parameters") from None
    return {name: values if name == "q" and len(values) > 1 else values[-1] for name, values in pairs.items()}


def _text(body: bytes) -> str:
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError:
        raise Refused(400, "Invalid request: the body is not UTF-8") from None


def text_of(asked: Asked, name: str, default: str | None = None) -> str:
    """One parameter that is text."""
    value = asked.get(name)
    value = default if value is None or (value == "" and default is not None) else value
    if value is None or (value == "" and default is None):
        raise Refused(400, f"Invalid request: missing {name} parameter")
    if not isinstance(value, str):
        raise Refused(400, f"Invalid request: {name} is not text")
    return value


def number_of(asked: Asked, name: str, default: int, most: int) -> int:
    """One parameter that is a whole number, 0 or more."""
    value = asked.get(name)
    value = default if value is None or value == "" else value
    try:
        number = int(value) if not isinstance(value, bool) else -1
    except (TypeError, ValueError, OverflowError):
        number = -1
    if number < 0:
        raise Refused(400, f"Invalid request: {name} is not a number")
    if number > most:
        raise Refused(400, f"Invalid request: {name} is at most {most}")
    return number


def texts_of(asked: Asked, characters: int, items: int) -> tuple[list[str], bool]:
    """The texts to be translated, and whether there was a list of them."""
    given = asked.get("q")
    several = isinstance(given, list)
    texts: list[Any] = list(given) if isinstance(given, list) else [given]
    if given is None or given in ("", []):
        raise Refused(400, "Invalid request: missing q parameter")
    if not all(isinstance(each, str) for each in texts):
        raise Refused(400, "Invalid request: q is neither text nor a list of texts")
    if len(texts) > items:
        raise Refused(400, f"Invalid request: {len(texts)} texts, and at most {items} may be asked for at once")
    if (size := sum(map(len, texts))) > characters:
        raise Refused(400, f"Invalid request: request ({size}) exceeds text limit ({characters})")
    return [_without_surrogates(each) for each in texts], several


def _without_surrogates(text: str) -> str:
    """Halves of characters, which JSON can write and UTF-8 cannot."""
    return text.encode("utf-8", "replace").decode("utf-8")
