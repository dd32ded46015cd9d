"""`load(folder)`: a model with its tokenizers.

model = load("models/en-de")
[result] = model.translate(["A black cat."], beam=5, attention=True)
result.text, result.score, result.tokens, result.attention.of_words()
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from regard.decoding.results import Hypothesis
from regard.decoding.settings import SearchSettings
from regard.decoding.vocabulary_map import VocabularyMap
from regard.models.contract import Labeller, Model, SequenceModel, Tagger
from regard.models.folder import Loaded, load_folder
from regard.pipeline import answering, letters
from regard.pipeline.forbidding import without
from regard.pipeline.hypotheses import of_text, result_of
from regard.pipeline.mapping import read_map
from regard.pipeline.precision import PRECISIONS, Precision, in_precision
from regard.pipeline.results import Labelled, Result, Tagged
from regard.pipeline.sources import LONGEST, Cut, Cutting, cut, target_language
from regard.pipeline.together import together
from regard.support.errors import Misuse
from regard.support.nearest import unknown
from regard.text.tokenizer import Tokenizer

CALLS = {
    "translate": "translate", "reconstruct": "translate", "caption": "predict", "language_model": "predict",
    "tag": "predict", "classify": "predict",
}  # fmt: skip
"""What each task is asked by."""


def load(
    folder: str | Path | Sequence[str | Path], device: str = "cpu", *, precision: Precision = "stored"
) -> "Pipeline":
    """A model folder, ready to be asked. Raises Misuse with one sentence about what is missing or wrong.

    Several folders are an ensemble: at each step the mean of their probabilities.

    precision: stored is float32, but weights that the folder holds in 8 bits stay so in memory and are multiplied out
    as they are needed; float32 multiplies them out once, for whoever looks inside; packed is float32 by a library that
    some CPUs are twice as quick with, at the price of a second copy of the weights; bfloat16 is quicker still where a
    CPU multiplies in it, and nearly always gives the same text; auto is packed where trying shows that it pays, and
    stored for a folder in 8 bits.
    """
    if precision not in PRECISIONS:
        raise Misuse(unknown("precision", str(precision), PRECISIONS))
    folders = [folder] if isinstance(folder, (str, Path)) else list(folder)
    if not folders:
        raise Misuse("name a model folder; got none")
    keep = precision in ("stored", "auto") and device == "cpu"
    each = [load_folder(one, device, keep=keep) for one in folders]
    loaded = each[0] if len(each) == 1 else together(each, list(map(str, folders)))
    in_precision(loaded.model, precision, device)
    return Pipeline(loaded, Path(folders[0]))


class Pipeline:
    """A model that takes text (rows, images) and gives results in the same order. It keeps nothing between calls."""

    def __init__(self, loaded: Loaded, folder: Path | None = None) -> None:
        self.model: Model = loaded.model
        self.task = loaded.task
        self.tokenizers = loaded.tokenizers
        self.names = loaded.names
        self.about: Mapping[str, Any] = loaded.about
        self.folder = folder

    @property
    def languages(self) -> tuple[str, ...]:
        """Those it translates into, as far as they are told apart or known."""
        tags = self.tokenizers["source"].languages if "source" in self.tokenizers else ()
        only = self.about.get("target")
        return tags or ((only,) if isinstance(only, str) else ())

    @property
    def longest(self) -> int:
        """The most tokens of a source that are taken at once."""
        told = self.about.get("longest")
        own = getattr(self.model, "longest", None)
        return int(told if isinstance(told, int) else own if own is not None else LONGEST)

    def translate(
        self,
        texts: str | Sequence[str],
        *,
        to: str | None = None,
        settings: SearchSettings | None = None,
        attention: bool = False,
        cut: Cut = "long",
        forbidden: Sequence[str] = (),
        prefix: str = "",
        vocabulary_map: VocabularyMap | str | Path | None = None,
        keep_problems: bool = False,
        **search: Any,
    ) -> list[Result]:
        """A result for each text, in order; an empty text gives an empty one.

        `search` are fields of SearchSettings (beam=5, nbest=3, sample=True, …). forbidden: words that are not said.
        prefix: what every result begins with. vocabulary_map: the target tokens that come into question, or a file of
        them; quicker where there are many, and no others are said. A text that is too long is cut at the ends of its
        sentences and put together again; one that cannot be taken raises a Misuse, or with `keep_problems` has its
        `problem` told in its result.
        """
        if CALLS[self.task] != "translate":
            raise Misuse(f"this model was built to {self.task}: ask it with predict (regard predict)")
        if isinstance(vocabulary_map, (str, Path)):
            vocabulary_map = read_map(vocabulary_map, self.tokenizers)
        return self._written(
            texts, to, _settings(settings, search), attention, cut, forbidden, prefix, vocabulary_map, keep_problems
        )

    def predict(
        self,
        inputs: str | Sequence[Any],
        *,
        settings: SearchSettings | None = None,
        attention: bool = False,
        keep_problems: bool = False,
        **search: Any,
    ) -> "list[Result] | list[Tagged] | list[Labelled]":
        """What the model's task asks for: tags, a label, a caption, a text that goes on, a translation.

        inputs: texts; lists of words, for tags, where the words are known; rows of numbers [length, width]; images
        [height, width] or [height, width, channels] from 0 to 255, or the names of their files.
        """
        if self.task in ("translate", "reconstruct"):
            return self.translate(inputs, settings=settings, attention=attention, keep_problems=keep_problems, **search)
        inputs = [inputs] if isinstance(inputs, str) else list(inputs)
        if isinstance(self.model, Tagger):
            return answering.tagged(self, inputs, keep_problems)
        if isinstance(self.model, Labeller):
            return answering.labelled(self, inputs, keep_problems)
        if self.task == "caption":
            return answering.captioned(self, inputs, _settings(settings, search), attention, keep_problems)
        return answering.continued(self, inputs, _settings(settings, search), keep_problems)

    def tokenizer(self, side: str) -> Tokenizer:
        """Of one side; Misuse where the folder holds none."""
        if side not in self.tokenizers:
            raise Misuse(f"{self.folder or 'model'}: no tokenizer of the {side} is in this model folder")
        return self.tokenizers[side]

    def sequence_model(self) -> SequenceModel:
        """The model, where it gives sequences."""
        if not isinstance(self.model, SequenceModel):
            raise Misuse(f"this model was built to {self.task}; it gives no sequences")
        return self.model

    def _written(
        self,
        texts: str | Sequence[str],
        to: str | None,
        settings: SearchSettings,
        attention: bool,
        how: Cut,
        forbidden: Sequence[str],
        prefix: str,
        vocabulary_map: VocabularyMap | None,
        keep_problems: bool,
    ) -> list[Result]:
        from regard.decoding.many import search_many

        texts = [texts] if isinstance(texts, str) else list(texts)
        source, target = self.tokenizer("source"), self.tokenizer("target")
        language = target_language(to, source.languages, self.about)
        cuttings = [cut(text, self.longest, how, lambda some: source.encode_batch(some, language=language))
                    for text in texts]  # fmt: skip
        if not keep_problems:
            _raise_first(cuttings)
        parts = [part for cutting in cuttings for part in cutting.parts]
        begin = target.encode(prefix, end=False) if prefix else []
        given = [letters.of_text(self.model, source, part.text, part.tokens) for part in parts]

        def search(places: Sequence[int], spellings: Sequence[Sequence[int]]) -> list[list[Hypothesis]]:
            return search_many(
                self.sequence_model(), [given[place] for place in places], settings, forbidden=spellings,
                prefixes=[begin] * len(places) if begin else None, vocabulary_map=vocabulary_map,
                want_weights=attention, numbers=places,
            )  # fmt: skip

        found = without(forbidden, len(given), target, search, begun=len(begin))
        results = iter([self._result(part.text, part.tokens, each) for part, each in zip(parts, found, strict=True)])
        return [of_text(cutting, [next(results) for _ in cutting.parts]) for cutting in cuttings]

    def _result(self, text: str, tokens: list[int], found: list[Hypothesis]) -> Result:
        return result_of(text, tokens, found, self.tokenizer("source"), self.tokenizer("target"))


def _settings(settings: SearchSettings | None, fields: Mapping[str, Any]) -> SearchSettings:
    settings = SearchSettings() if settings is None else settings
    if "nbest" in fields and "beam" not in fields and not fields.get("sample") and fields["nbest"] > settings.beam:
        fields = {**fields, "beam": fields["nbest"]}
    return settings.changed(**fields) if fields else settings


def _raise_first(cuttings: Sequence[Cutting]) -> None:
    for number, cutting in enumerate(cuttings, 1):
        if cutting.problem:
            where = f"text {number} of {len(cuttings)}: " if len(cuttings) > 1 else ""
            raise Misuse(f"{where}{cutting.problem}")
