"""How fast `regard prepare` is, and how much memory it takes, once the tokenizer exists.

    python benchmarks/prepare.py train.en train.de              the pairs of two files
    python benchmarks/prepare.py --pairs 1000000                so many generated pairs of 8 words

The tokenizer is trained first, and neither timed nor measured. Printed are pairs a second, for reading and for all,
the seconds of all cores, and the most memory that the command and the processes it starts take together (resident,
with shared pages once), as well as the largest of them alone.
"""

import argparse
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import threading
import time
from itertools import islice
from pathlib import Path
from typing import Any

from regard.config import settings_from
from regard.data.lines import read_lines
from regard.data.preparing import prepare
from regard.data.settings import DataSettings


def generated(folder: Path, pairs: int) -> tuple[Path, Path]:
    """Two files of lines of about 8 words out of 20,000, drawn as words are: the second half as often as the first."""
    draw = random.Random(0)
    words = [["".join(draw.choices("etaoinshrdlu", k=draw.randint(2, 8))) for _ in range(20_000)] for _ in range(2)]
    weights = [1 / (rank + 1) for rank in range(20_000)]
    paths = folder / "generated.source", folder / "generated.target"
    with paths[0].open("w") as source, paths[1].open("w") as target:
        for start in range(0, pairs, 10_000):
            drawn = draw.choices(range(20_000), weights, k=8 * 10_000)
            for line in range(min(10_000, pairs - start)):
                numbers = drawn[8 * line : 8 * line + 4 + (start + line) % 9]
                source.write(" ".join(words[0][n] for n in numbers) + f" {start + line}\n")
                target.write(" ".join(words[1][n] for n in numbers) + f" {start + line}\n")
    return paths


class Memory(threading.Thread):
    """The most memory a process and those it started take together, and the largest alone, looked at every 0.1 s."""

    def __init__(self, process: int) -> None:
        super().__init__(daemon=True)
        self.process, self.together, self.alone, self.ended = process, 0, 0, False

    def run(self) -> None:
        while not self.ended:
            sizes = [proportional(each) for each in [self.process, *children(self.process)]]
            self.together, self.alone = max(self.together, sum(sizes)), max(self.alone, *sizes)
            time.sleep(0.1)


def children(process: int) -> list[int]:
    """The processes that one started, by any of its threads."""
    try:
        return [
            int(each) for task in Path(f"/proc/{process}/task").glob("*/children") for each in task.read_text().split()
        ]
    except OSError:
        return []


def proportional(process: int) -> int:
    """Bytes a process takes, pages that several share counted in parts; 0 when it is gone."""
    try:
        lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:")), 0)


def measured(settings: DataSettings, folder: Path, processes: int) -> None:
    """Run one preparation in a process of its own, with its progress, and print what it took."""
    code = (
        "import json, sys, pathlib; from regard.data.settings import DataSettings; from regard.data.preparing import *;"
        "prepare(DataSettings.model_validate_json(sys.stdin.read()), sys.argv[1], processes=int(sys.argv[2]));"
        "assert 'torch' not in sys.modules"
    )
    begun, cpu = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    run = subprocess.Popen([sys.executable, "-c", code, str(folder), str(processes)], stdin=subprocess.PIPE, text=True)
    memory = Memory(run.pid)
    memory.start()
    run.communicate(settings.model_dump_json())
    memory.ended = True
    took, now = time.perf_counter() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = now.ru_utime + now.ru_stime - cpu.ru_utime - cpu.ru_stime
    pairs = json.loads((folder / "manifest.json").read_text())["counts"]["train"]["read"]
    print(
        f"{pairs:,} pairs, {processes} processes: {took:.1f} s, {pairs / took:,.0f} pairs a second; {spent:.1f} s of "
        f"all cores; memory at most {memory.together / 1e6:.0f} MB together, {memory.alone / 1e6:.0f} MB the largest; "
        f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
    )


def main() -> None:
    """Learn the tokenizer from the first pairs, then prepare all of them with it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", help="the files of source and target")
    parser.add_argument("--pairs", type=int, help="generate so many instead")
    parser.add_argument("--processes", type=int, nargs="*", default=[2], help="measure with each of these")
    parser.add_argument("--duplicates", action="store_true", help="leave out duplicates as well, which spills to disk")
    parser.add_argument("--folder", help="for all that is written; a temporary one otherwise")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=chosen.folder) as name:
        folder = Path(name)
        few = _head(chosen.files, folder) if chosen.files else generated(folder, 50_000)
        prepare(_settings(*few), folder / "few", quiet=True)
        tokenizer = str(folder / "few" / "tokenizer.json")
        source, target = map(Path, chosen.files) if chosen.files else generated(folder, chosen.pairs)
        clean = {"duplicates": "pair"} if chosen.duplicates else {}
        for processes in chosen.processes:
            settings = _settings(source, target, tokenizer=tokenizer, clean=clean)
            measured(settings, folder / f"with-{processes}", processes)


def _settings(source: Path, target: Path, **rest: Any) -> DataSettings:
    return settings_from(
        {"train": {"source": str(source), "target": str(target)}, "on_bad": "skip", **rest}, DataSettings
    )


def _head(files: list[str], folder: Path) -> tuple[Path, Path]:
    """The first 50,000 lines of both."""
    made = []
    for name in files:
        made.append(folder / f"few.{len(made)}")
        made[-1].write_text("".join(f"{line}\n" for line in islice(read_lines(Path(name)), 50_000)))
    return made[0], made[1]


if __name__ == "__main__":
    main()
