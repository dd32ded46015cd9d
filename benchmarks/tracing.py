"""What a trace costs: recording beside running, and the time to open a cell.

    python benchmarks/tracing.py [--threads N] [--rounds N]

A Transformer of 6 + 6 layers and width 512 reads 32 tokens and writes 32, without and with gradients, plainly and
under `regard.trace` (medians of alternating runs, and of their ratios). Then `why` on random cells of all its steps:
the cell alone, and with its text and all its parents. Last, a label without a tape.
"""

import argparse
import random
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor, nn

import regard
from regard.models.sizes import Sizes
from regard.models.transformer import Transformer
from regard.models.transformer_settings import TransformerSettings
from regard.tracing import Derivation


def model(vocabulary: int = 8_000) -> Callable[[], Tensor]:
    """regard's own, with random weights."""
    settings = TransformerSettings(
        width=512, heads=8, feed_forward=2048, encoder_layers=6, decoder_layers=6, dropout=0.0
    )
    network = Transformer(settings, Sizes(source=vocabulary, target=vocabulary)).eval()
    source, target = (torch.randint(4, vocabulary, (1, 32)) for _ in range(2))
    lengths = torch.tensor([32])

    def run() -> Tensor:
        logits: Tensor = network(source, target, lengths)
        return logits

    return run


def pytorchs() -> Callable[[], Tensor]:
    """nn.Transformer of the same sizes, without embeddings."""
    network = nn.Transformer(512, 8, 6, 6, 2048, 0.0, batch_first=True).eval()
    source, target = torch.randn(1, 32, 512), torch.randn(1, 32, 512)
    mask = network.generate_square_subsequent_mask(32)

    def run() -> Tensor:
        output: Tensor = network(source, target, tgt_mask=mask, tgt_is_causal=True)
        return output

    return run


def seconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def recorded(run: Callable[[], Tensor]) -> Tensor:
    with regard.trace():
        return run()


def costs(run: Callable[[], Tensor], rounds: int) -> tuple[float, float, float]:
    """Seconds plainly, seconds recorded, and the median ratio of neighbouring runs."""
    seconds(run), seconds(lambda: recorded(run))
    pairs = [(seconds(run), seconds(lambda: recorded(run))) for _ in range(rounds)]
    plain, traced = zip(*pairs, strict=True)
    return statistics.median(plain), statistics.median(traced), statistics.median(t / p for p, t in pairs)


def cells(derivation: Derivation, count: int) -> Iterator[tuple[str, tuple[int, ...]]]:
    drawing = random.Random(0)
    steps = [step for step in derivation.steps if step.size]
    for _ in range(count):
        step = drawing.choice(steps)
        yield step.name, tuple(drawing.randrange(n) for n in step.shape)


def opening(derivation: Derivation, count: int = 300) -> None:
    """Processor time, in which other work on the machine does not show."""
    chosen = list(cells(derivation, count))
    for what in ("the first time", "again"):
        alone, whole = [], []
        for name, index in chosen:
            start = time.process_time()
            cell = derivation.why(name, *index)
            alone.append(time.process_time() - start)
            _ = cell.text, cell.parents, cell.value
            whole.append(time.process_time() - start)
        print(f"why, {what}: {spread(alone)}; with text and parents {spread(whole)}")


def spread(times: list[float]) -> str:
    median, most = statistics.median(times) * 1e3, statistics.quantiles(times, n=50)[-1] * 1e3
    return f"median {median:.2f} ms, 98 of 100 under {most:.2f} ms, longest {max(times) * 1e3:.1f} ms"


def labelling(times: int = 1_000_000) -> float:
    """Microseconds of a label where nobody listens, less those of an empty loop."""
    tensor, label = torch.zeros(1), regard.label

    def empty() -> None:
        for _ in range(times):
            pass

    def labelled() -> None:
        for _ in range(times):
            label(tensor, "A", "softmax(E)")

    return (min(seconds(labelled) for _ in range(3)) - min(seconds(empty) for _ in range(3))) / times * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=11)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    run = model()
    for name, each in (("regard, 6+6, width 512, 32 tokens", run), ("nn.Transformer, the same", pytorchs())):
        for gradients in (False, True):
            mode: AbstractContextManager[object] = nullcontext() if gradients else torch.no_grad()
            with mode:
                plain, traced, ratio = costs(each, options.rounds)
            print(
                f"{name}{', with gradients' if gradients else ''}: {plain * 1e3:.1f} ms, "
                f"recorded {traced * 1e3:.1f} ms, {ratio:.2f} times"
            )
    with torch.no_grad(), regard.trace() as tape:
        output = run()
    start = time.perf_counter()
    derivation = tape.derivation(output)
    print(f"{tape}; its derivation in {(time.perf_counter() - start) * 1e3:.0f} ms: {derivation}")
    opening(derivation)
    print(f"a label without a tape: {labelling():.3f} µs")


if __name__ == "__main__":
    main()
