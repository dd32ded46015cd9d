"""An exported model, ready to be asked the way `pipeline.Pipeline` is; it reads no torch.

What the engine does not do (sampling with a seed, looks at each layer and head, rules beyond those named in
`translate`) is left to the model folder itself and PyTorch: `unable` says so in words.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from regard.decoding.settings import SearchSettings
from regard.models.reading import MODEL
from regard.pipeline.fast.layout import PLACES
from regard.pipeline.fast.searching import Asked, Found, search, token_scores
from regard.pipeline.hypotheses import of_text
from regard.pipeline.results import Result
from regard.pipeline.sources import LONGEST, Cut, Cutting, Part, cut, target_language
from regard.support.errors import Failure, Misuse
from regard.text.tokenizer import Tokenizer

EXPORTED = "exported.json"
AT_ONCE = 64
"""Sentences that are searched together: those of like length, so that the longest holds up no others."""


def is_exported(folder: str | Path) -> bool:
    return (Path(folder) / EXPORTED).is_file()


def load_fast(
    folder: str | Path, *, kind: str | None = None, threads: int | None = None, side_by_side: int = 1
) -> "Fast":
    """A folder that `export_folder` wrote, or a model folder, which is then laid out in memory.

    kind: the numbers of its matrices (int8, float32, float16); None: as they are written. threads: of each search;
    side_by_side: how many searches run at the same time.
    """
    folder = Path(folder)
    try:
        import ctranslate2
    except ImportError:
        raise Failure("CTranslate2 is not installed: pip install 'regard[serve]'") from None
    files: dict[str, bytes] | None = None
    if is_exported(folder):
        record = _record(folder / EXPORTED)
        tokenizers = {side: Tokenizer.load(folder / f"{side}.json") for side in record["tokenizers"]}
    elif (folder / MODEL).is_file():
        from regard.pipeline.fast.export import in_memory

        files, record, tokenizers = in_memory(folder, kind)  # type: ignore[arg-type] # which is checked there
    else:
        raise Misuse(f"{folder}: holds neither a model ({MODEL}) nor an exported one ({EXPORTED}; regard export)")
    try:
        engine = ctranslate2.Translator(
            str(folder), device="cpu", compute_type=(kind if files is None else None) or "default",
            intra_threads=threads or 0, inter_threads=side_by_side, files=files,
        )  # fmt: skip
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


class Fast:
    """Translates as the exported model does."""

    task = "translate"

    def __init__(self, engine: Any, tokenizers: Mapping[str, Tokenizer], record: Mapping[str, Any], folder: Path):
        self.engine, self.tokenizers, self.folder = engine, tokenizers, folder
        self.about: Mapping[str, Any] = record["about"]
        self.places = int(record.get("places") or PLACES)
        self._source, self._target = (list(tokenizers[side].pieces) for side in ("source", "target"))
        self._numbers = {piece: number for number, piece in enumerate(self._target)}

    @property
    def languages(self) -> tuple[str, ...]:
        """Those it translates into, as far as they are told apart or known."""
        only = self.about.get("target")
        return self.tokenizers["source"].languages or ((only,) if isinstance(only, str) else ())

    @property
    def longest(self) -> int:
        """The most tokens of a source that are taken at once."""
        told = self.about.get("longest")
        return told if isinstance(told, int) else min(LONGEST, self.places)

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
        asked = self._asked(settings, forbidden, prefix)
        found = iter(self._searched([part for each in cuttings for part in each.parts], asked, token_scores))
        return [of_text(cutting, [next(found) for _ in cutting.parts]) for cutting in cuttings]

    def _cut(self, texts: Sequence[str], to: str | None, how: Cut) -> list[Cutting]:
        source = self.tokenizers["source"]
        language = target_language(to, source.languages, self.about)
        return [
            cut(text, self.longest, how, lambda some: source.encode_batch(some, language=language)) for text in texts
        ]

    def _asked(self, settings: SearchSettings, forbidden: Sequence[str], prefix: str) -> Asked:
        target = self.tokenizers["target"]
        spellings = [target.encode(spelling, end=False) for word in forbidden for spelling in (word, f" {word}")]
        begin = target.encode(prefix, end=False) if prefix else []
        return Asked(settings, [self._pieces(each) for each in spellings], self._pieces(begin), self.places)

    def _pieces(self, numbers: Sequence[int]) -> list[str]:
        return [self._target[number] for number in numbers]

    def _searched(self, parts: Sequence[Part], asked: Asked, token_scores: bool) -> list[Result]:
        """A result for each part, searched in groups of like length."""
        order = sorted(range(len(parts)), key=lambda place: len(parts[place].tokens))
        found: dict[int, Result] = {}
        for first in range(0, len(order), AT_ONCE):
            group = order[first : first + AT_ONCE]
            found |= zip(group, self._group([parts[place] for place in group], asked, token_scores), strict=True)
        return [found[place] for place in range(len(parts))]

    def _group(self, parts: Sequence[Part], asked: Asked, exact: bool) -> list[Result]:
        sources = [[self._source[number] for number in part.tokens] for part in parts]
        answers = search(self.engine, sources, asked)
        if exact:
            pairs = [(source, each) for source, found in zip(sources, answers, strict=True) for each in found]
            scores = iter(token_scores(self.engine, pairs))
            answers = [[replace(each, token_scores=next(scores)) for each in found] for found in answers]
        return [self._result(part, found, asked.settings) for part, found in zip(parts, answers, strict=True)]

    def _result(self, part: Part, found: Sequence[Found], settings: SearchSettings) -> Result:
        target = self.tokenizers["target"]
        made = []
        for each in found:
            numbers = [self._numbers[piece] for piece in each.spoken]
            made.append(
                Result(
                    part.text, target.decode(numbers), each.score(settings), each.log_prob,
                    tuple(target.shown(numbers)), each.token_scores, each.ending,
                    unknown=self.tokenizers["source"].unknown_share(part.tokens),
                )
            )  # fmt: skip
        return replace(made[0], others=tuple(made[1:]))


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
