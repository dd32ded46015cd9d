"""The network section of a configuration: settings told apart by `kind`. Reads no torch."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, get_args

from pydantic import Discriminator, Tag

from regard.config import settings_from
from regard.models.baseline_settings import FixedSettings, WindowSettings
from regard.models.rnn_settings import RecurrentSettings
from regard.models.transformer_settings import TransformerSettings
from regard.support.errors import Misuse
from regard.support.nearest import unknown

Task = Literal["translate", "tag", "classify", "caption", "language_model", "reconstruct"]
"""What a model is for: any sequence out of a sequence, a tag a word, a label a sequence, a text for an image, a text
that goes on, the source said again."""
TASKS: tuple[Task, ...] = get_args(Task)

Settled = TransformerSettings | RecurrentSettings | WindowSettings | FixedSettings
KINDS: dict[str, type[Settled]] = {
    "transformer": TransformerSettings, "recurrent": RecurrentSettings, "window": WindowSettings,
    "fixed": FixedSettings,
}  # fmt: skip


def _kind(given: Any) -> str:
    kind = given.get("kind", "transformer") if isinstance(given, Mapping) else getattr(given, "kind", "transformer")
    return str(kind)


Network = Annotated[
    Annotated[TransformerSettings, Tag("transformer")]
    | Annotated[RecurrentSettings, Tag("recurrent")]
    | Annotated[WindowSettings, Tag("window")]
    | Annotated[FixedSettings, Tag("fixed")],
    Discriminator(_kind),
]
"""One of them; a Transformer where no kind is said."""


def network_settings(given: Mapping[str, Any], *, name: str = "network") -> Settled:
    """The network section from plain values; every mistake in it told at once."""
    kind = given.get("kind", "transformer")
    if not isinstance(kind, str) or kind not in KINDS:
        raise Misuse(f"{name}: {unknown('kind of network', str(kind), KINDS)}")
    return settings_from(given, KINDS[kind], name=name)
