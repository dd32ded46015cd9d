"""From a configuration to a model folder.

result = train(Config(...))                     or train("train.yaml", ["training.steps=1000"])
result.folder, result.figures
"""

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import nn

from regard.config import read_config, settings_from
from regard.data.batch_settings import BatchSettings
from regard.data.prepared import Prepared
from regard.data.settings import DataSettings
from regard.models.build import build
from regard.models.contract import Model
from regard.models.folder import save_folder
from regard.models.rnn_settings import RecurrentSettings
from regard.support.atomic import write_text
from regard.support.errors import Misuse
from regard.support.progress import duration
from regard.text.settings import TokenizerSettings
from regard.training import beforehand, checkpoint, compiling, fine_tuning, optimizers
from regard.training.averaging import Averaging
from regard.training.config import SEQUENCES, Config
from regard.training.corpus import Corpus, groups_of, opened
from regard.training.evaluating import Evaluator, Found
from regard.training.graphs import Graphs, obstacle
from regard.training.loop import Run
from regard.training.objective import Objective
from regard.training.pretrained import put_vectors
from regard.training.processes import Processes, processes
from regard.training.recording import CURVE, METRICS, Recorder, picture
from regard.training.recording import read as read_metrics
from regard.training.schedule import Schedule
from regard.training.settings import TrainingSettings
from regard.training.stream import Stream
from regard.training.surroundings import surroundings
from regard.training.telling import Teller
from regard.training.updating import Update

CONFIGURATION = "configuration.yaml"
SHORT = 20
"""Sentences of a test whose outputs are all shown."""
SHAPES = 16
"""Of batches on a GPU, where none are set."""


@dataclass(frozen=True)
class Result:
    """What a run came to."""

    folder: Path
    """The model folder."""
    steps: int
    seconds: float
    figures: dict[str, float] = field(default_factory=dict)
    """Of the saved model on the development set, by name."""


def train(
    config: Config | Mapping[str, Any] | str | Path,
    overrides: Sequence[str] = (),
    *,
    quiet: bool = False,
    fresh: bool = False,
    anyway: bool = False,
) -> Result:
    """Train a model and write its folder. A run that was interrupted goes on where its checkpoint is.

    fresh: begin anew whatever is there; anyway: go on though settings differ from those of the checkpoint.
    """
    settled = resolved(config, overrides)
    torch.set_num_threads(settled.threads or _threads())
    with processes(settled.device) as team, Teller(quiet=quiet or not team.first) as teller:
        return _trained(settled, team, teller, fresh=fresh, anyway=anyway)


def resolved(config: Config | Mapping[str, Any] | str | Path, overrides: Sequence[str] = ()) -> Config:
    """The configuration, from whatever it was given as, with what was set on top; every mistake told at once."""
    if isinstance(config, Config):
        return settings_from(config.model_dump(mode="json"), Config, overrides) if overrides else config
    if isinstance(config, Mapping):
        return settings_from(config, Config, overrides)
    return read_config(config, Config, overrides)


