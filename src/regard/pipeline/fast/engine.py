"""An exported model, ready to be asked the way `pipeline.Pipeline` is; it reads no torch.

What the engine does not do (sampling with a seed, looks at each layer and head, rules beyond those named in
`translate`) is left to the model folder itself and PyTorch: `unable` says so in words.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from regard.decoding.settings import SearchSettings
from regard.pipeline.hypotheses import of_text
from regard.pipeline.results import Result
from regard.pipeline.sources import LONGEST, Cut, Cutting, Part, cut, target_language
from regard.support.errors import Failure, Misuse
from regard.text.specials import END, SPECIALS, UNKNOWN
from regard.text.tokenizer import Tokenizer

EXPORTED = "exported.json"
AT_ONCE = 64
"""Sentences that are searched together: those of like length, so that the longest holds up no others."""


def is_exported(folder: str | Path) -> bool:
    return (Path(folder) / EXPORTED).is_file()


def load_fast(
    folder: str | Path, *, kind: str = "default", threads: int | None = None, side_by_side: int = 1
) -> "Fast":
    """A folder that `export_folder` wrote. kind: the numbers to compute with (int8, float32, …; default: as written).

    threads: of each search; side_by_side: how many searches run at the same time.
    """
    folder = Path(folder)
    if not is_exported(folder):
        raise Misuse(f"{folder}: holds no exported model ({EXPORTED} is missing); regard export writes one")
    try:
        import ctranslate2
    except ImportError:
        raise Failure("CTranslate2 is not installed: pip install 'regard[serve]'") from None
    record = _record(folder / EXPORTED)
    tokenizers = {side: Tokenizer.load(folder / f"{side}.json") for side in record["tokenizers"]}
    try:
        engine = ctranslate2.Translator(
            str(folder), device="cpu", compute_type=kind, intra_threads=threads or 0, inter_threads=side_by_side
        )
    except (RuntimeError, ValueError) as error:
        raise Misuse(f"{folder}: CTranslate2 cannot load it: {error}") from None
    return Fast(engine, tokenizers, record, folder)


def unable(settings: SearchSettings, attention: bool) -> str | None:
    """What of a search the engine does not do, in words; None where it does all of it."""
    plain = SearchSettings()
    if attention:
        return "it does not tell where each layer and head looked"
    if settings.sample:
        return "its samples do not follow a seed"
    other = [name for name in ("groups", "coverage_penalty", "fewest", "stop") if _differs(settings, plain, name)]
    return f"it has no {' nor '.join(other)}" if other else None


def _differs(one: SearchSettings, other: SearchSettings, name: str) -> bool:
    return bool(getattr(one, name) != getattr(other, name))


class _Rules(NamedTuple):
    """In the engine's own terms."""

    forbidden: list[list[str]]
    begin: list[str]


class _Asked(NamedTuple):
    """What of a search is the same for all texts."""

    settings: SearchSettings
    rules: _Rules
    token_scores: bool


