"""Additive attention on a CPU: ours, compiled and by blocks, beside plain PyTorch and torch.compile, in one run.

    python benchmarks/additive_cpu.py [--threads N] [--rounds N] [--processor] [--decoder]

v · tanh(q + k) → softmax → mixing in float32, forward, and forward and backward: batch 16, 64 queries and keys, width
256 (16.8 M terms); longer; shorter; one query, as a decoder asks. Runs alternate; times are medians, and what is told
is the median of the ratios of neighbours. `--processor` counts seconds of the processor and not the clock's, for busy
machines (with one thread). `--decoder` times the training of a whole Bahdanau decoder with and without.
"""

import argparse
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from regard.attention import additive_attention
from regard.attention.fast import choice
from regard.attention.fast.additive import native

Call = Callable[[], object]
SIZES = ((16, 64, 64, 256), (4, 256, 256, 256), (64, 20, 20, 256), (128, 1, 32, 512))
"""Batch, queries, keys, width."""


def plain(q: Tensor, k: Tensor, value: Tensor, v: Tensor) -> Tensor:
    scores = torch.tanh(q.unsqueeze(-2) + k.unsqueeze(-3)) @ v
    return scores.softmax(-1) @ value


def ours(q: Tensor, k: Tensor, value: Tensor, v: Tensor) -> Tensor:
    return additive_attention(q, k, value, v, implementation="fused")


def by_blocks(q: Tensor, k: Tensor, value: Tensor, v: Tensor) -> Tensor:
    with no_compiler():
        return ours(q, k, value, v)


@contextmanager
def no_compiler() -> Iterator[None]:
    own = native.built
    native.built = lambda: native.Built(None, "as if there were no compiler")  # type: ignore[assignment]
    try:
        yield
    finally:
        native.built = own


def both(run: Callable[..., Tensor], tensors: list[Tensor]) -> Call:
    """Forward and backward."""
    leaves = [each.detach().requires_grad_() for each in tensors]
    tilt = torch.randn_like(run(*leaves))

    def step() -> object:
        output = run(*leaves)
        if run is not by_blocks:
            return torch.autograd.grad(output, leaves, tilt)
        with no_compiler():
            return torch.autograd.grad(output, leaves, tilt)

    return step


def forward(run: Callable[..., Tensor], tensors: list[Tensor]) -> Call:
    def step() -> object:
        with torch.no_grad():
            return run(*tensors)

    return step


def alternating(calls: dict[str, Call], rounds: int, clock: Callable[[], float]) -> dict[str, list[float]]:
    """Seconds of each call, of every round; the first three are warming up."""
    found: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds + 3):
        for name, call in calls.items():
            start = clock()
            call()
            found[name].append(clock() - start)
    return {name: each[3:] for name, each in found.items()}


def times(found: dict[str, list[float]], base: str, name: str) -> float:
    """How much faster than the base: the median of the ratios."""
    return statistics.median(slow / fast for slow, fast in zip(found[base], found[name], strict=True))


def sizes(rounds: int, clock: Callable[[], float]) -> None:
    compiled = torch.compile(plain, dynamic=False)
    for batch, queries, keys, width in SIZES:
        torch.manual_seed(0)
        torch.compiler.reset()
        rows = [torch.randn(batch, n, width) for n in (queries, keys, keys)]
        tensors = [*rows, (torch.rand(width) * 2 - 1) / width**0.5]
        runs = {"plain": plain, "torch.compile": compiled, "regard": ours, "regard, by blocks": by_blocks}
        if native.built().code is None:
            del runs["regard"]
        if keys * queries < 256:
            del runs["regard, by blocks"]
        truth = plain(*(each.double() for each in tensors))
        print(f"\nbatch {batch}, {queries} x {keys}, width {width}")
        print(
            f"{'':20}{'forward ms':>11}{'x plain':>9}{'x compiled':>11}{'both ms':>10}{'x plain':>9}{'x compiled':>11}"
        )
        found = [
            alternating({name: make(run, tensors) for name, run in runs.items()}, rounds, clock)
            for make in (forward, both)
        ]
        for name, run in runs.items():
            cells = "".join(
                f"{statistics.median(each[name]) * 1e3:{11 - at}.3f}{times(each, 'plain', name):9.1f}"
                f"{times(each, 'torch.compile', name):11.1f}"
                for at, each in enumerate(found)
            )
            wrong = ((run(*tensors) - truth).norm() / truth.norm()).item()
            print(f"{name:20}{cells}   error {wrong:.0e}", flush=True)


def decoder(rounds: int, clock: Callable[[], float]) -> None:
    """A step of training of a recurrent translator with Bahdanau's attention, whose decoder asks one query at a time:
    with the path and as if there were none."""
    from regard.models.build import build
    from regard.models.rnn_settings import RecurrentSettings
    from regard.models.sizes import Sizes
    from regard.training.objective import smoothed

    for batch, places, width in ((32, 16, 128), (64, 20, 256), (128, 32, 256)):
        torch.manual_seed(0)
        model = build(RecurrentSettings(width=width), Sizes(source=4000, target=4000), "translate").train()
        source, target, wanted = (torch.randint(4, 4000, (batch, places)) for _ in range(3))
        lengths = torch.randint(places // 2, places + 1, (batch,))

        def step(model=model, source=source, target=target, wanted=wanted, lengths=lengths) -> None:  # type: ignore[no-untyped-def]
            smoothed(model(source, target, lengths), wanted, 0.1).backward()
            model.zero_grad()

        def without(step=step) -> None:  # type: ignore[no-untyped-def]
            own = choice.PATHS
            choice.PATHS = tuple(path for path in own if path.name != "additive_cpu")
            try:
                step()
            finally:
                choice.PATHS = own

        found = alternating({"with": step, "without": without}, rounds, clock)
        took = statistics.median(found["with"]) * 1e3
        faster = times(found, "without", "with")
        print(f"{batch} x {places}, width {width}: {took:.0f} ms a step, {faster:.2f} times faster")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--processor", action="store_true")
    parser.add_argument("--decoder", action="store_true")
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    clock = time.process_time if given.processor else time.perf_counter
    counted = ", seconds of the processor" if given.processor else ""
    print(f"torch {torch.__version__}, {given.threads} threads, {given.rounds} rounds{counted}; {native.built().how}")
    (decoder if given.decoder else sizes)(given.rounds, clock)


if __name__ == "__main__":
    main()
