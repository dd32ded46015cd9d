"""A model that answers many at once: directions, detection, batches, markup; texts in, texts out."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from regard.decoding.settings import SearchSettings
from regard.pipeline.results import Result
from regard.serving.batching import Batcher
from regard.serving.directions import Directions
from regard.serving.errors import Refused
from regard.serving.markup import Cut, cut_html
from regard.serving.settings import ServerSettings
from regard.support.errors import Misuse
from regard.text.detector import Detector, Guess
from regard.text.sentences import joined, sentences

if TYPE_CHECKING:
    from regard.pipeline.fast.engine import Fast
    from regard.pipeline.model import Pipeline


@dataclass(frozen=True)
class Translated:
    """What became of one text."""

    texts: list[str]
    """The best translation, then further ones, as many as were asked for and there are."""
    remarks: tuple[str, ...] = ()
    """What a person should know of it: where a sentence was too long, and was cut."""

    @property
    def best(self) -> str:
        return self.texts[0]

    def nth(self, number: int) -> str:
        """The translation of that rank; the last one where there are fewer."""
        return self.texts[min(number, len(self.texts) - 1)]


class Engine(Protocol):
    """What translates: a `Pipeline`, or a `Fast`."""

    def translate(
        self, texts: Sequence[str], *, to: str | None, settings: SearchSettings, keep_problems: bool
    ) -> list[Result]: ...


@dataclass(frozen=True)
class _Key:
    """Sentences with one key are translated together."""

    to: str | None
    alternatives: int


class Translator:
    """Lives in one event loop; `close` it there."""

    def __init__(
        self,
        engine: "Pipeline | Fast",
        settings: ServerSettings,
        detector: Detector | None = None,
        side_by_side: int = 1,
    ) -> None:
        self.engine, self.settings, self.detector = engine, settings, detector
        self.tags = engine.tokenizers["source"].languages if "source" in engine.tokenizers else ()
        self.directions = Directions.of(engine.about, self.tags)
        self.batcher: Batcher[Result] = Batcher(
            self._work, most=settings.batch, waiting=settings.waiting, gather=settings.gather / 1000,
            side_by_side=side_by_side,
        )  # fmt: skip

    @property
    def folder(self) -> Path | None:
        return self.engine.folder

    def detect(self, text: str) -> list[Guess]:
        """Guesses among the languages the model translates from, the likeliest first."""
        sources = self.directions.sources
        guesses = self.detector.detect(text) if self.detector is not None else []
        found = [guess for guess in guesses if guess.language in sources]
        return found or [Guess(sources[0], 0.0)]

    async def translate(
        self, texts: Sequence[str], source: str, target: str, *, alternatives: int = 0, markup: bool = False
    ) -> list[Translated]:
        """Each text in the target's language, its lines and white space kept."""
        way = self.directions.way(source, target)
        if not way:
            return [Translated([text]) for text in texts]
        cuts = [cut_html(text) for text in texts] if markup else None
        plain = [each for cut in cuts for each in cut.texts] if cuts is not None else list(texts)
        found = [Translated([text]) for text in plain]
        for place, to in enumerate(way):
            further = await self._step([each.best for each in found], to, alternatives if place == len(way) - 1 else 0)
            found = [
                Translated(after.texts, tuple(dict.fromkeys([*before.remarks, *after.remarks])))
                for before, after in zip(found, further, strict=True)
            ]
        if cuts is None:
            return found
        coming = iter(found)
        return [_joined_markup(cut, [next(coming) for _ in cut.texts], alternatives) for cut in cuts]

    async def _step(self, texts: Sequence[str], to: str, alternatives: int) -> list[Translated]:
        """All sentences of all texts, in one go."""
        cuts = [sentences(text) for text in texts]
        spoken = [each.text for cut in cuts for each in cut if each.text]
        key = _Key(to if self.tags else None, alternatives)
        results = iter(await self.batcher.answer(key, spoken) if spoken else [])
        found = []
        for number, cut in enumerate(cuts, 1):
            own = [next(results) if each.text else None for each in cut]
            for result in own:
                if result is not None and result.problem:
                    where = f"text {number} of {len(cuts)}: " if len(cuts) > 1 else ""
                    raise Refused(400, f"Invalid request: {where}{result.problem}")
            versions = [
                joined(cut, ["" if each is None else _nth(each, rank) for each in own])
                for rank in range(alternatives + 1)
            ]
            notes = tuple(note for each in own if each is not None for note in each.notes)
            found.append(Translated(list(dict.fromkeys(versions)), notes))
        return found

    def _work(self, key: Hashable, texts: Sequence[str]) -> list[Result]:
        """In a thread: one call of the engine."""
        assert isinstance(key, _Key)
        beam = max(self.settings.beam, key.alternatives + 1)
        settings = SearchSettings(beam=beam, nbest=key.alternatives + 1)
        ask = partial(self.engine.translate, to=key.to, settings=settings, keep_problems=True)
        try:
            return ask(list(texts))
        except Misuse as error:
            return [Result(text, "", problem=str(error)) for text in texts]

    def close(self) -> None:
        self.batcher.close()


def _nth(result: Result, number: int) -> str:
    """The result of that rank; the best one where there are fewer."""
    return result.all[number].text if number < len(result.all) else result.text


def _joined_markup(cut: Cut, translated: Sequence[Translated], alternatives: int) -> Translated:
    versions = [cut.joined([each.nth(number) for each in translated]) for number in range(alternatives + 1)]
    return Translated(list(dict.fromkeys(versions)), tuple(note for each in translated for note in each.remarks))
