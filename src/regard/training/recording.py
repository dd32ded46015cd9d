"""Every figure of a run on the disk: `metrics.jsonl`, TensorBoard where it is asked for, and a picture of the curve."""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from regard.support.atomic import write_text, writing
from regard.support.errors import Misuse

METRICS, CURVE = "metrics.jsonl", "loss.svg"


class Recorder:
    """One line of JSON a reading, {"step": …, "kind": "train" | "dev" | "final", …}; a resumed run goes on where its
    checkpoint was."""

    def __init__(self, folder: Path, *, step: int, tensorboard: bool) -> None:
        self.path = folder / METRICS
        folder.mkdir(parents=True, exist_ok=True)
        kept = [line for line in read(self.path) if line["step"] <= step] if step else []
        write_text(self.path, "".join(_line(each) for each in kept))
        self.writer = writer_class()(str(folder)) if tensorboard else None

    def __call__(self, kind: str, step: int, figures: Mapping[str, Any]) -> None:
        with self.path.open("a", encoding="utf-8") as file:
            file.write(_line({"step": step, "kind": kind, **figures}))
        if self.writer is not None:
            for name, value in figures.items():
                if isinstance(value, (int, float)):
                    self.writer.add_scalar(f"{kind}/{name}", value, step)

    def close(self) -> None:
        if self.writer is not None:
            self.writer.close()


def _line(figures: Mapping[str, Any]) -> str:
    plain = {
        key: None if isinstance(each, float) and not math.isfinite(each) else each for key, each in figures.items()
    }
    return json.dumps(plain, ensure_ascii=False) + "\n"


def read(path: Path) -> list[dict[str, Any]]:
    """The lines of a metrics.jsonl; one that a kill cut off is left out."""
    if not path.exists():
        return []
    found = []
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            found.append(json.loads(line))
        except ValueError:
            continue
    return found


def writer_class() -> Any:
    """TensorBoard's, which must be installed."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise Misuse(
            "training.tensorboard: TensorBoard is not installed; pip install tensorboard, or leave it out "
            "(metrics.jsonl has every figure)"
        ) from None
    return SummaryWriter


def picture(metrics: list[dict[str, Any]], path: Path, best: str) -> None:
    """The loss of training and of the development set over the steps, and the score that decides below it."""
    from matplotlib.figure import Figure

    trained = [(each["step"], each["loss"]) for each in metrics if each["kind"] == "train" and each.get("loss")]
    dev = [each for each in metrics if each["kind"] == "dev"]
    scored = [(each["step"], each[best]) for each in dev if best != "loss" and each.get(best) is not None]
    figure = Figure(figsize=(8, 6 if scored else 4), layout="constrained")
    axes = figure.subplots(2 if scored else 1, 1, sharex=True, squeeze=False)[:, 0]
    if trained:
        axes[0].plot(*zip(*trained, strict=True), label="training", color="#7a8ba8", linewidth=1)
    if dev:
        axes[0].plot([e["step"] for e in dev], [e["loss"] for e in dev], "o-", label="development", color="#b3431e")
    axes[0].set_ylabel("loss a token (nats)")
    if trained or dev:
        axes[0].legend()
    if scored:
        axes[1].plot(*zip(*scored, strict=True), "o-", color="#1e6f5c")
        axes[1].set_ylabel(best)
    axes[-1].set_xlabel("step")
    with writing(path) as file:
        figure.savefig(file, format="svg")
