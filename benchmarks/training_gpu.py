"""A training step on a GPU beside MarianMT of Transformers, in bfloat16: eager, compiled, fused, graphed.

    python benchmarks/training_gpu.py [--rows 512] [--places 32] [--layers 6] [--width 512] [--words 8000]
                                      [--steps 20] [--rounds 5] [--profile] [--only graphed] [--no-marian]

A step is forward, smoothed cross-entropy, backward, clipping at 1 and AdamW, on batches that are the same each time.
Ours run through what `regard train` runs: its objective, its update, its graphs. Rounds alternate; figures are medians.
The limit is that of the products alone, at the rate this GPU multiplies 8192 × 8192 matrices in bfloat16.
"""

import argparse
import statistics
import time
import warnings
from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional

from regard.models.build import build
from regard.models.sizes import Sizes
from regard.models.transformer_settings import TransformerSettings
from regard.training import optimizers
from regard.training.averaging import Averaging
from regard.training.compiling import compile_parts, fuse
from regard.training.feeding import Fed, shifted
from regard.training.graphs import Graphs
from regard.training.objective import Objective
from regard.training.settings import AveragingSettings, OptimizerSettings, ReinforceSettings, TeachingSettings
from regard.training.updating import Update

Step = Callable[[], None]


def marian(given: argparse.Namespace, device: torch.device) -> Step:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from transformers import MarianConfig, MarianMTModel

        config = MarianConfig(
            vocab_size=given.words, d_model=given.width, encoder_layers=given.layers, decoder_layers=given.layers,
            encoder_attention_heads=given.heads, decoder_attention_heads=given.heads, dropout=given.dropout,
            encoder_ffn_dim=4 * given.width, decoder_ffn_dim=4 * given.width, activation_function="swish",
            scale_embedding=True, pad_token_id=0, eos_token_id=3, decoder_start_token_id=0,
            max_position_embeddings=max(512, given.places),
        )  # fmt: skip
        model = MarianMTModel(config).to(device).train()
    fed = batch(given, device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)

    def run() -> None:
        with torch.autocast(device.type, torch.bfloat16):
            logits = model(input_ids=fed.source, decoder_input_ids=fed.target, use_cache=False).logits
            loss = functional.cross_entropy(logits.flatten(0, 1), fed.wanted.flatten(), label_smoothing=0.1)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return run


def ours(
    given: argparse.Namespace, device: torch.device, *, compiled: bool = False, graphed: bool = False,
    fused: bool = False,
) -> Step:  # fmt: skip
    settings = TransformerSettings(
        width=given.width, encoder_layers=given.layers, decoder_layers=given.layers, heads=given.heads,
        feed_forward=4 * given.width, dropout=given.dropout,
    )  # fmt: skip
    model = build(settings, Sizes(source=given.words, target=given.words), "translate").to(device).train()
    objective = Objective(model, 0.1, ReinforceSettings(), TeachingSettings())
    if compiled:
        compile_parts(model, objective)
    if fused:
        fuse(objective)
    steppers = optimizers.make(OptimizerSettings(rate=1e-4), model)
    update: Update | Graphs = Update(objective, steppers, clip=1.0, bfloat16=True, device=device)
    if graphed:
        assert isinstance(update, Update)
        update = Graphs(update, print)
    averaging = Averaging(AveragingSettings(), model)
    fed = batch(given, device)

    def run() -> None:
        optimizers.set_rate(steppers, 0.5)
        update([fed], given.rows * given.places)
        averaging.after_step()

    return run


def batch(given: argparse.Namespace, device: torch.device) -> Fed:
    generator = torch.Generator().manual_seed(0)
    source, target = (
        torch.randint(4, given.words, (given.rows, given.places), generator=generator).to(device) for _ in range(2)
    )
    return Fed(target, source, torch.full((given.rows,), given.places, device=device), shifted(target, 2))


def seconds(run: Step, steps: int, device: torch.device) -> float:
    """A step's time, of several without waiting in between."""
    waited(device)
    start = time.perf_counter()
    for _ in range(steps):
        run()
    waited(device)
    return (time.perf_counter() - start) / steps


