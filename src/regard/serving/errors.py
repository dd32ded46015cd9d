"""An answer that says what was wrong: `{"error": message}`, as clients of LibreTranslate expect it."""

from collections.abc import Mapping


class Refused(Exception):
    """A request that gets no answer but a sentence and a status."""

    def __init__(self, status: int, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status, self.message, self.headers = status, message, dict(headers or {})


def missing(name: str) -> Refused:
    return Refused(400, f"Invalid request: missing {name} parameter")


def unsupported(language: str) -> Refused:
    return Refused(400, f"{language} is not supported")


def busy(message: str, seconds: int = 1) -> Refused:
    """Come back later."""
    return Refused(503, message, {"Retry-After": str(seconds)})
