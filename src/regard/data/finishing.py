"""The end of a preparation: dev and tests, the file of what was left out, and the manifest that makes it a whole."""

import json
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regard.data import learning
from regard.data.counting import counted
from regard.data.deciding import DEV, TEST, Fates, Overlap, Read
from regard.data.encoding import Encoder, Plan, Way, texts_of
from regard.data.pieces import Piece, joined, read_piece
from regard.data.prepared import FORMAT, TEXTS
from regard.data.settings import DataSettings
from regard.data.sharding import Job, behind, note_of
from regard.data.shards import MANIFEST, read_manifest, sha256
from regard.data.skipped import HEAD
from regard.data.sources import Source
from regard.data.writing import as_json, origins, write_manifest, write_shard
from regard.support.atomic import write_text, writing
from regard.support.errors import Misuse
from regard.text.tokenizer import Tokenizer


@dataclass(frozen=True)
class Gathered(Read):
    """A source that was read, with all that concerns it."""

    source: Source
    ways: list[Way]
    file: int

    def pieces(self, plan: Plan) -> Iterator[Piece]:
        """All that was kept of it."""
        return (read_piece(self.folder, number, plan.sorts) for number in range(len(self.record.pieces)))


@dataclass(frozen=True)
class Whole:
    """All that is known when the shards of the training data are written."""

    settings: DataSettings
    inputs: list[dict[str, Any]]
    key: str
    work: Path
    files: list[str]
    """The names of the sources' files, as origins number them."""
    pairs: list[str]
    plan: Plan
    tokenizers: Mapping[str, Tokenizer]
    train: list[Gathered]
    reads: dict[str, list[Gathered]]
    """Of dev and the tests, as far as they are given."""
    jobs: list[Job]
    fates: Fates
    overlaps: dict[str, Overlap]

    @property
    def out(self) -> Path:
        """Where what is made stands until it is whole."""
        return self.work / "out"


Group = list[tuple[Gathered, Iterator[Piece]]]
"""What dev or a test is made of."""


def finish(whole: Whole) -> None:
    """Write everything but the shards of the training data; the manifest of the whole comes last."""
    notes = [json.loads(note_of(whole.work, number).read_bytes()) for number in range(len(whole.jobs))]
    entries = [note["entry"] for note in notes if note["entry"]]
    if not entries:
        read, long = sum(each.record.kept for each in whole.train), sum(note["too_long"] for note in notes)
        raise Misuse(
            f"data.train: no example is left to train on; {read:,} were read, and {long:,} had too many tokens"
        )
    for stray in whole.out.rglob(".*.part"):
        stray.unlink()  # of a run that was killed while it wrote
    encoder = Encoder(whole.plan)
    write_manifest(whole.out / "train", encoder.columns, entries, whole.files, whole.plan.names)
    unknown = {"train": _added(note["unknown"] for note in notes)}
    groups = _groups(whole)
    for split in sorted(groups, key="dev".__ne__):
        unknown[split] = _write(whole, split, encoder, groups[split])
    _write_left(whole)
    counts = counted(whole.train, whole.reads, notes, whole.fates, whole.overlaps)
    write_text(whole.out / MANIFEST, as_json(_manifest(whole, unknown, counts)))


def _groups(whole: Whole) -> dict[str, Group]:
    """Dev and the tests: those that are given, and those that were held out of the training data."""
    found: dict[str, Group] = {
        split: [(each, each.pieces(whole.plan)) for each in reads] for split, reads in whole.reads.items()
    }
    for split, fate in (("dev", DEV), ("test", TEST)):
        if parts := sorted((whole.work / f"held-{fate}").glob("*.json")):
            found[split] = [(each, _parts(whole, each, parts)) for each in whole.train]
    return found


def _parts(whole: Whole, source: Gathered, parts: Sequence[Path]) -> Iterator[Piece]:
    """What was held out of one source, put together."""
    own = [part for part in parts if whole.jobs[int(part.stem)].file == source.file]
    return joined((read_piece(part.parent, int(part.stem), whole.plan.sorts) for part in own), whole.plan.sorts)


def _write(whole: Whole, split: str, encoder: Encoder, group: Group) -> dict[str, int]:
    """The shards of dev or a test, whole as they are, and their texts; how many tokens are unknown."""
    folder = whole.out / split
    folder.mkdir(exist_ok=True)
    entries: list[dict[str, Any]] = []
    unknown: list[dict[str, int]] = []
    with writing(folder / TEXTS, "w", encoding="utf-8", newline="\n") as texts:
        for source, pieces in group:
            for piece in pieces:
                made = [encoder.encode(piece, way, limit=False) for way in source.ways]
                unknown += [one.unknown for one in made]
                columns = {name: behind([one.columns[name] for one in made]) for name in encoder.columns}
                lines = piece.lines * len(made)
                entries.append(write_shard(folder, len(entries), columns, origins([source.file] * len(lines), lines)))
                for way in source.ways:
                    for told in texts_of(piece, whole.plan.sorts, way, whole.pairs):
                        texts.write(json.dumps(told, ensure_ascii=False) + "\n")
    write_manifest(folder, encoder.columns, entries, whole.files, whole.plan.names)
    return _added(unknown)


def _write_left(whole: Whole) -> None:
    """The file of what was left out: what reading left out first, in the order of the sources."""
    if whole.settings.skipped is None:
        return
    sources = [*whole.train, *(each for reads in whole.reads.values() for each in reads)]
    parts = [each.folder / "left.tsv" for each in sources]
    parts += [whole.work / "left" / f"{number:05}.tsv" for number in range(len(whole.jobs))]
    with writing(Path(whole.settings.skipped).expanduser()) as file:
        file.write(HEAD)
        for path in parts:
            with path.open("rb") as part:
                shutil.copyfileobj(part, file)


def _manifest(whole: Whole, unknown: Mapping[str, Mapping[str, int]], counts: Any) -> dict[str, Any]:
    files = learning.save(whole.tokenizers, whole.out)
    return {
        "format": FORMAT,
        "key": whole.key,
        "settings": whole.settings.model_dump(mode="json", exclude={"folder"}),
        "inputs": whole.inputs,
        "tokenizers": {
            side: {"file": file, "hash": whole.tokenizers[side].hash, "sha256": sha256(whole.out / file)}
            for side, file in files.items()
        },
        "splits": {name: _summary(whole.out / name, lost) for name, lost in unknown.items()},
        "counts": counts,
    }


def _summary(folder: Path, unknown: Mapping[str, int]) -> dict[str, Any]:
    """What the whole says of a split: how much it is, and the checksums that its own manifest does not hold."""
    manifest = read_manifest(folder)
    tokens = [name for name, column in manifest["columns"].items() if column["kind"] == "tokens"]
    return {
        "examples": manifest["rows"],
        "values": {name: manifest["values"][name] for name in tokens},
        "unknown": {name: number for name, number in unknown.items() if number},
        "files": {path.name: sha256(path) for path in (folder / MANIFEST, folder / TEXTS) if path.exists()},
    }


def _added(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    found: Counter[str] = Counter()
    for each in counts:
        found.update(each)
    return dict(found)
