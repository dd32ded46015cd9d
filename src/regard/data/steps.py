"""The steps of a preparation, each of which finds what an earlier run had done already."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from regard.data import learning
from regard.data.counting import counted
from regard.data.deciding import DEV, TEST, Fates, Overlap, Read, count, decide
from regard.data.encoding import Encoder, Plan, Way, texts_of
from regard.data.gathering import Record, gather, sides_of
from regard.data.inputs import spoken
from regard.data.pieces import Piece, joined, read_piece
from regard.data.prepared import FORMAT, TEXTS
from regard.data.settings import DataSettings
from regard.data.sharding import PLAN, Job, behind, note_of, shard_all
from regard.data.shards import MANIFEST, read_manifest, sha256
from regard.data.sources import Source
from regard.data.writing import as_json, origins, write_manifest, write_shard
from regard.support.atomic import write_text, writing
from regard.support.errors import Misuse
from regard.support.progress import Progress
from regard.text.tokenizer import Tokenizer

ALONE: Final = 50_000
"""Examples up to which it does not pay to start processes."""


@dataclass(frozen=True)
class Gathered(Read):
    """A source that was read, with all that concerns it."""

    source: Source
    ways: list[Way]
    file: int


class Steps:
    """One preparation, in the work folder."""

    def __init__(
        self, settings: DataSettings, files: list[dict[str, Any]], key: str, work: Path, processes: int, quiet: bool
    ) -> None:
        self.settings, self.inputs, self.key, self.work, self.quiet = settings, files, key, work, quiet
        self.processes = processes
        self.sorts = settings.splits["train"][0].sorts()
        self.spoken = spoken(settings)
        self.given = learning.given(settings, self.sorts, self.spoken.tags)
        self.files: list[str] = []

    def run(self) -> None:
        """All of them; at the end all that is to stand in the folder stands in `out`."""
        reads = self._read()
        train = reads.pop("train")
        if not sum(each.record.kept for each in train):
            raise Misuse(f"data.train: there is no example to train on in {' and '.join(r.record.name for r in train)}")
        with self._telling("deciding", sum(each.record.kept for each in train)) as told:
            fates, overlaps = decide(train, reads, self.settings, self.work)
            told.add(len(fates))
        tokenizers = self._tokenizers(train, fates)
        plan = self._plan(tokenizers, [*train, *(each for split in reads.values() for each in split)])
        jobs = self._jobs(plan, train)
        with self._telling("writing shards", len(fates), "examples") as told:
            shard_all(self.work, jobs, self.processes if len(fates) > ALONE else 1,
                      lambda rows, before: told.add(rows, done_before=before))  # fmt: skip
        self._finish(plan, train, reads, fates, overlaps, jobs, tokenizers)

    def _telling(self, what: str, total: int | None = None, unit: str = "examples") -> Progress:
        return Progress(what, unit, total, quiet=self.quiet)

    def _read(self) -> dict[str, list[Gathered]]:
        sizes = {each["name"]: each["bytes"] for each in self.inputs}
        splits = self.settings.splits
        total = sum(_weight(source, sizes) for sources in splits.values() for source in sources)
        found: dict[str, list[Gathered]] = {}
        behind_us = 0
        with self._telling("reading") as progress:
            for split, sources in splits.items():
                for number, source in enumerate(sources):
                    weight = _weight(source, sizes)

                    def told(examples: int, share: float, weight: int = weight, before: int = behind_us) -> None:
                        progress.add(examples, share=(before + share * weight) / total)

                    folder = self.work / "read" / f"{split}-{number:03}"
                    record = gather(source, folder, self.settings, train=split == "train", told=told)
                    found.setdefault(split, []).append(self._gathered(source, folder, record))
                    behind_us += weight
        return found

    def _gathered(self, source: Source, folder: Path, record: Record) -> Gathered:
        self.files.append((source.files() or [source.name])[0])
        ways, kind = self.spoken.ways(source), self.spoken.kind(source)
        return Gathered(folder, record, len(sides_of(self.sorts)), kind, source, ways, len(self.files) - 1)

    def _tokenizers(self, train: Sequence[Gathered], fates: Fates) -> dict[str, Tokenizer]:
        if self.given is not None:
            return self.given
        files = {side: self.work / f"{side}.json" for side in learning.text_sides(self.sorts)}
        if all(path.exists() for path in files.values()):
            return {side: Tokenizer.load(path) for side, path in files.items()}
        wanted = min(count(fates, 0), self.settings.sample)
        with self._telling("learning the tokenizer", wanted) as told:
            found = learning.learned(self.settings, self.sorts, self.spoken.tags, train, fates)
            told.add(wanted)
        for side, path in files.items():
            found[side].save(path)
        return found

    def _plan(self, tokenizers: Mapping[str, Tokenizer], reads: Sequence[Gathered]) -> Plan:
        (self.work / "out").mkdir(exist_ok=True)
        files = learning.save(tokenizers, self.work / "out")
        names = {name: _names(name, reads) for name, sort in self.sorts.items() if sort in ("tags", "label")}
        if self.spoken.pairs:
            names["pair"] = self.spoken.pairs
        return Plan(
            sorts=self.sorts, tokenizers={side: str(self.work / "out" / file) for side, file in files.items()},
            names=names, widths=_widths(reads), characters=self.settings.characters,
            max_tokens=self.settings.max_tokens,
        )  # fmt: skip

    def _jobs(self, plan: Plan, train: Sequence[Gathered]) -> list[Job]:
        jobs, start = [], 0
        for each in train:
            for number, rows in enumerate(each.record.pieces):
                name = self.files[each.file]
                jobs.append(
                    Job(str(each.folder), number, start, rows, each.file, name, [list(way) for way in each.ways])
                )
                start += rows
        for folder in ("done", "left", f"held-{DEV}", f"held-{TEST}", "out/train"):
            (self.work / folder).mkdir(exist_ok=True)
        tell_left = self.settings.skipped is not None
        held = {"plan": plan.as_dict(), "jobs": [asdict(job) for job in jobs], "tell_left": tell_left}
        write_text(self.work / PLAN, json.dumps(held, ensure_ascii=False))
        return jobs

    # Dev and tests, and what is told of all

    def _finish(
        self, plan: Plan, train: list[Gathered], reads: dict[str, list[Gathered]], fates: Fates,
        overlaps: dict[str, Overlap], jobs: list[Job], tokenizers: Mapping[str, Tokenizer],
    ) -> None:  # fmt: skip
        encoder = Encoder(plan)
        notes = [json.loads(note_of(self.work, number).read_bytes()) for number in range(len(jobs))]
        entries = [note["entry"] for note in notes if note["entry"]]
        if not entries:
            raise Misuse("data.train: no example is left to train on; " + _where_to(notes, train))
        for stray in (self.work / "out").rglob(".*.part"):
            stray.unlink()  # of a run that was killed while it wrote
        write_manifest(self.work / "out" / "train", encoder.columns, entries, self.files, plan.names)
        unknown = {"train": _added(note["unknown"] for note in notes)}
        groups = {split: [(each, _pieces(each, plan)) for each in found] for split, found in reads.items()}
        for split, fate in (("dev", DEV), ("test", TEST)):
            if parts := sorted((self.work / f"held-{fate}").glob("*.json")):
                groups[split] = self._parts(parts, jobs, train, plan)
        for split in sorted(groups, key="dev".__ne__):
            unknown[split] = self._write(split, encoder, groups[split])
        self._write_left(train, reads, jobs)
        counts = counted(train, reads, notes, fates, overlaps)
        write_text(self.work / "out" / MANIFEST, as_json(self._manifest(unknown, tokenizers, counts)))

    def _parts(
        self, parts: Sequence[Path], jobs: Sequence[Job], train: Sequence[Gathered], plan: Plan
    ) -> list[tuple[Gathered, Iterator[Piece]]]:
        """What was held out of each source, put together."""
        found = []
        for each in train:
            own = [part for part in parts if jobs[int(part.stem)].file == each.file]
            pieces = joined((read_piece(part.parent, int(part.stem), plan.sorts) for part in own), plan.sorts)
            found.append((each, pieces))
        return found

    def _write(self, split: str, encoder: Encoder, group: Sequence[tuple[Gathered, Iterator[Piece]]]) -> dict[str, int]:
        """The shards of dev or a test, whole as they are, and their texts; how many tokens are unknown."""
        folder = self.work / "out" / split
        folder.mkdir(exist_ok=True)
        entries: list[Any] = []
        unknown: list[dict[str, int]] = []
        with writing(folder / TEXTS, "w", encoding="utf-8", newline="\n") as texts:
            for each, pieces in group:
                for piece in pieces:
                    made = [encoder.encode(piece, way, limit=False) for way in each.ways]
                    unknown += [one.unknown for one in made]
                    columns = {name: behind([one.columns[name] for one in made]) for name in encoder.columns}
                    lines = piece.lines * len(made)
                    entries.append(write_shard(folder, len(entries), columns, origins([each.file] * len(lines), lines)))
                    for way in each.ways:
                        for told in texts_of(piece, self.sorts, way, self.spoken.pairs):
                            texts.write(json.dumps(told, ensure_ascii=False) + "\n")
        write_manifest(folder, encoder.columns, entries, self.files, encoder.plan.names)
        return _added(unknown)

    def _write_left(
        self, train: Sequence[Gathered], reads: Mapping[str, Sequence[Gathered]], jobs: Sequence[Job]
    ) -> None:
        """The file of what was left out: what reading left out first, in the order of the sources."""
        if self.settings.skipped is None:
            return
        sources = [*train, *(each for found in reads.values() for each in found)]
        parts = [each.folder / "left.tsv" for each in sources]
        parts += [self.work / "left" / f"{number:05}.tsv" for number in range(len(jobs))]
        with writing(self.settings.skipped) as file:
            for part in parts:
                file.write(part.read_bytes())

    def _manifest(
        self, unknown: Mapping[str, Mapping[str, int]], tokenizers: Mapping[str, Tokenizer], counts: Any
    ) -> dict[str, Any]:
        out = self.work / "out"
        files = learning.save(tokenizers, out)
        return {
            "format": FORMAT,
            "key": self.key,
            "settings": self.settings.model_dump(mode="json", exclude={"folder"}),
            "inputs": self.inputs,
            "tokenizers": {
                side: {"file": file, "hash": tokenizers[side].hash, "sha256": sha256(out / file)}
                for side, file in files.items()
            },
            "splits": {name: _summary(out / name, lost) for name, lost in unknown.items()},
            "counts": counts,
        }


def _weight(source: Source, sizes: Mapping[str, int]) -> int:
    """How much of the reading a source is: the bytes of its files."""
    return sum(sizes[name] for name in source.files()) or 1


def _names(column: str, reads: Sequence[Gathered]) -> list[str]:
    """All tags or labels that occur, in the order of the alphabet."""
    return sorted({name for each in reads for name in each.record.names.get(column, [])})


def _widths(reads: Sequence[Gathered]) -> dict[str, list[int]]:
    """Numbers a step and pixels a column, which must be the same in all sources."""
    found: dict[str, list[int]] = {}
    first: dict[str, str] = {}
    for each in reads:
        for name, width in each.record.widths.items():
            if found.setdefault(name, width) != width:
                raise Misuse(
                    f"{each.record.name}: {_wide(width)} in the {name}; {first[name]} has {_wide(found[name])}"
                    + ("; set `height` to bring all images to one" if len(width) > 1 else "")
                )
            first.setdefault(name, each.record.name)
    return found


def _wide(width: Sequence[int]) -> str:
    if len(width) == 1:
        return f"{width[0]} numbers a step"
    return f"{width[0] // width[1]} pixels of height with {width[1]} channels"


def _pieces(each: Gathered, plan: Plan) -> Iterator[Piece]:
    return (read_piece(each.folder, number, plan.sorts) for number in range(len(each.record.pieces)))


def _where_to(notes: Sequence[Mapping[str, Any]], train: Sequence[Gathered]) -> str:
    long = sum(note["too_long"] for note in notes)
    return f"{sum(each.record.kept for each in train):,} were read, and {long:,} had too many tokens"


def _added(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    found: Counter[str] = Counter()
    for each in counts:
        found.update(each)
    return dict(found)


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
