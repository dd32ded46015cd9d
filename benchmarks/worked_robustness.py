"""Ten thousand problem files made by chance, read, worked, marked and written: what becomes of them.

    python benchmarks/worked_robustness.py [--cases N] [--first N]

Each must end in a result or in one sentence, within two seconds, and all of them within 1 GB. What does not is told
with the number of its case; the exit status is then 1.
"""

import argparse
import resource
import signal
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.worked import fuzzing

HUNG = 10
"""Seconds after which a case is given up."""
MEMORY = 1024
"""Megabytes, with all that Python and PyTorch hold."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0)
    wanted = parser.parse_args()
    signal.signal(signal.SIGALRM, _hung)
    kinds: Counter[str] = Counter()
    slowest, bad = (0.0, -1), 0
    with tempfile.TemporaryDirectory() as folder:
        fuzzing.outcome(fuzzing.case(2), Path(folder) / "case.yaml", "text")  # what is loaded once
        for number in range(wanted.first, wanted.first + wanted.cases):
            told = run(number, Path(folder) / "case.yaml")
            if isinstance(told, str):
                bad += 1
                kind = fuzzing.KINDS[number % len(fuzzing.KINDS)].__name__
                print(f"case {number} ({kind}): {told[:200]}", flush=True)
            else:
                kinds[told.kind] += 1
                slowest = max(slowest, (told.seconds, number))
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(f"{wanted.cases} cases: {kinds['result']} results, {kinds['error']} sentences, {bad} neither or too slow")
    print(f"slowest {slowest[0]:.2f} s (case {slowest[1]}), {memory} MB at most")
    return int(bad > 0 or memory > MEMORY)


def run(number: int, path: Path) -> "fuzzing.Outcome | str":
    """What became of a case, or why that is not good."""
    signal.alarm(HUNG)
    try:
        found = fuzzing.outcome(fuzzing.case(number), path, fuzzing.rendering(number))
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    finally:
        signal.alarm(0)
    return found if found.seconds < fuzzing.SECONDS else f"{found.seconds:.1f} s"


def _hung(*_: Any) -> None:
    raise TimeoutError(f"no end after {HUNG} s")


if __name__ == "__main__":
    sys.exit(main())
