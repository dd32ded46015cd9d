"""Training a recurrent decoder with Bahdanau's attention: forward and backward of the decoder alone, then whole steps.

    python benchmarks/recurrent.py [--rows 128] [--steps 32] [--places 32] [--width 512] [--words 8000] [--device cuda]

The decoder alone: from a memory that is there to the loss of all steps, and its gradients. Eager; on a GPU also as one
CUDA graph, each with attention by the formula and by the kernels for additive attention. Then whole updates as
`regard train` makes them, encoder and optimizer included. Rounds alternate; figures are medians.
"""

import argparse
import statistics
import time
from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor

from regard.attention.fast import choice
from regard.models.build import build
from regard.models.rnn.decoder import Recurrent
from regard.models.rnn_settings import RecurrentSettings
from regard.models.sizes import Sizes
from regard.training import optimizers
from regard.training.feeding import Fed, shifted
from regard.training.graphs import Graphs
from regard.training.objective import Objective, smoothed
from regard.training.settings import OptimizerSettings, ReinforceSettings, TeachingSettings
from regard.training.updating import Update

Step = Callable[[], object]


def made(given: argparse.Namespace, device: torch.device) -> Recurrent:
    torch.manual_seed(0)
    settings = RecurrentSettings.model_validate(
        {"width": given.width, "embedding": given.width, "input": {"width": given.width}, "dropout": 0.0,
         "attention": {"kind": "bahdanau"}}
    )  # fmt: skip
    model = build(settings, Sizes(source=given.words, target=given.words), "translate").to(device).train()
    assert isinstance(model, Recurrent)
    return model


def batch(given: argparse.Namespace, device: torch.device) -> Fed:
    generator = torch.Generator().manual_seed(0)
    source = torch.randint(4, given.words, (given.rows, given.places), generator=generator).to(device)
    target = torch.randint(4, given.words, (given.rows, given.steps), generator=generator).to(device)
    return Fed(target, source, torch.full((given.rows,), given.places, device=device), shifted(target, 2))


def attention_by(kernels: bool) -> None:
    """Whether "auto" takes the kernels for additive attention."""
    choice.PATHS = tuple(replace(path, by_itself=kernels) if path.name == "additive" else path for path in choice.PATHS)


def decoder(given: argparse.Namespace, device: torch.device, *, kernels: bool, graphed: bool) -> Step:
    model, fed = made(given, device), batch(given, device)
    assert fed.target is not None
    with torch.no_grad(), torch.autocast(device.type, torch.bfloat16):
        memory = model.encode(fed.source, fed.lengths)
    target, wanted = fed.target, fed.wanted
    weights = [each for name, each in model.named_parameters() if not name.startswith(("encoder", "bridge"))]

    def run() -> list[Tensor | None]:
        attention_by(kernels)
        with torch.autocast(device.type, torch.bfloat16):
            loss = smoothed(model.output(model._all_steps(target, memory)[0]), wanted, 0.1)
        return list(torch.autograd.grad(loss, weights, allow_unused=True))

    return recorded(run) if graphed else run


def recorded(run: Step) -> Step:
    stream: torch.cuda.Stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    with torch.cuda.stream(stream):
        run()
        run()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run()
    return graph.replay


def whole(given: argparse.Namespace, device: torch.device, *, kernels: bool, graphed: bool) -> Step:
    model, fed = made(given, device), batch(given, device)
    objective = Objective(model, 0.1, ReinforceSettings(), TeachingSettings())
    steppers = optimizers.make(OptimizerSettings(rate=1e-4), model)
    update: Update | Graphs = Update(objective, steppers, clip=1.0, bfloat16=True, device=device)
    update = Graphs(update, print) if graphed and isinstance(update, Update) else update
    attention_by(kernels)
    for _ in range(4):
        update([fed], given.rows * given.steps)

    def run() -> None:
        attention_by(kernels)
        update([fed], given.rows * given.steps)

    return run


def seconds(run: Step, times: int, device: torch.device) -> float:
    waited(device)
    start = time.perf_counter()
    for _ in range(times):
        run()
    waited(device)
    return (time.perf_counter() - start) / times


def waited(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    sizes = {"rows": 128, "steps": 32, "places": 32, "width": 512, "words": 8000, "rounds": 5, "times": 5}
    for name, value in sizes.items():
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    given = parser.parse_args()
    device = torch.device(given.device)
    ways = [(False, False)] if device.type != "cuda" else [(False, False), (True, False), (False, True), (True, True)]
    where = torch.cuda.get_device_name(device) if device.type == "cuda" else f"{torch.get_num_threads()} CPU threads"
    print(f"torch {torch.__version__}, {where}, {given.rows} rows × {given.steps} steps, {given.places} source places, "
          f"width {given.width}, vocabulary {given.words}")  # fmt: skip
    for title, maker in (("decoder alone, forward and backward", decoder), ("whole updates", whole)):
        runs = {way: maker(given, device, kernels=way[0], graphed=way[1]) for way in ways}
        for run in runs.values():
            seconds(run, 2, device)
        rounds = [{way: seconds(run, given.times, device) for way, run in runs.items()} for _ in range(given.rounds)]
        print(f"\n{title:38}{'ms':>9}{'tokens/s':>12}{'times the first':>17}")
        for kernels, graphed in ways:
            took = statistics.median(each[kernels, graphed] for each in rounds)
            ratio = statistics.median(each[ways[0]] / each[kernels, graphed] for each in rounds)
            name = f"  {'one graph' if graphed else 'eager'}, {'kernels' if kernels else 'formula'}"
            print(f"{name:38}{took * 1e3:9.2f}{given.rows * given.steps / took:12,.0f}{ratio:17.2f}", flush=True)


if __name__ == "__main__":
    main()