class Fast:
    """Translates as the exported model does."""

    task = "translate"

    def __init__(self, engine: Any, tokenizers: Mapping[str, Tokenizer], record: Mapping[str, Any], folder: Path):
        self.engine, self.tokenizers, self.folder = engine, tokenizers, folder
        self.about: Mapping[str, Any] = record["about"]
        self._source, self._target = (list(tokenizers[side].pieces) for side in ("source", "target"))
        self._numbers = {piece: number for number, piece in enumerate(self._target)}

    @property
    def languages(self) -> tuple[str, ...]:
        """Those it translates into, as far as they are told apart or known."""
        only = self.about.get("target")
        return self.tokenizers["source"].languages or ((only,) if isinstance(only, str) else ())

    @property
    def longest(self) -> int:
        told = self.about.get("longest")
        return told if isinstance(told, int) else LONGEST

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
        keep_problems: bool = False,
        token_scores: bool = False,
        **search: Any,
    ) -> list[Result]:
        """As `Pipeline.translate`; the scores of single tokens cost a second look at the result."""
        texts = [texts] if isinstance(texts, str) else list(texts)
        settings = (settings or SearchSettings()).changed(**search) if search else settings or SearchSettings()
        if said := unable(settings, attention):
            raise Misuse(f"CTranslate2 cannot do this: {said}; ask the model folder it was exported from")
        cuttings = self._cut(texts, to, cut)
        for number, cutting in enumerate(cuttings, 1):
            if cutting.problem and not keep_problems:
                where = f"text {number} of {len(cuttings)}: " if len(cuttings) > 1 else ""
                raise Misuse(f"{where}{cutting.problem}")
        asked = _Asked(settings, self._rules(forbidden, prefix), token_scores)
        found = iter(self._searched([part for each in cuttings for part in each.parts], asked))
        return [of_text(cutting, [next(found) for _ in cutting.parts]) for cutting in cuttings]

    def _cut(self, texts: Sequence[str], to: str | None, how: Cut) -> list[Cutting]:
        source = self.tokenizers["source"]
        language = target_language(to, source.languages, self.about)
        return [
            cut(text, self.longest, how, lambda some: source.encode_batch(some, language=language)) for text in texts
        ]

    def _rules(self, forbidden: Sequence[str], prefix: str) -> "_Rules":
        target = self.tokenizers["target"]
        spellings = [target.encode(spelling, end=False) for word in forbidden for spelling in (word, f" {word}")]
        begin = target.encode(prefix, end=False) if prefix else []
        return _Rules([self._pieces(each) for each in spellings], self._pieces(begin))

    def _pieces(self, numbers: Sequence[int]) -> list[str]:
        return [self._target[number] for number in numbers]

    def _searched(self, parts: Sequence[Part], asked: "_Asked") -> list[Result]:
        """A result for each part, searched in groups of like length."""
        order = sorted(range(len(parts)), key=lambda place: len(parts[place].tokens))
        found: dict[int, Result] = {}
        for first in range(0, len(order), AT_ONCE):
            group = order[first : first + AT_ONCE]
            found |= zip(group, self._group([parts[place] for place in group], asked), strict=True)
        return [found[place] for place in range(len(parts))]

    def _group(self, parts: Sequence[Part], asked: "_Asked") -> list[Result]:
        settings, rules = asked.settings, asked.rules
        sources = [[self._source[number] for number in part.tokens] for part in parts]
        answers = self.engine.translate_batch(
            sources, beam_size=settings.beam, num_hypotheses=settings.nbest, length_penalty=settings.length_penalty,
            no_repeat_ngram_size=settings.no_repeat, disable_unk=not settings.unknown, return_scores=True,
            max_decoding_length=max(settings.limit(len(part.tokens)) for part in parts), max_input_length=0,
            return_end_token=True, suppress_sequences=rules.forbidden or None,
            target_prefix=[rules.begin] * len(parts) if rules.begin else None,
        )  # fmt: skip
        exact: list[list[list[float]]] = []
        if asked.token_scores:
            pairs = [
                (source, pieces) for source, each in zip(sources, answers, strict=True) for pieces in each.hypotheses
            ]
            exact = self._token_scores(pairs, [len(each.hypotheses) for each in answers])
        return [
            self._result(part, each.hypotheses, each.scores, exact[place] if exact else None, settings)
            for place, (part, each) in enumerate(zip(parts, answers, strict=True))
        ]

    def _token_scores(
        self, pairs: Sequence[tuple[list[str], list[str]]], counts: Sequence[int]
    ) -> list[list[list[float]]]:
        """Of each hypothesis of each part."""
        spoken = [[piece for piece in target if piece != SPECIALS[END]] for _, target in pairs]
        told = self.engine.score_batch([source for source, _ in pairs], spoken)
        ended = [target[-1:] == [SPECIALS[END]] for _, target in pairs]
        scores = iter([each.log_probs if end else each.log_probs[:-1] for each, end in zip(told, ended, strict=True)])
        return [[list(next(scores)) for _ in range(count)] for count in counts]

    def _result(
        self, part: Part, hypotheses: Sequence[list[str]], scores: Sequence[float], exact: list[list[float]] | None,
        settings: SearchSettings,
    ) -> Result:  # fmt: skip
        made = []
        for place, (pieces, score) in enumerate(zip(hypotheses, scores, strict=True)):
            ended = pieces[-1:] == [SPECIALS[END]]
            numbers = [self._numbers[piece] for piece in (pieces[:-1] if ended else pieces)]
            target = self.tokenizers["target"]
            made.append(
                Result(
                    part.text, target.decode(numbers), score, score * max(len(pieces), 1) ** settings.length_penalty,
                    tuple(target.shown(numbers)), tuple(exact[place]) if exact else (), "end" if ended else "limit",
                    unknown=part.tokens.count(UNKNOWN) / len(part.tokens) if part.tokens else 0.0,
                )
            )  # fmt: skip
        first, *others = made
        return Result(**{**vars(first), "others": tuple(others)})


def _record(path: Path) -> dict[str, Any]:
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise Misuse(f"{path}: cannot be read: {error}") from None
    if not isinstance(record, dict) or record.get("format") != "regard-exported":
        raise Misuse(f"{path}: not of a model that regard exported")
    if record.get("format_version") != 1:
        raise Misuse(f"{path}: written in format {record.get('format_version')}; this regard reads 1")
    return record