def _threads() -> int:
    """As many threads as this process may use cores; those of torchrun share them."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    asked = os.environ.get("OMP_NUM_THREADS", "")
    return (
        int(asked)
        if asked.isdecimal() and int(asked)
        else max(cores // int(os.environ.get("LOCAL_WORLD_SIZE", "1")), 1)
    )


def _trained(config: Config, team: Processes, teller: Teller, *, fresh: bool, anyway: bool) -> Result:
    begun = time.monotonic()
    beforehand.check(config)
    saved = _found_checkpoint(config, fresh=fresh, anyway=anyway)
    team.wait()
    if fresh and team.first:
        checkpoint.forget(config.output)
    corpus = _corpus(config, team, teller)
    torch.manual_seed(config.seed)
    model = _model(config, corpus, teller).to(team.device)
    torch.manual_seed(config.seed + team.rank)
    run = _run(config, corpus, model, team, teller)
    if saved is not None:
        run.restore(saved)
        teller.say(f"going on from {checkpoint.path_in(config.output)}, step {run.counters.step:,}")
    if team.first:
        tensorboard = config.training.tensorboard
        folder = Path(config.output) / checkpoint.FOLDER
        run.recorder = Recorder(folder, step=run.counters.step, tensorboard=tensorboard)
    _tell_beginning(run, corpus)
    run.train()
    result = (
        _finish(run, corpus) if team.first else Result(Path(config.output), run.counters.step, run.counters.seconds)
    )
    team.wait()
    teller.say(f"{result.folder}: trained {result.steps:,} steps in {duration(time.monotonic() - begun)}")
    return result


def _found_checkpoint(config: Config, *, fresh: bool, anyway: bool) -> dict[str, Any] | None:
    """The checkpoint to go on from; Misuse where that would not be the same run."""
    if fresh:
        return None
    saved = checkpoint.read(config.output)
    if saved is None:
        if (Path(config.output) / "model.json").exists():
            raise Misuse(f"{config.output}: holds a model already; --fresh trains another in its place")
        return None
    differing = checkpoint.differences(saved["config"], config.model_dump(mode="json"))
    if differing and not anyway:
        listed = "\n".join(f"  {each}" for each in differing)
        raise Misuse(
            f"{checkpoint.path_in(config.output)}: was written with other settings; --anyway goes on with those of "
            f"now, --fresh begins anew:\n{listed}"
        )
    if saved["counters"]["done"] and not differing and _is_written(config, saved["counters"]["step"]):
        raise Misuse(f"{config.output}: this run is done; --fresh trains anew, more training.epochs and --anyway go on")
    saved["counters"]["done"] = saved["counters"]["done"] and not differing
    return saved


def _is_written(config: Config, step: int) -> bool:
    """Whether the model of a run that is done stands in its folder: a kill may have come in between."""
    metrics = read_metrics(Path(config.output) / checkpoint.FOLDER / METRICS)
    return any(line["kind"] == "final" and line["step"] == step for line in metrics)


def _corpus(config: Config, team: Processes, teller: Teller) -> Corpus:
    """The prepared data; prepared now where they are not."""
    if config.prepared is not None:
        prepared = Prepared(config.prepared)
        if team.first:
            prepared.verify()
        team.wait()
        return opened(prepared, config.task)
    assert config.data is not None
    folder = Path(config.data.folder or Path(config.output) / "data")
    if team.first:
        _prepare(config, config.data, folder, teller)
    team.wait()
    return opened(Prepared(folder), config.task)


def _prepare(config: Config, data: DataSettings, folder: Path, teller: Teller) -> None:
    from regard.data.preparing import prepare

    if config.init_from is not None:
        files = fine_tuning.tokenizers_of(config.init_from)
        if config.extend_vocabulary:
            new = prepare(data, folder.with_name(f"{folder.name}-new"), quiet=teller.quiet)
            files, data = (
                fine_tuning.extended(config.init_from, new, folder),
                data.changed(tokenizer=TokenizerSettings()),
            )
        data = fine_tuning.with_tokenizer(data, files)
    prepared = prepare(data, folder, quiet=teller.quiet)
    if prepared.fresh:
        teller.say(prepared.report)


def _model(config: Config, corpus: Corpus, teller: Teller) -> Model:
    try:
        if config.init_from is not None:
            return fine_tuning.begun(config.init_from, corpus, config.task)
        model = build(config.settled, corpus.sizes, config.task)
    except Misuse:
        raise
    except ValueError as error:
        raise Misuse(f"network: {error}") from None
    if (said := put_vectors(model, corpus.tokenizers.get("source"), config.seed)) is not None:
        teller.say(said)
    return model


def _run(config: Config, corpus: Corpus, model: Model, team: Processes, teller: Teller) -> Run:
    own, device = config.training, team.device
    groups = groups_of(corpus.train) if own.temperature != 1 else None
    stream = Stream(
        corpus.train, _batches(config, team), seed=config.seed, groups=groups, temperature=own.temperature,
        pin=device.type == "cuda",
    )  # fmt: skip
    updates = _updates(config, stream)
    bfloat16 = compiling.bfloat16(own, device)
    objective = Objective(model, own.label_smoothing, own.reinforce, own.teaching).to(device)
    compiled = compiling.compiles(own, device, model, updates)
    if compiled.yes:
        compiling.compile_parts(model, objective)
    steppers = optimizers.make(own.optimizer, model, sharded=own.shard_optimizer and team.ranks > 1)
    update: Any = Update(
        _parallel(objective, team), steppers, clip=own.clip, bfloat16=bfloat16.yes, device=device, ranks=team.ranks
    )
    graphed = _graphs(own, update, stream)
    teller.say(f"device: {device}{f' and {team.ranks - 1} more' if team.ranks > 1 else ''}")
    teller.say(f"bfloat16: {_yes(bfloat16)}")
    teller.say(f"torch.compile: {_yes(compiled)}")
    if device.type == "cuda":
        teller.say(f"CUDA graphs: {_yes(graphed)}")
    update = Graphs(update, teller.say) if graphed.yes else update
    evaluator = None
    if corpus.dev is not None:
        most = own.evaluate_at_most
        evaluator = Evaluator(config, corpus, corpus.dev, device, bfloat16=bfloat16.yes, at_most=most)
    return Run(
        config, model, update, steppers, Schedule(own.schedule, updates), Averaging(own.averaging, model), stream, team,
        evaluator, teller, lengths_stay=_packs(model) and not graphed.yes,
        before_update=objective.before_update,
    )  # fmt: skip


def _batches(config: Config, team: Processes) -> BatchSettings:
    """Of a bounded set of shapes where nothing is said and a GPU could record a graph for each."""
    own, batches = config.training, config.batches
    alone = team.device.type == "cuda" and team.ranks == 1 and own.accumulate == 1
    return batches.changed(shapes=SHAPES) if alone and own.graphs == "auto" and batches.shapes is None else batches


def _graphs(own: TrainingSettings, update: Update, stream: Stream) -> compiling.Choice:
    if own.graphs == "no":
        return compiling.Choice(False, "asked for")
    said = obstacle(update.device, update, accumulate=own.accumulate, shapes=stream.settings.shapes)
    if said is not None and own.graphs == "yes":
        raise Misuse(f"training.graphs: {said}")
    return compiling.Choice(said is None, said or "one launch for a whole step")


def _yes(choice: compiling.Choice) -> str:
    return f"{'yes' if choice.yes else 'no'} ({choice.why})"


def _packs(model: Model) -> bool:
    """Whether the network packs its rows by their lengths, which it must then see on the CPU."""
    return isinstance(model.settings, RecurrentSettings)


def _parallel(objective: Objective, team: Processes) -> nn.Module:
    """With several processes: gradients are averaged over them as they come."""
    if team.ranks == 1:
        return objective
    from torch.nn.parallel import DistributedDataParallel

    return DistributedDataParallel(objective)


def _updates(config: Config, stream: Stream) -> int | None:
    """How many updates the run will make at most; None where the clock alone ends it."""
    own = config.training
    known = [own.steps] if own.steps is not None else []
    if own.most_epochs is not None:
        known.append(max(1, round(own.most_epochs * stream.batches_an_epoch() / own.accumulate)))
    return min(known, default=None)


def _tell_beginning(run: Run, corpus: Corpus) -> None:
    count = sum(each.numel() for each in run.model.parameters())
    dev = 0 if corpus.dev is None else len(corpus.dev.examples)
    run.teller.say(
        f"{run.config.task}: {len(corpus.train):,} examples, {dev:,} of development; {count:,} parameters; "
        f"{run.stream.batches_an_epoch():,} batches an epoch; into {run.config.output}"
    )


def _finish(run: Run, corpus: Corpus) -> Result:
    """The best weights into the model folder, scored once more by the search that users will have."""
    config, counters = run.config, run.counters
    if run.best:
        checkpoint.read_weights(config.output, run.best[0].file, run.model)
        found = _final(run)
    else:
        found = None
        run.averaging.before_evaluation()
        with run.averaging.in_place():
            weights = [each.detach().clone() for each in run.model.parameters()]
        with torch.no_grad():
            for own, mean in zip(run.model.parameters(), weights, strict=True):
                own.copy_(mean)
    figures = {} if found is None else found.figures
    run.model.eval()
    tests = {name: _tested(run, corpus, name) for name in corpus.tests}
    about = _about(run, corpus, figures)
    about["scores"] |= {f"{name}, {key}": value for name, each in tests.items() for key, value in each.items()}
    save_folder(
        config.output, run.model, task=config.task, tokenizers=corpus.tokenizers, names=corpus.names, about=about
    )
    _write_configuration(config)
    assert run.recorder is not None
    picture(read_metrics(run.recorder.path), Path(config.output) / CURVE, config.decides)
    run.recorder("final", counters.step, {"seconds": round(counters.seconds, 3)} | figures)
    run.recorder.close()
    return Result(Path(config.output), counters.step, counters.seconds, figures)


def _final(run: Run) -> Found | None:
    if run.evaluator is None:
        return None
    found = run.evaluator(run.model, run.config.decoding.changed(nbest=1))
    run.teller.say(
        "best (step {:,}), as it will be used: {}".format(
            run.best[0].step, ", ".join([f"dev loss {found.loss:.3f}", *map(str, found.scores.values())])
        )
    )
    return found


def _tested(run: Run, corpus: Corpus, name: str) -> dict[str, float]:
    """The scores of the saved model on a test, once; of a short one every output is shown."""
    bfloat16 = run.evaluator.bfloat16 if run.evaluator is not None else False
    test = Evaluator(run.config, corpus, corpus.tests[name], run.device, bfloat16=bfloat16, at_most=None)
    found = test(run.model, run.config.decoding.changed(nbest=1), len(test) if len(test) <= SHORT else 0)
    run.teller.say(f"test {name}: {', '.join([f'loss {found.loss:.3f}', *map(str, found.scores.values())])}")
    for pair, scores in found.by_pair.items():
        run.teller.say(f"    {pair}: {', '.join(map(str, scores.values()))}")
    run.teller.samples(found.samples)
    if found.samples and run.config.task in SEQUENCES:
        outputs = [each.output for each in found.samples]
        right = sum(alike(said, several) for said, several in zip(outputs, test.references, strict=True))
        run.teller.say(f"test {name}: {right} of {len(test)} right but for case and final punctuation")
    return found.figures


def alike(output: str, references: Sequence[str]) -> bool:
    """Whether an output is one of the references, but for case and punctuation at the end."""

    def plain(text: str) -> str:
        return text.casefold().strip().rstrip(".!?…。！？।").rstrip()

    return plain(output) in {plain(each) for each in references}


def _about(run: Run, corpus: Corpus, figures: Mapping[str, float]) -> dict[str, Any]:
    config = run.config
    about: dict[str, Any] = {"name": config.name or Path(config.output).resolve().name}
    if config.data is not None:
        sources = config.data.splits["train"]
        about["trained_on"] = [each.name for each in sources]
        spoken = {getattr(each, "languages", None) for each in sources}
        if len(spoken) == 1 and not corpus.pairs and (only := spoken.pop()) is not None:
            about |= {"source": only.source, "target": only.target}
    if corpus.pairs:
        about["pairs"] = list(corpus.pairs)
    if "source" in corpus.train.columns and config.task != "caption":
        about["longest"] = int(corpus.train.lengths("source").max())
    about["scores"] = {f"development set, {name}": value for name, value in figures.items()}
    about["training"] = {
        "steps": run.counters.step, "epochs": round(run.stream.epochs, 3), "seconds": round(run.counters.seconds, 1),
        "target tokens": run.counters.places, "updates left out": run.counters.left_out,
    }  # fmt: skip
    about["seed"] = config.seed
    about["configuration"] = config.model_dump(mode="json", exclude_defaults=True)
    return about | {"made with": surroundings(corpus.folder)}


def _write_configuration(config: Config) -> None:
    """All settings of the run, its defaults too; `regard train` takes the file as it is."""
    import yaml

    written = yaml.safe_dump(config.model_dump(mode="json"), sort_keys=False, allow_unicode=True)
    write_text(Path(config.output) / CONFIGURATION, written)
