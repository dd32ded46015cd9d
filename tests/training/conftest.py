"""Small prepared data, made once; and processes that train."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from regard.config import settings_from
from regard.data.preparing import prepare
from regard.data.settings import DataSettings

WORDS = ["red", "blue", "green", "one", "two", "three", "cat", "dog", "bird", "sees", "has", "likes"]
"""Of a language whose sentences are said backwards in the other one, word by word in capitals."""


def said(sentence: str) -> str:
    """The translation."""
    return " ".join(word.upper() for word in reversed(sentence.split()))


def sentences(count: int, seed: int = 0, longest: int = 5) -> list[str]:
    random = Random(seed)
    found = {" ".join(random.choices(WORDS, k=random.randint(2, longest))) for _ in range(3 * count)}
    return sorted(found, key=lambda each: (hash_of(each), each))[:count]


def hash_of(text: str) -> int:
    return sum((place + 1) * ord(each) for place, each in enumerate(text)) * 2654435761 % 2**32


def prepared(folder: Path, **data: Any) -> Path:
    prepare(settings_from(data, DataSettings), folder, processes=1, quiet=True)
    return folder


@pytest.fixture(scope="session")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """240 pairs to learn from and 40 of development, as words."""
    folder = tmp_path_factory.mktemp("pairs")
    lines = [f"{each}\t{said(each)}\n" for each in sentences(280)]
    (folder / "train.tsv").write_text("".join(lines[40:]))
    (folder / "dev.tsv").write_text("".join(lines[:40]))
    tokenizer = {"kind": "words", "vocabulary": 60, "min_count": 1}
    return prepared(folder / "data", train=str(folder / "train.tsv"), dev=str(folder / "dev.tsv"), tokenizer=tokenizer)


def config(prepared: Path, output: Path, **changed: Any) -> dict[str, Any]:
    """A tiny Transformer and short runs, in float32 on the CPU."""
    values: dict[str, Any] = {
        "prepared": str(prepared),
        "output": str(output),
        "device": "cpu",
        "threads": 1,
        "network": {"width": 16, "heads": 2, "encoder_layers": 1, "decoder_layers": 1, "feed_forward": 32},
        "batches": {"tokens": 160, "ahead": 1},
        "training": {
            "epochs": 2,
            "precision": "float32",
            "samples": 0,
            "optimizer": {"rate": 0.01},
            "schedule": {"warmup": 10},
        },
    }
    return merged(values, changed)


def merged(values: dict[str, Any], changed: dict[str, Any]) -> dict[str, Any]:
    for key, value in changed.items():
        inside = isinstance(value, dict) and isinstance(values.get(key), dict)
        values = values | {key: merged(values[key], value) if inside else value}
    return values


class Warm:
    """Runs in processes of their own, which begin at once."""

    def __init__(self, folder: Path) -> None:
        environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "default"}
        self.process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("warm.py"))],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment,
        )  # fmt: skip
        self.folder, self.logs = folder, 0
        assert self._heard() == {"ready": True}

    def begin(self, config: dict[str, Any], runs: list[dict[str, Any]] | None = None) -> list[int]:
        """Start runs of a configuration, side by side; the numbers of their processes."""
        runs = [{}] if runs is None else runs
        self.logs += 1
        self.log_files = [self.folder / f"log-{self.logs}-{number}" for number in range(len(runs))]
        asked = [run | {"log": str(log)} for run, log in zip(runs, self.log_files, strict=True)]
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"config": config, "runs": asked}) + "\n")
        self.process.stdin.flush()
        return list(self._heard()["children"])

    def end(self) -> list[int]:
        """How each of them ended: 0, an exit status, or minus the number of a signal."""
        return list(self._heard()["statuses"])

    def said(self) -> str:
        """What the runs of the last call wrote."""
        return "\n".join(log.read_text() for log in self.log_files)

    def run(self, config: dict[str, Any], runs: list[dict[str, Any]] | None = None) -> list[int]:
        self.begin(config, runs)
        return self.end()

    def _heard(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, "the process that forks is gone"
        heard: dict[str, Any] = json.loads(line)
        return heard

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(20)
        if self.process.stdout is not None:
            self.process.stdout.close()


@pytest.fixture(scope="session")
def warm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Warm]:
    held = Warm(tmp_path_factory.mktemp("warm"))
    yield held
    held.close()


def ranks(count: int, port: int, **rest: Any) -> list[dict[str, Any]]:
    """What torchrun tells each of several processes on one machine."""
    about = {"WORLD_SIZE": str(count), "LOCAL_WORLD_SIZE": str(count), "MASTER_ADDR": "127.0.0.1"}
    return [
        {"environment": about | {"MASTER_PORT": str(port), "RANK": str(rank), "LOCAL_RANK": str(rank)}} | rest
        for rank in range(count)
    ]
