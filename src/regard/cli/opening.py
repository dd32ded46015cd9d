"""What several commands do before their work: find the model, set the threads."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from regard.support.errors import Misuse
from regard.support.memory import keep_freed_memory
from regard.support.nearest import unknown

if TYPE_CHECKING:
    from regard.pipeline.fast.engine import Fast
    from regard.pipeline.model import Pipeline

Model = Annotated[
    str | None, typer.Option("--model", "-m", help="The model's folder; none: the translator that comes with regard.")
]
Engine = Annotated[str, typer.Option(help="auto, pytorch, or ctranslate2, which runs Transformers quickly on a CPU.")]
Device = Annotated[str, typer.Option(help="cpu, cuda, cuda:1, …")]
Threads = Annotated[int | None, typer.Option(min=1, help="Threads of the CPU; all cores otherwise.")]
Precision = Annotated[
    str,
    typer.Option(
        help="float32; stored: the same, weights in 8 bits staying so; packed: the same, by a library that some CPUs "
        "are quicker with; bfloat16; auto: stored or packed, as the model is."
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
    from regard.pipeline.fast import is_exported

    model = str(named(model))

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
    *,
    engine: str = "auto",
    pytorch: str | None = None,
    few: bool = False,
) -> "Pipeline | Fast":
    """A model that is to translate. Run by CTranslate2 it reads no torch.

    engine auto: CTranslate2 for models that were exported for it and, where it is installed, for those in 8 bits;
    PyTorch for all others. pytorch: what is asked for that PyTorch alone does, in words. few: some texts only,
    which a small network is done with before a second thread has begun.
    """
    from regard.pipeline.fast import is_exported, load_fast

    if engine not in ENGINES:
        raise Misuse(unknown("engine", engine, ENGINES))
    folder = named(model)
    other = pytorch or (f"--device {device}" if device != "cpu" else None) or ("--ensemble" if ensemble else None)
    exported = is_exported(folder)
    if engine == "ctranslate2" and other is not None:
        raise Misuse(f"--engine ctranslate2: PyTorch alone does this: {other}")
    if exported and device != "cpu":
        raise Misuse(f"--device {device}: a model that was exported for CTranslate2 runs on the CPU")
    by_itself = engine == "auto" and not ensemble and (exported or _quick(folder, other, precision))
    if engine == "ctranslate2" or by_itself:
        return load_fast(folder, threads=threads)
    if few and threads is None and stamp_of(folder)[:1] < [SMALL]:
        threads = 1
    return opened(str(folder), device, threads, precision, ensemble)


ENGINES = ("auto", "pytorch", "ctranslate2")
SMALL = 100_000_000
"""Bytes of the weights of a small network."""


def named(model: str | None) -> Path:
    """The folder that was named, or that of the translator that comes with regard."""
    if model is not None:
        return Path(model)
    from regard.builtin import translator as own

    if (folder := own()) is None:
        raise Misuse("name a model's folder with --model FOLDER: this build of regard comes without a translator")
    return folder


def _quick(folder: Path, other: str | None, precision: str) -> bool:
    """Whether CTranslate2 runs a model folder by itself: it is installed, and computes with the numbers there are."""
    if other is not None or precision != "auto":
        return False
    from regard.models.eight_bits import in_eight_bits
    from regard.pipeline.fast import available

    if not available() or not in_eight_bits(folder / WEIGHTS[0]):
        return False
    from regard.models.reading import read_model_json
    from regard.pipeline.fast.export import obstacles

    held = read_model_json(folder)
    return not obstacles(held["task"], held["network"])


def _known(device: str) -> str:
    import torch

    try:
        kind = torch.device(device).type
    except RuntimeError:
        raise Misuse(f"--device {device}: expected cpu, cuda, cuda:1 or mps") from None
    if kind == "cuda" and not torch.cuda.is_available():
        raise Misuse(f"--device {device}: this PyTorch sees no GPU")
    return device


@contextmanager
def as_asked() -> Iterator[None]:
    """What the library refuses here was asked for by the person: a layer there is not, a step without a name."""
    try:
        yield
    except (Misuse, UnicodeError):
        raise
    except ValueError as error:
        raise Misuse(str(error)) from None


def check_outputs(*paths: Path | None, picture: Path | None = None) -> None:
    """That files can be written where they are wanted, before the work whose results they are to hold."""
    for path in filter(None, (*paths, picture)):
        if not path.parent.is_dir():
            raise Misuse(f"{path}: there is no folder {path.parent}")
    if picture is not None:
        from regard.evaluation.pictures import kind_of

        kind_of(picture)


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
