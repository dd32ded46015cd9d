"""The end of a run: the best weights, scored once more, into the model folder with all that is known of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from regard.models.folder import save_folder
from regard.support.atomic import write_text
from regard.training import checkpoint
from regard.training.config import SEQUENCES, Config
from regard.training.corpus import Corpus
from regard.training.evaluating import Evaluator, Found
from regard.training.loop import Run
from regard.training.recording import CURVE, picture, read
from regard.training.surroundings import surroundings

CONFIGURATION = "configuration.yaml"
SHORT = 20
"""Sentences of a test whose outputs are all shown."""


@dataclass(frozen=True)
class Result:
    """What a run came to."""

    folder: Path
    """The model folder."""
    steps: int
    seconds: float
    figures: dict[str, float] = field(default_factory=dict)
    """Of the saved model on the development set, by name."""


def finish(run: Run, corpus: Corpus) -> Result:
    """The best weights into the model folder, scored once more by the search that users will have."""
    config, counters = run.config, run.counters
    if run.best:
        checkpoint.read_weights(config.output, run.best[0].file, run.model)
        found = _final(run)
    else:
        found = None
        run.averaging.before_evaluation()
        run.averaging.settle()
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
    picture(read(run.recorder.path), Path(config.output) / CURVE, config.decides)
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
    written = yaml.safe_dump(config.model_dump(mode="json"), sort_keys=False, allow_unicode=True)
    write_text(Path(config.output) / CONFIGURATION, written)
