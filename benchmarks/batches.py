"""How full batches are, how many shapes they have, and how fast they come from prepared data.

    regard prepare CONFIG
    python benchmarks/batches.py FOLDER [--tokens 4096] [--shapes 16] [--epochs 3]

FOLDER is one that `regard prepare` wrote. The share that is empty counts padding, and the rows of batches of bounded
shape that no example fills. Tokens are those of source and target, padding not counted, from memory-mapped shards to
tensors side by side (in pinned memory where there is a GPU), in this one process.
"""

import argparse
import os
import time

import torch

from regard.data.batches import Batches, BatchSettings
from regard.data.prepared import Prepared


def speed(batches: Batches, epochs: int) -> list[float]:
    """Tokens a second of each epoch; planning it counts."""
    found = []
    for _ in range(epochs):
        begun, tokens = time.perf_counter(), 0
        for batch in batches:
            tokens += sum(int(each.sum()) for each in (batch.lengths, batch.target_lengths) if each is not None)
        found.append(tokens / (time.perf_counter() - begun))
    return found


def main() -> None:
    """Free shapes, then bounded ones."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--tokens", type=int, default=4096)
    parser.add_argument("--shapes", type=int, default=16)
    parser.add_argument("--epochs", type=int, default=3)
    chosen = parser.parse_args()
    examples = Prepared(chosen.folder).train
    pin = torch.cuda.is_available()
    for shapes in (None, chosen.shapes):
        batches = Batches(examples, BatchSettings(tokens=chosen.tokens, shapes=shapes), pin=pin)
        empty = [batches.empty(epoch) for epoch in range(chosen.epochs)]
        different = {tuple(shape) for epoch in range(chosen.epochs) for shape in batches.plan(epoch).shapes.tolist()}
        fast = speed(batches, chosen.epochs)
        print(
            f"{len(examples):,} examples, {chosen.tokens:,} tokens a batch, shapes "
            f"{'free' if shapes is None else 'bounded'}: "
            f"{len(different):,} shapes, {max(empty):.1%} empty at most; "
            f"{', '.join(f'{each / 1e6:.1f}' for each in fast)} million tokens a second{' pinned' if pin else ''}; "
            f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
        )


if __name__ == "__main__":
    main()
