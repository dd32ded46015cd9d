"""What `attend` costs beside scaled_dot_product_attention called directly, as medians of alternating runs.

    python benchmarks/attention_overhead.py [--threads N] [--rounds N]

On a CPU: the ratio of the two at B32 H8 T256 d64, and the microseconds that Python adds, measured where there is
next to nothing to compute. On a GPU (where there is one): the microseconds a call adds until control comes back.
A mask of lengths has no equal: the plain call lets whatever stands in padding leak.
"""

import argparse
import statistics
import time
from collections.abc import Callable

import torch
from torch.nn.functional import scaled_dot_product_attention as plain

from regard.attention import attend, masks

Call = Callable[[], object]


def seconds(call: Call, times: int, device: str) -> float:
    """Of one call, from the first to the last coming back, and on a GPU until it is idle."""
    if device == "cuda":
        torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(times):
        call()
    spent = time.perf_counter() - start
    if device == "cuda":
        torch.cuda.synchronize()
    return spent / times


def compared(ours: Call, theirs: Call, rounds: int, times: int, device: str = "cpu") -> tuple[float, float, float]:
    """Medians of both in seconds, and the median of the ratios of neighbouring runs."""
    for call in (ours, theirs):
        seconds(call, times, device)
    pairs = [(seconds(ours, times, device), seconds(theirs, times, device)) for _ in range(rounds)]
    mine, other = zip(*pairs, strict=True)
    return statistics.median(mine), statistics.median(other), statistics.median(m / o for m, o in pairs)


def calls(
    batch: int, heads: int, length: int, width: int, device: str, dtype: torch.dtype
) -> dict[str, tuple[Call, Call]]:
    query, key, value = (torch.randn(batch, heads, length, width, device=device, dtype=dtype) for _ in range(3))
    counts = torch.randint(1, length + 1, (batch,), device=device)
    keep = (torch.arange(length, device=device) < counts.view(-1, 1, 1, 1)).expand(batch, 1, length, length)
    causal, real = masks.causal(), masks.lengths(counts)
    return {
        "no mask": (lambda: attend(query, key, value), lambda: plain(query, key, value)),
        "causal": (
            lambda: attend(query, key, value, mask=causal),
            lambda: plain(query, key, value, is_causal=True),
        ),
        "lengths": (
            lambda: attend(query, key, value, mask=real),
            lambda: plain(query, key, value, attn_mask=keep),
        ),
    }


def report(
    title: str, device: str, shape: tuple[int, int, int, int], rounds: int, times: int, dtype: torch.dtype
) -> None:
    print(f"\n{title}: B{shape[0]} H{shape[1]} T{shape[2]} d{shape[3]}, {str(dtype)[6:]}")
    print(f"{'':10}{'attend':>12}{'plain':>12}{'ratio':>8}{'added':>11}")
    for name, (ours, theirs) in calls(*shape, device, dtype).items():
        mine, other, ratio = compared(ours, theirs, rounds, times, device)
        print(f"{name:10}{mine * 1e6:9.1f} µs{other * 1e6:9.1f} µs{ratio:8.3f}{(mine - other) * 1e6:8.1f} µs")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--rounds", type=int, default=15)
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    torch.manual_seed(0)
    print(f"torch {torch.__version__}, {given.threads} threads; goals: ratio 1.10 on a CPU, 15 µs added on a GPU")
    with torch.no_grad():
        report("CPU", "cpu", (32, 8, 256, 64), given.rounds, 2, torch.float32)
        report("CPU, next to nothing to compute", "cpu", (2, 2, 4, 8), given.rounds, 500, torch.float32)
        if torch.cuda.is_available():
            print(f"\n{torch.cuda.get_device_name()}")
            report("GPU", "cuda", (32, 8, 256, 64), given.rounds, 200, torch.bfloat16)
            report("GPU, next to nothing to compute", "cuda", (2, 2, 16, 64), given.rounds, 500, torch.bfloat16)


if __name__ == "__main__":
    main()
