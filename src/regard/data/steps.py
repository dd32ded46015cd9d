"""The steps of a preparation, each of which finds what an earlier run had done already."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from regard.data import learning
from regard.data.deciding import DEV, TEST, Fates, decide
from regard.data.encoding import Plan
from regard.data.finishing import Gathered, Whole, finish
from regard.data.gathering import Record, gather, sides_of
from regard.data.inputs import spoken
from regard.data.settings import DataSettings
from regard.data.sharding import PLAN, Job, shard_all
from regard.data.sources import Source
from regard.support.atomic import write_text
from regard.support.errors import Misuse
from regard.support.progress import Progress
from regard.text.tokenizer import Tokenizer

ALONE: Final = 50_000
"""Examples up to which it does not pay to start processes."""


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
        finish(
            Whole(
                settings=self.settings, inputs=self.inputs, key=self.key, work=self.work, files=self.files,
                pairs=self.spoken.pairs, plan=plan, tokenizers=tokenizers, train=train, reads=reads, jobs=jobs,
                fates=fates, overlaps=overlaps,
            )
        )  # fmt: skip

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
        found = learning.learned(self.settings, self.sorts, self.spoken.tags, train, fates, quiet=self.quiet)
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
