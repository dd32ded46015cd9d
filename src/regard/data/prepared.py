"""What `prepare` left in a folder: shards of every split, the tokenizers, the texts that scores are measured against.

prepared = Prepared("models/en-de/data")        opens it; Misuse where there is none, Failure where it is damaged
prepared.splits["train"]                        ShardSet
prepared.tokenizers["source"]                   Tokenizer, for each side that is text
prepared.texts("dev")[7]                        {"source": "…", "target": "…"}: example 7 as it stood
prepared.sizes()                                what a network asks the data for, by the names of `models.Sizes`
prepared.verify()                               reads every byte; Failure names what was altered
"""

import json
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from regard.data.encoding import BYTES
from regard.data.inputs import checking
from regard.data.shards import MANIFEST, Column, ShardSet, Told, sha256
from regard.support.errors import Failure, Misuse
from regard.text.tokenizer import Tokenizer

FORMAT: Final = 3
TEXTS: Final = "texts.jsonl"


class Prepared:
    """A folder of prepared data. `fresh` says whether the call that gave it had anything to do."""

    def __init__(self, folder: str | Path, *, fresh: bool = False) -> None:
        self.folder, self.fresh = Path(folder), fresh
        self.manifest = _manifest(self.folder)
        self.splits: dict[str, ShardSet] = {name: ShardSet(self.folder / name) for name in self.manifest["splits"]}
        """train, dev (where there is any) and the tests by their names."""

    def __repr__(self) -> str:
        sizes = ", ".join(f"{name} {len(each):,}" for name, each in self.splits.items())
        return f"<Prepared {self.folder}: {sizes}>"

    @property
    def train(self) -> ShardSet:
        """The training data."""
        return self.splits["train"]

    @property
    def dev(self) -> ShardSet | None:
        """What is measured on while training, if there is any."""
        return self.splits.get("dev")

    @property
    def tests(self) -> tuple[str, ...]:
        """The names of the tests."""
        return tuple(name for name in self.splits if name not in ("train", "dev"))

    @property
    def columns(self) -> dict[str, Column]:
        """What an example is made of."""
        return self.train.columns

    @cached_property
    def tokenizers(self) -> dict[str, Tokenizer]:
        """Of source and target, as far as they are text; one and the same object where they share it."""
        files = self.manifest["tokenizers"]
        loaded = {each["file"]: Tokenizer.load(self.folder / each["file"]) for each in files.values()}
        return {side: loaded[each["file"]] for side, each in files.items()}

    @property
    def names(self) -> tuple[str, ...]:
        """Of the tags or labels, by their numbers; empty where there are none."""
        column = next((name for name in ("tags", "label") if name in self.columns), None)
        return self.train.names(column) if column else ()

    @property
    def pairs(self) -> tuple[str, ...]:
        """The pairs of languages ("en-es") by their numbers, where there are several; else empty."""
        return self.train.names("pair") if "pair" in self.columns else ()

    @property
    def key(self) -> str:
        """What the data were prepared from and how, in one hash: equal keys, equal bytes."""
        return str(self.manifest["key"])

    @property
    def report(self) -> str:
        """Everything that was counted, in words."""
        from regard.data.reporting import report

        return report(self.manifest)

    def texts(self, split: str) -> list[dict[str, Any]]:
        """The examples of dev or a test as they stood, in the order of the shard set.

        A text is a string, words and tags are lists; `pair` where there are several. Numbers and pixels are in the
        shards alone, and so is the training data.
        """
        path = self.folder / split / TEXTS
        if split == "train" or split not in self.splits:
            known = ", ".join(name for name in self.splits if name != "train") or "none"
            raise ValueError(f"split: expected one whose texts are kept ({known}); got {split!r}")
        with path.open(encoding="utf-8") as file:
            return [json.loads(line) for line in file]

    def sizes(self) -> dict[str, Any]:
        """How large the world is: vocabularies, names, widths."""
        found: dict[str, Any] = {}
        for name, column in self.columns.items():
            if column.kind == "tokens":
                found[name] = column.size
            elif column.kind == "spelling":
                found["characters"] = BYTES
            elif name in ("tags", "label"):
                found["tags" if name == "tags" else "labels"] = column.size
            elif column.kind == "numbers" and name == "source":
                found["input_width"] = column.width
            elif column.kind == "image":
                channels = column.channels or 1
                found["image"] = (channels, (column.width or 0) // channels, 0)
        return found

    def verify(self, *, quiet: bool = True) -> None:
        """Read every byte; a Failure names each file that is not what was written. Not quiet: told where it is much."""
        total = sum(each["bytes"] for split in self.splits.values() for each in split.manifest["shards"])
        with checking("verifying", total, quiet=quiet) as told:
            self._verify(told)

    def _verify(self, told: Told) -> None:
        for name, written in self.manifest["splits"].items():
            for file, expected in written["files"].items():
                self._check(self.folder / name / file, expected)
            self.splits[name].verify(told)
        for each in self.manifest["tokenizers"].values():
            self._check(self.folder / each["file"], each["sha256"])

    def _check(self, path: Path, expected: str) -> None:
        if not path.is_file():
            raise Failure(f"{path}: missing; prepare the data again")
        if sha256(path) != expected:
            raise Failure(f"{path}: altered since it was written; prepare the data again")


def _manifest(folder: Path) -> dict[str, Any]:
    path = folder / MANIFEST
    try:
        manifest = json.loads(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        raise Misuse(f"{folder}: no prepared data here (there is no {MANIFEST}); run regard prepare") from None
    except ValueError:
        raise Failure(f"{path}: altered since it was written; prepare the data again") from None
    if not isinstance(manifest, dict) or "splits" not in manifest:
        raise Misuse(
            f"{folder}: not a folder of prepared data" + (", but one split of it" if "shards" in manifest else "")
        )
    if manifest.get("format") != FORMAT:
        raise Misuse(f"{path}: written in format {manifest.get('format')}, this version reads {FORMAT}; prepare again")
    return manifest
