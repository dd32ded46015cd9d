"""How soon the translator of the package answers after a cold start, and how much memory it takes.

    python benchmarks/cold_start.py                                     the one that comes with the package
    python benchmarks/cold_start.py --model models/translator
    python benchmarks/cold_start.py --untrained tatoeba/*.tsv.gz        of its size, with random weights

Each time is that of a new process of `regard translate "Let's go" --to es`, from its start to its end: the least and
the median of several, and beside it the time of `import torch` alone. Memory is the most that a process held while it
loaded the model and translated, less what it held after `import torch`. An untrained model finds no end by itself: its
results are cut at six tokens.
"""

import argparse
import gzip
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TEXT = "Let's go"
SHORT = ["--set", "limit_factor=0", "--set", "limit_plus=6"]
MEMORY = """
import sys, torch
def held(name):
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith(name)) / 1000
before = held("VmRSS")
import regard
torch.set_num_threads(1)  # as regard translate does with a text or two
model = regard.load(sys.argv[1])
model.translate(sys.argv[2], to="es", limit_factor=float(sys.argv[3]), limit_plus=int(sys.argv[4]))
print(held("VmHWM") - before, held("VmRSS") - before)
"""


def untrained(folder: Path, corpora: list[Path]) -> Path:
    """As `configs/translator.yaml` builds it, its tokenizer learned from some of the sentences."""
    import torch
    import yaml

    from regard.models.build import build
    from regard.models.folder import save_folder
    from regard.models.sizes import Sizes
    from regard.models.transformer_settings import TransformerSettings
    from regard.text.settings import TokenizerSettings
    from regard.text.tokenizer import Tokenizer

    config = yaml.safe_load(Path("configs/translator.yaml").read_text(encoding="utf-8"))
    texts = []
    for path in corpora:
        with gzip.open(path, "rt", encoding="utf-8") as file:
            texts += [text for line in list(file)[::10] for text in line.rstrip("\n").split("\t")[:2]]
    languages = ["es", "fr", "de", "it", "hi", "bn", "en"]
    tokenizer = Tokenizer.train(texts, TokenizerSettings(**config["data"]["tokenizer"]), languages=languages)
    sizes = Sizes(source=tokenizer.vocabulary, target=tokenizer.vocabulary)
    torch.manual_seed(0)
    model = build(TransformerSettings(**config["network"]), sizes, "translate")
    sides = {"source": tokenizer, "target": tokenizer}
    save_folder(folder, model, task="translate", tokenizers=sides, numbers="int8")
    return folder


def times(command: list[str], runs: int) -> str:
    """In seconds: on the clock, and of the processor."""
    walls, cpus = [], []
    for _ in range(runs + 1):  # the first reads files that the others find in memory
        before, started = os.times(), time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        walls.append(time.perf_counter() - started)
        after = os.times()
        cpus.append(after.children_user + after.children_system - before.children_user - before.children_system)
    walls, cpus = walls[1:], cpus[1:]
    return (
        f"least {min(walls):.2f} s, median {statistics.median(walls):.2f} s; of the processor "
        f"{min(cpus):.2f} and {statistics.median(cpus):.2f} s"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path)
    parser.add_argument("--untrained", type=Path, nargs="+", metavar="TSV")
    parser.add_argument("--runs", type=int, default=5)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = untrained(Path(temporary), given.untrained) if given.untrained else given.model
        if folder is None:
            from regard.builtin import translator

            folder = translator()
        if folder is None:
            parser.error("this checkout has no translator: name one with --model, or --untrained with corpora")
        size = sum(path.stat().st_size for path in folder.iterdir()) / 1e6
        print(f"{folder}: {size:.1f} MB; {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}")
        limits = SHORT if given.untrained else []
        command = [sys.executable, "-m", "regard", "translate", TEXT, "--to", "es", "--model", str(folder), *limits]
        print(f"import torch                {times([sys.executable, '-c', 'import torch'], given.runs)}", flush=True)
        for engine in ("pytorch", "ctranslate2"):
            told = times([*command, "--engine", engine], given.runs)
            print(f"regard translate, {engine:<11} {told}", flush=True)
        values = [str(folder), TEXT, *(("0", "6") if given.untrained else ("2", "20"))]
        said = subprocess.run([sys.executable, "-c", MEMORY, *values], check=True, capture_output=True, text=True)
        most, rest = map(float, said.stdout.split())
        print(f"memory above import torch   {most:.0f} MB at the most, {rest:.0f} MB afterwards")


if __name__ == "__main__":
    main()
