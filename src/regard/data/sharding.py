"""The shards of the training data, a piece at a time, in this process or in several.

    shard_all(work, jobs, processes=2, done=progress.add)

Each job makes one shard of one piece, and a note of it when it is written; a job that has its note is not done again.
Several processes are started as `python -m regard.data.sharding WORK`: they take numbers of jobs from their input and
end with it, import no torch, and need no guard in the script that asked for them.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any, Final

import numpy as np

from regard.data.cleaning import TOKENS
from regard.data.deciding import DEV, REASONS, TEST, TRAIN
from regard.data.encoding import Encoder, Made, Plan, Way
from regard.data.pieces import Piece, read_piece, write_piece
from regard.data.writing import Ragged, origins, write_shard
from regard.support.atomic import write_text
from regard.support.errors import Failure

PLAN: Final = "plan.json"


@dataclass(frozen=True)
class Job:
    """One piece of one source."""

    folder: str
    """Of the source's pieces."""
    piece: int
    start: int
    """The number of its first example among all training examples."""
    rows: int
    file: int
    """The number of the source's file."""
    name: str
    ways: list[list[Any]]


class Worker:
    """Does jobs; what it needs to know is in the work folder."""

    def __init__(self, work: Path) -> None:
        self.work = work
        held = json.loads((work / PLAN).read_bytes())
        self.encoder = Encoder(Plan.read(held["plan"]))
        self.sorts = self.encoder.plan.sorts
        self.jobs = [Job(**each) for each in held["jobs"]]
        self.tell_left: bool = held["tell_left"]
        total = sum(job.rows for job in self.jobs)
        self.fates = np.memmap(work / "fates.bin", np.uint8, "r")[:total] if total else np.zeros(0, np.uint8)

    def do(self, number: int) -> None:
        """Make the shard of a job, and write the note last."""
        job = self.jobs[number]
        piece = read_piece(Path(job.folder), job.piece, self.sorts)
        fates = self.fates[job.start : job.start + job.rows]
        for fate in (DEV, TEST):
            if len(places := np.flatnonzero(fates == fate)):
                write_held_out(self.work, fate, number, piece.of(places.tolist()), self.sorts)
        trained = piece.of(np.flatnonzero(fates == TRAIN).tolist())
        made = [self.encoder.encode(trained, Way(*way), limit=True) for way in job.ways]
        lines = [trained.lines[place] for each in made for place in each.kept]
        entry = None
        if lines:
            columns = {name: behind([each.columns[name] for each in made]) for name in self.encoder.columns}
            entry = write_shard(self.work / "out" / "train", number, columns, origins([job.file] * len(lines), lines))
        if self.tell_left:
            write_text(self.work / "left" / f"{number:05}.tsv", "".join(self._left(job, piece, fates, trained, made)))
        unknown = {name: sum(each.unknown[name] for each in made) for name in made[0].unknown}
        note = {"entry": entry, "too_long": len(trained) * len(made) - len(lines), "unknown": unknown}
        write_text(note_of(self.work, number), json.dumps(note))

    def _left(self, job: Job, piece: Piece, fates: Any, trained: Piece, made: list[Made]) -> Iterator[str]:
        for fate, reason in REASONS.items():
            out = piece.of(np.flatnonzero(fates == fate).tolist())
            yield from left_lines(job.name, out, reason)
        long = sorted({*range(len(trained))}.difference(*(each.kept for each in made)))
        yield from left_lines(job.name, trained.of(long), TOKENS)


def left_lines(name: str, piece: Piece, reason: str) -> Iterator[str]:
    """Lines of the file of what was left out."""
    from regard.data.checking import as_text
    from regard.data.gathering import left_line

    for line, *fields in zip(piece.lines, *piece.columns.values(), strict=True):
        yield left_line(name, line, reason, as_text(tuple(fields)))


def behind(runs: Sequence[Ragged]) -> Ragged:
    """Runs of values behind one another."""
    if len(runs) == 1:
        return runs[0]
    ends = np.cumsum([0, *(len(each.values) for each in runs[:-1])]).astype(np.uint32)
    offsets = [each.offsets[1:] + end for each, end in zip(runs, ends, strict=True)]
    values = np.concatenate([each.values for each in runs])
    return Ragged(values, np.concatenate([np.zeros(1, np.uint32), *offsets]).astype(np.uint32))


def write_held_out(work: Path, fate: int, number: int, piece: Piece, sorts: Any) -> None:
    """Examples of a piece that go into dev or a test."""
    write_piece(work / f"held-{fate}", number, sorts, piece)


def note_of(work: Path, number: int) -> Path:
    """The note that a job is done."""
    return work / "done" / f"{number:05}.json"


def shard_all(work: Path, jobs: Sequence[Job], processes: int, done: Callable[[int, bool], None]) -> None:
    """Do all jobs that are not done yet; `done` is told the examples of each, and whether it was done before."""
    waiting = []
    for number, job in enumerate(jobs):
        if note_of(work, number).exists():
            done(job.rows, True)
        else:
            waiting.append(number)
    if processes > 1 and len(waiting) > 1:
        _in_processes(work, waiting, min(processes, len(waiting)), lambda number: done(jobs[number].rows, False))
    elif waiting:
        worker = Worker(work)
        for number in waiting:
            worker.do(number)
            done(jobs[number].rows, False)


def _in_processes(work: Path, waiting: Sequence[int], processes: int, done: Callable[[int], None]) -> None:
    queue = iter(waiting)  # shared by the threads: each `next` gives a number to one of them
    started = [_start(work) for _ in range(processes)]
    one_at_a_time = Lock()

    def told(number: int) -> None:
        with one_at_a_time:
            done(number)

    try:
        with ThreadPoolExecutor(processes, "shards") as threads:
            feeding = [threads.submit(_feed, process, queue, told) for process in started]
            try:
                for each in feeding:
                    each.result()
            finally:
                _end_of(queue)  # where one failed, or the person gave up, nothing more is begun
    finally:
        for process in started:
            _end(process)


def _start(work: Path) -> "subprocess.Popen[str]":
    paths = os.pathsep.join(path or os.getcwd() for path in sys.path)
    environment = os.environ | {"PYTHONPATH": paths, "TOKENIZERS_PARALLELISM": "false"}
    command = [sys.executable, "-m", "regard.data.sharding", str(work)]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, env=environment)


def _feed(process: "subprocess.Popen[str]", queue: Iterator[int], done: Callable[[int], None]) -> None:
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    for number in queue:
        try:
            process.stdin.write(f"{number}\n")
            process.stdin.flush()
            answer = process.stdout.readline()
        except BrokenPipeError:
            answer = ""
        if answer.strip() != str(number):
            _end_of(queue)
            said = process.stderr.read().strip().splitlines()
            raise Failure(f"a process that writes shards ended: {said[-1] if said else 'it was killed'}")
        done(number)


def _end_of(queue: Iterator[int]) -> None:
    """Take what is left, so that nobody else does."""
    for _ in queue:
        pass


def _end(process: "subprocess.Popen[str]") -> None:
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream is not None:
            with suppress(BrokenPipeError):
                stream.close()
    try:
        process.wait(60)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _serve(work: Path) -> None:
    """Do the jobs whose numbers come in, and say each when it is done."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all; the one that started this tells when to end
    worker = Worker(work)
    for line in sys.stdin:
        worker.do(int(line))
        print(line.strip(), flush=True)


if __name__ == "__main__":
    _serve(Path(sys.argv[1]))
