"""What a run is made of, from its configuration: data, model, optimizer, and the ways of computing that fit them."""

from pathlib import Path
from typing import Any

from torch import nn

from regard.data.batch_settings import BatchSettings
from regard.data.prepared import Prepared
from regard.data.settings import DataSettings
from regard.models.build import build
from regard.models.contract import Model
from regard.models.rnn_settings import RecurrentSettings
from regard.support.errors import Misuse
from regard.text.settings import TokenizerSettings
from regard.training import compiling, fine_tuning, optimizers
from regard.training.averaging import Averaging
from regard.training.config import Config
from regard.training.corpus import Corpus, groups_of, opened
from regard.training.evaluating import Evaluator
from regard.training.graphs import Graphs, obstacle
from regard.training.loop import Run
from regard.training.objective import Objective
from regard.training.pretrained import put_vectors
from regard.training.processes import Processes
from regard.training.schedule import Schedule
from regard.training.settings import TrainingSettings
from regard.training.stream import Stream
from regard.training.telling import Teller
from regard.training.updating import Update

SHAPES = 16
"""Of batches on a GPU, where none are set."""


def corpus_of(config: Config, team: Processes, teller: Teller) -> Corpus:
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


def model_of(config: Config, corpus: Corpus, teller: Teller) -> Model:
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


def run_of(config: Config, corpus: Corpus, model: Model, team: Processes, teller: Teller) -> Run:
    own, device = config.training, team.device
    groups = groups_of(corpus.train) if own.temperature != 1 else None
    stream = Stream(
        corpus.train, _batches(config, team), seed=config.seed, groups=groups, temperature=own.temperature,
        pin=device.type == "cuda",
    )  # fmt: skip
    updates = _updates(config, stream)
    bfloat16 = compiling.bfloat16(own, device)
    objective = Objective(model, own.label_smoothing, own.reinforce, own.teaching).to(device)
    fused = compiling.fuses(own, device, model, bfloat16=bfloat16.yes)
    compiled = compiling.compiles(own, device, model, updates, fused=fused.yes)
    if fused.yes:
        compiling.fuse(objective)
    elif compiled.yes:
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
        teller.say(f"fused: {_yes(fused)}")
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
