"""`prepare`: from the files that a configuration names to shards that batches are made from.

    prepared = prepare({"train": {"source": "a.en", "target": "a.de"}}, "models/en-de/data", processes=2)

    prepared.fresh                        False where nothing had changed and nothing was done
    prepared.train, prepared.dev          ShardSet (dev: None where there is none), for `Batches(prepared.train, …)`
    prepared.splits                       all of them by name: train, dev, and the tests
    prepared.tests                        the names of the tests
    prepared.tokenizers                   {"source": Tokenizer, "target": Tokenizer}, as far as sides are text
    prepared.texts("dev")                 [{"source": "…", "target": "…"}]: row n of the shard set as it stood. Words
                                          and tags are lists, a label is a text; `pair` ("en-es") where several are
    prepared.names                        of tags or labels, by their numbers
    prepared.pairs                        of the languages, where there are several: the column `pair` numbers them
    prepared.sizes()                      {"source": 8000, "target": 8000}, {"tags": 17, …}: for models.Sizes
    prepared.report                       everything counted, in words
    prepared.key                          one hash of what the data were made from and how
    prepared.verify()                     reads every byte; Failure names what was altered (`prepare` has done so)

What happens, in order: every source is read once, checked and cleaned, and put on the disk in pieces; hashes decide
what is a duplicate, and what becomes dev; the tokenizers learn from a sample; pieces become shards, in several
processes. All of it stands in `.preparing` inside the folder until it is whole. Killed at any instant, the next call
goes on behind the sources and shards that are done, and ends with the same bytes. No step holds more than a few
thousand examples in memory, and none imports torch.
"""

import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from regard.config import settings_from
from regard.data.inputs import inputs, key_of, paths_of
from regard.data.installing import free_for, install, locked
from regard.data.prepared import FORMAT, Prepared
from regard.data.settings import DataSettings
from regard.data.shards import MANIFEST
from regard.data.skipped import skipped_path
from regard.data.steps import Steps
from regard.support.atomic import write_text
from regard.support.errors import Failure, Misuse

WORK = ".preparing"


def prepare(
    settings: DataSettings | Mapping[str, Any],
    folder: str | Path,
    *,
    processes: int | None = None,
    quiet: bool = False,
) -> Prepared:
    """Prepare the data, where that was not done yet; `processes` None takes one a core, where there is much to do.

    `settings` are those of the `data` section, or the same as plain values: {"train": "pairs.tsv"}.
    """
    if not isinstance(settings, DataSettings):
        settings = settings_from(settings, DataSettings, name="settings")
    folder = Path(folder)
    skipped = skipped_path(settings.skipped, paths_of(settings).values(), folder)
    files = inputs(settings, quiet=quiet)
    key = key_of(settings, files, FORMAT)
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder):
        if (standing := _standing(folder, key, quiet, skipped)) is not None:
            shutil.rmtree(folder / WORK, ignore_errors=True)
            return standing
        free_for(folder, settings)
        work = _work(folder, key)
        if not (work / "out" / MANIFEST).exists():
            Steps(settings, files, key, work, processes or cores(), quiet).run()
        install(work, folder)
    return Prepared(folder, fresh=True)


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _standing(folder: Path, key: str, quiet: bool, skipped: Path | None) -> Prepared | None:
    """What stands there, where it is from the same data and settings and not damaged."""
    if not (folder / MANIFEST).exists():
        return None
    try:
        prepared = Prepared(folder)
        if prepared.key != key:
            return None
        if skipped is not None and not skipped.exists():
            raise Failure(f"{skipped}: the list of what was left out is missing")
        prepared.verify(quiet=quiet)
    except (Failure, Misuse) as error:
        if not quiet:
            print(str(error).removesuffix("; prepare the data again") + "; preparing again", file=sys.stderr)
        return None
    return prepared


def _work(folder: Path, key: str) -> Path:
    """The folder of the work in progress; what other data or settings left there is removed."""
    work = folder / WORK
    if not (work / "key").exists() or (work / "key").read_text() != key:
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir()
        write_text(work / "key", key)
    return work
