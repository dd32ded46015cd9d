"""Additive attention: ours, plain PyTorch, torch.compile, and the limit, side by side in one run.

    python benchmarks/additive.py [--rounds N] [--plot FILE]

On a GPU (on a CPU: `additive_cpu.py`): v · tanh(q + k) → softmax → mixing at width 512 in bfloat16, about 8,192 queries
in all, forward, and forward and backward, as a share of the hardware's tanh rate (measured in the same run), with peak
memory against inputs + outputs + gradients; then a decoder's step (one query) against the larger of memory and tanh.
"""

import argparse
import statistics
from collections.abc import Callable

import torch
from torch import Tensor

from regard.attention import additive_attention

Call = Callable[[], object]
COPY = 4.3e12
"""Bytes a second that an H200 copies; only the limit of a decoder's step is told from it."""


def plain(q: Tensor, k: Tensor, value: Tensor, v: Tensor) -> Tensor:
    scores = torch.tanh(q.unsqueeze(-2) + k.unsqueeze(-3)) @ v
    return scores.float().softmax(-1).to(value.dtype) @ value


def ours(q: Tensor, k: Tensor, value: Tensor, v: Tensor) -> Tensor:
    return additive_attention(q, k, value, v, implementation="fused")


def milliseconds(call: Call, rounds: int) -> float:
    """The median, by events."""
    for _ in range(3):
        call()
    found = []
    for _ in range(rounds):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        call()
        end.record()
        torch.cuda.synchronize()
        found.append(begin.elapsed_time(end))
    return statistics.median(found)


def inputs(batch: int, queries: int, keys: int, width: int, device: str, dtype: torch.dtype) -> list[Tensor]:
    """q, k, value and v, as a network's: of unit variance, and v as nn.Linear makes it."""
    torch.manual_seed(0)
    rows = [torch.randn(batch, n, width, device=device).to(dtype) for n in (queries, keys, keys)]
    return [*rows, ((torch.rand(width, device=device) * 2 - 1) / width**0.5).to(dtype)]


def both(run: Callable[..., Tensor], tensors: list[Tensor]) -> Call:
    """Forward and backward."""
    leaves = [each.detach().requires_grad_() for each in tensors]
    tilt = torch.randn_like(run(*leaves))

    def step() -> object:
        return torch.autograd.grad(run(*leaves), leaves, tilt)

    return step


def peak(call: Call) -> float:
    """Bytes above what was there, on a GPU."""
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    call()
    return torch.cuda.max_memory_allocated() - before


def tanh_rate(device: str, rounds: int) -> float:
    """tanh a second: the hardware's instruction on numbers that stay in registers, by Triton."""
    from additive_limit import rate

    return rate(rounds)


def on_gpu(rounds: int, plot: str | None) -> None:
    rate, rows = tanh_rate("cuda", rounds), []
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}: {rate / 1e12:.2f} T tanh/s")
    print(f"{'':24}{'forward ms':>12}{'share':>8}{'times':>8}{'both ms':>10}{'times':>8}{'peak MB':>9}{'of i/o':>8}")
    for length in (64, 128, 256, 512, 1024, 2048):
        batch = max(1, 8192 // length)
        tensors = inputs(batch, length, length, 512, "cuda", torch.bfloat16)
        needed = 2 * sum(each.numel() * each.element_size() for each in tensors) + tensors[0].numel() * 2
        limit = batch * length * length * 512 / rate * 1e3
        base: list[float] = []
        for name, run in (("plain", plain), ("torch.compile", torch.compile(plain)), ("regard", ours)):
            if name == "plain" and length > 1024:
                continue
            forward = milliseconds(lambda run=run, tensors=tensors: run(*tensors), rounds)
            step = both(run, tensors)
            whole = milliseconds(step, rounds)
            memory = peak(step)
            base = base or [forward, whole]
            rows.append((name, length, forward, memory))
            print(
                f"{name:16}{batch:3} x {length:<4}{forward:10.3f}{limit / forward:8.2f}{base[0] / forward:8.1f}"
                f"{whole:10.3f}{base[1] / whole:8.1f}{memory / 2**20:9.0f}{memory / needed:8.2f}",
                flush=True,
            )
    decoder_steps(rate, rounds)
    if plot:
        draw(rows, plot)


def decoder_steps(rate: float, rounds: int) -> None:
    """One query a sequence, as a captured graph."""
    for batch in (128, 512, 1024):
        for keys in (32, 64, 256):
            q, k, value, v = inputs(batch, 1, keys, 512, "cuda", torch.bfloat16)
            limit = max(batch * keys * 512 / rate, (k.nbytes + value.nbytes) / COPY) * 1e3
            found = []
            for run in (plain, ours):
                run(q, k, value, v)
                graph = torch.cuda.CUDAGraph()
                with torch.cuda.graph(graph):
                    run(q, k, value, v)
                found.append(milliseconds(graph.replay, rounds))
            print(f"one query, {batch:4} x {keys:<4} plain {found[0]:.4f} ms, ours {found[1]:.4f}, limit {limit:.4f}")


def draw(rows: list[tuple[str, int, float, float]], path: str) -> None:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(9, 3.5), layout="constrained")
    for name in dict.fromkeys(row[0] for row in rows):
        own = [row for row in rows if row[0] == name]
        for axis, place in zip(axes, (2, 3), strict=True):
            axis.loglog([row[1] for row in own], [row[place] for row in own], marker="o", label=name, base=2)
    axes[0].set(title="Forward, ms", xlabel="queries and keys")
    axes[1].set(title="Peak memory of forward and backward, bytes", xlabel="queries and keys")
    axes[0].legend()
    figure.savefig(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--plot")
    given = parser.parse_args()
    if not torch.cuda.is_available():
        raise SystemExit("additive: there is no GPU here; benchmarks/additive_cpu.py is for a CPU")
    on_gpu(given.rounds, given.plot)


if __name__ == "__main__":
    main()