def waited(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def products(given: argparse.Namespace) -> float:
    """Floating-point operations of the products of a step: forward, and twice that backward."""
    d, f, places = given.width, 4 * given.width, given.rows * given.places
    attention = 4 * 2 * d * d + 2 * 2 * d * given.places
    layer = 2 * 2 * d * f
    encoder, decoder = attention + layer, 2 * attention + layer
    return 3.0 * places * (given.layers * (encoder + decoder) + 2 * d * given.words)


def rate(device: torch.device) -> float:
    """Operations a second of a large product in bfloat16."""
    size = 8192 if device.type == "cuda" else 1024
    one = torch.randn(size, size, device=device, dtype=torch.bfloat16)
    times = [seconds(lambda: one @ one, 10, device) for _ in range(5)]
    return float(2 * size**3 / statistics.median(times))


def profiled(name: str, run: Step, device: torch.device) -> None:
    activities = [torch.profiler.ProfilerActivity.CPU]
    activities += [torch.profiler.ProfilerActivity.CUDA] if device.type == "cuda" else []
    with torch.profiler.profile(activities=activities) as profile:
        for _ in range(5):
            run()
        waited(device)
    order = "self_cuda_time_total" if device.type == "cuda" else "self_cpu_time_total"
    print(f"\n{name}, 5 steps\n{profile.key_averages().table(sort_by=order, row_limit=25, max_name_column_width=90)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, value in {"rows": 512, "places": 32, "layers": 6, "width": 512, "heads": 8, "words": 8000, "steps": 20,
                        "rounds": 5}.items():  # fmt: skip
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--dropout", type=float, default=0.1)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--no-marian", action="store_true")
    parser.add_argument("--only", help="some of the kinds, by the ends of their names, with commas between")
    given = parser.parse_args()
    device = torch.device(given.device)
    torch.manual_seed(0)
    makers: dict[str, Callable[[], Step]] = {
        "MarianMT of Transformers": lambda: marian(given, device),
        "regard, eager": lambda: ours(given, device),
        "regard, compiled": lambda: ours(given, device, compiled=True),
        "regard, graphed": lambda: ours(given, device, graphed=True),
        "regard, compiled and graphed": lambda: ours(given, device, compiled=True, graphed=True),
        "regard, fused": lambda: ours(given, device, fused=True),
        "regard, fused and graphed": lambda: ours(given, device, fused=True, graphed=True),
    }
    if given.no_marian:
        del makers["MarianMT of Transformers"]
    if device.type != "cuda":
        makers = {name: make for name, make in makers.items() if "graphed" not in name and "fused" not in name}
    if given.only is not None:
        makers = {name: make for name, make in makers.items() if name.endswith(tuple(given.only.split(",")))}
    runs, first = {}, {}
    for name, make in makers.items():
        runs[name] = make()
        first[name] = sum(seconds(runs[name], 1, device) for _ in range(4))
        print(f"{name}: the first 4 steps took {first[name]:.1f} s", flush=True)
    rounds = [{name: seconds(run, given.steps, device) for name, run in runs.items()} for _ in range(given.rounds)]
    limit = products(given) / rate(device)
    where = torch.cuda.get_device_name(device) if device.type == "cuda" else "CPU"
    print(f"\ntorch {torch.__version__}, {where}, {given.rows} × {given.places} tokens, {given.layers} + {given.layers}"
          f" layers of width {given.width}, vocabulary {given.words}, dropout {given.dropout}")  # fmt: skip
    print(f"{'':30}{'ms a step':>10}{'tokens/s':>12}{'times the first':>17}{'share of limit':>16}")
    base = next(iter(runs))
    for name in runs:
        took = statistics.median(each[name] for each in rounds)
        ratio = statistics.median(each[base] / each[name] for each in rounds)
        tokens = given.rows * given.places / took
        print(f"{name:30}{took * 1e3:10.2f}{tokens:12,.0f}{ratio:17.2f}{limit / took:16.2f}")
    print(f"{'limit (products alone)':30}{limit * 1e3:10.2f}{given.rows * given.places / limit:12,.0f}")
    if given.profile:
        for name, run in runs.items():
            profiled(name, run, device)


if __name__ == "__main__":
    main()
