"""Every command of the README runs, in the order in which they stand, as a newcomer would give them."""

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```sh\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
COMMANDS = [re.sub(r"\s+#.*$", "", line) for block in BLOCKS for line in block.splitlines() if line.strip()]

# What takes minutes is given less to do here; everything else runs as it stands.
SHORTENED = {
    "regard train quickstart": "--set training.steps=12 --set network.width=32 --set training.minutes=null --quiet",
    "regard train transformer-tiny": "--set training.steps=4 --set network.width=32 --set data.dev_size=20 "
    "--set data.tokenizer.vocabulary=300 --quiet",
}
STATUS = {"regard check self-attention": 1}
"""An answer with a mistake in it ends so."""
PORT = "5000"
ASK = (
    "import sys, urllib.request as r; b = b'q=Good+morning.&source=en&target=es'; "
    "print(r.urlopen(f'http://127.0.0.1:{sys.argv[1]}/translate', b).read().decode())"
)
"""What stands in for curl on a machine without it."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A newcomer's folder, with the corpus that the README speaks of."""
    place = tmp_path_factory.mktemp("newcomer")
    numbers = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
    zahlen = ["eins", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun", "zehn"]
    pairs = [(a, b, c) for a in range(10) for b in range(10) for c in range(4)]
    for name, own in (("train", pairs[:380]), ("dev", pairs[380:])):
        for ending, words in (("en", numbers), ("de", zahlen)):
            lines = [" ".join(words[each] for each in row) + "." for row in own]
            (place / f"{name}.{ending}").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return place


def environment() -> dict[str, str]:
    return {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT / "src"), "MPLBACKEND": "Agg"}


def ours(command: str, port: str) -> list[str]:
    """The command, with this Python's `regard`, shortened where it must be, at a port that is free."""
    more = next((extra for begin, extra in SHORTENED.items() if command.startswith(begin)), "")
    words = shlex.split(f"{command} {more}".replace(PORT, port))
    if words[0] == "curl" and shutil.which("curl") is None:
        return [sys.executable, "-c", ASK, port]
    return [sys.executable, "-m", "regard", *words[1:]] if words[0] == "regard" else words


@pytest.mark.timeout(400)
def test_every_command_of_the_readme_runs(folder: Path) -> None:
    import socket

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    server = None
    assert len(COMMANDS) > 15
    try:
        for command in COMMANDS:
            if command.startswith("regard serve"):
                server = subprocess.Popen(ours(command, port), cwd=folder, env=environment())
                continue
            tries = 80 if command.startswith("curl") else 1
            for _ in range(tries):
                done = subprocess.run(
                    ours(command, port), cwd=folder, env=environment(), capture_output=True, text=True
                )
                if done.returncode == STATUS.get(command, 0):
                    break
                time.sleep(0.5)
            assert done.returncode == STATUS.get(command, 0), f"{command}\n{done.stdout}\n{done.stderr}"
            assert "Traceback" not in done.stderr, command
            if command.startswith("curl"):
                assert "translatedText" in done.stdout
            if command == "regard check self-attention":
                assert "18" in done.stdout
    finally:
        if server is not None:
            server.send_signal(signal.SIGTERM)
            assert server.wait(40) in (0, -signal.SIGTERM)
    for made in ("lets-go.html", "sheet.md", "mine.yaml", "report.html", "models/fast/model.bin"):
        assert (folder / made).stat().st_size > 100, made
