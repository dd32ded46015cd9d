"""Prepared data as training needs them: sets, the texts they are scored against, tokenizers, sizes, directions."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from regard.data.prepared import Prepared
from regard.data.shards import ShardSet
from regard.models.sizes import Sizes
from regard.support.errors import Misuse
from regard.text.tokenizer import Tokenizer
from regard.training.config import COLUMNS
from regard.training.views import View

EXTRA = {"words", "pair", "characters"}
"""Columns that stand beside the others."""


class Held(NamedTuple):
    """A split that models are scored on."""

    examples: ShardSet
    texts: list[dict[str, Any]]
    """The examples as they stood, row by row."""


@dataclass(frozen=True)
class Corpus:
    """Prepared data."""

    folder: Path
    train: ShardSet
    dev: Held | None
    tests: dict[str, Held]
    tokenizers: dict[str, Tokenizer]
    """For source and target, as far as they are text."""
    names: tuple[str, ...]
    """Of tags or labels."""
    pairs: tuple[str, ...]
    """Of languages, where there are several."""
    sizes: Sizes


def opened(prepared: Prepared, task: str) -> Corpus:
    """What the task needs of prepared data; Misuse where they are not for it."""
    tokenizers, sizes = dict(prepared.tokenizers), dict(prepared.sizes())
    if task == "reconstruct":
        tokenizers["source"], sizes["source"] = tokenizers["target"], sizes["target"]
    held = {
        name: Held(_for_task(examples, task), prepared.texts(name))
        for name, examples in prepared.splits.items()
        if name != "train" and len(examples)
    }
    dev = held.pop("dev", None)
    return Corpus(
        prepared.folder, _for_task(prepared.train, task), dev, held, tokenizers, prepared.names, prepared.pairs,
        Sizes(**sizes),
    )  # fmt: skip


def _for_task(examples: ShardSet, task: str) -> ShardSet:
    columns = {*examples.columns} - EXTRA
    if columns not in COLUMNS[task]:
        wanted = " or ".join(" and ".join(sorted(each)) for each in COLUMNS[task])
        raise Misuse(
            f"{examples.folder}: task {task} needs data with {wanted}; here are {' and '.join(sorted(columns))}"
        )
    return View(examples, as_source=True) if task == "reconstruct" else examples


def groups_of(examples: ShardSet) -> NDArray[np.int64]:
    """[N]: which examples are of one sort: a pair of languages where there are several, else a file."""
    rows = np.arange(len(examples))
    if "pair" in examples.columns:
        return examples.gather("pair", rows)[0].astype(np.int64)
    files = {name: number for number, name in enumerate(examples.files)}
    return np.array([files[examples.origin(int(row)).file] for row in rows], np.int64)
