"""What several commands do before their work: find the model, set the threads."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from regard.support.errors import Misuse
from regard.support.memory import keep_freed_memory

if TYPE_CHECKING:
    from regard.pipeline.fast.engine import Fast
    from regard.pipeline.model import Pipeline

Model = Annotated[str | None, typer.Option("--model", "-m", help="The model's folder.")]
Device = Annotated[str, typer.Option(help="cpu, cuda, cuda:1, …")]
Threads = Annotated[int | None, typer.Option(min=1, help="Threads of the CPU; all cores otherwise.")]
Precision = Annotated[
    str,
    typer.Option(
        help="float32; packed: the same, by a library that some CPUs are quicker with; bfloat16; auto: packed "
        "where it pays."
    ),
]
Ensemble = Annotated[
    list[str] | None,
    typer.Option("--ensemble", help="A further model: the mean of their probabilities decides; may be repeated."),
]
Map = Annotated[
    Path | None,
    typer.Option("--vocabulary-map", help="Only likely target tokens (regard vocabulary-map makes such a file)."),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")]


WEIGHTS = ("weights.safetensors", "model.bin")
"""Of a model folder, and of one that was exported."""


def opened(
    model: str | None,
    device: str = "cpu",
    threads: int | None = None,
    precision: str = "float32",
    ensemble: Sequence[str] | None = None,
) -> "Pipeline":
    """The model that was named, or an ensemble of it and others."""
    if model is None:
        raise Misuse("name a model's folder with --model FOLDER")
    from regard.pipeline.fast import is_exported

    for folder in (model, *(ensemble or ())):
        if is_exported(folder):
            said = "which translates, alone, and nothing else" if ensemble else "which translates and nothing else"
            raise Misuse(f"{folder}: was exported for CTranslate2, {said}: regard translate")
    import torch

    from regard.pipeline.model import load

    if threads is not None:
        torch.set_num_threads(threads)
    if device == "cpu":
        keep_freed_memory()
    folders = [model, *ensemble] if ensemble else model
    return load(folders, _known(device), precision=precision)  # type: ignore[arg-type]  # load checks it


def translator(
    model: str | None,
    device: str = "cpu",
    threads: int | None = None,
    precision: str = "float32",
    ensemble: Sequence[str] | None = None,
) -> "Pipeline | Fast":
    """A model that is to translate: one that was exported is run by CTranslate2, and no torch is read."""
    from regard.pipeline.fast import is_exported, load_fast

    if ensemble or model is None or not is_exported(model):
        return opened(model, device, threads, precision, ensemble)
    if device != "cpu":
        raise Misuse(f"--device {device}: a model that was exported for CTranslate2 runs on the CPU")
    return load_fast(model, threads=threads)


def _known(device: str) -> str:
    import torch

    try:
        kind = torch.device(device).type
    except RuntimeError:
        raise Misuse(f"--device {device}: expected cpu, cuda, cuda:1 or mps") from None
    if kind == "cuda" and not torch.cuda.is_available():
        raise Misuse(f"--device {device}: this PyTorch sees no GPU")
    return device


def made_of(model: "Pipeline | Fast", path: Path | None, **settings: Any) -> Mapping[str, Any]:
    """What results are made of: what was written of them can be gone on with as long as that is the same."""
    facts = {"model": str(model.folder and model.folder.resolve()), "weights": stamp_of(model.folder)}
    return facts | {"input": str(path), "size": _stamp(path), **settings}


def marked(path: Path) -> list[Any]:
    """A file or a model's folder, by name and as it is now."""
    return [str(path.resolve()), stamp_of(path) if path.is_dir() else _stamp(path)]


def stamp_of(folder: Path | None) -> list[int]:
    """Size and time of a model's weights."""
    return _stamp(None if folder is None else next(filter(Path.is_file, map(folder.joinpath, WEIGHTS)), None))


def _stamp(path: Path | None) -> list[int]:
    """Size and time of a file, as JSON gives it back."""
    if path is None or not path.is_file():
        return []
    found = path.stat()
    return [found.st_size, found.st_mtime_ns]
