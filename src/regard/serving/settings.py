"""What can be set about a server. Every limit has an answer of its own."""

from pydantic import Field, field_validator

from regard.config import Settings


class ServerSettings(Settings):
    """Limits, keys and how requests are gathered."""

    characters: int = Field(default=5000, ge=1)
    """The most characters of a request, all of its texts together."""
    items: int = Field(default=100, ge=1)
    """The most texts of a request."""
    body: int = Field(default=1 << 20, ge=1)
    """The most bytes of a request's body."""
    alternatives: int = Field(default=4, ge=0)
    """The most further translations that may be asked for."""
    waiting: int = Field(default=512, ge=1)
    """The most sentences that wait to be translated; further requests are asked to come back."""
    seconds: float = Field(default=30.0, gt=0)
    """The longest a request may take."""
    head_seconds: float = Field(default=10.0, gt=0)
    """In which the head of a request must have come; its body belongs to the request."""
    at_once: int = Field(default=256, ge=1)
    """The most requests that one client may have open."""
    per_minute: int | None = Field(default=None, ge=1)
    """The most requests of one client (or key) a minute; unset, as many as it likes."""
    api_keys: tuple[str, ...] = ()
    """If there are any, each request must come with one of them."""
    origins: tuple[str, ...] = ()
    """Web pages elsewhere that may ask: their origins, or * for all. None unless named."""
    gather: float = Field(default=3.0, ge=0)
    """Milliseconds that a request waits for others to be translated together with."""
    batch: int = Field(default=64, ge=1)
    """The most sentences that are translated together."""
    beam: int = Field(default=5, ge=1)
    """Hypotheses kept for a sentence."""
    explanations: int = Field(default=32, ge=1)
    """How many explanations are kept, the latest …"""
    explanation_minutes: float = Field(default=30.0, gt=0)
    """… and for how long."""
    explained: int = Field(default=300, ge=1)
    """The most characters of a text that is explained."""

    @field_validator("origins")
    @classmethod
    def _origins(cls, origins: tuple[str, ...]) -> tuple[str, ...]:
        for each in origins:
            if each != "*" and not each.startswith(("http://", "https://")):
                raise ValueError(f"expected origins like https://example.org, or *; got {each!r}")
        return origins
