"""A configuration is checked whole, before any work starts."""

from pathlib import Path
from typing import Any

import pytest

from regard.config import read_config, settings_from
from regard.models.network_settings import TASKS
from regard.support.errors import Misuse
from regard.training import shipped
from regard.training.config import COLUMNS, SCORES, SEQUENCES, Config

PAIRS = {"data": {"train": {"source": "a.en", "target": "a.de"}}, "output": "m"}


def test_the_data_alone_are_enough() -> None:
    config = settings_from(PAIRS, Config)
    assert (config.task, config.decides, config.settled.kind, config.training.most_epochs) == (
        "translate", "bleu", "transformer", 30.0,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"data": None}, "expected data, or prepared .*; got neither"),
        ({"prepared": "p"}, "expected data, or prepared .*; got both"),
        ({"task": "tag"}, r"task: tag needs data with source and tags; .* \(which translate or caption could use\)"),
        ({"task": "language_model"}, "task: language_model needs data with target; data.train gives source and target"),
        ({"task": "translat"}, "task: unknown choice 'translat'; did you mean 'translate'?"),
        ({"evaluation": {"best": "accuracy"}}, "evaluation.best: the task translate has no accuracy"),
        ({"training": {"teaching": {"own": 0.2}}}, "scheduled sampling is for recurrent decoders"),
        (
            {
                "network": {"kind": "recurrent", "attention": {"hard": "reinforce"}},
                "training": {"teaching": {"own": 0.2}},
            },
            "not with attention.hard: reinforce",
        ),
        ({"extend_vocabulary": True}, "extend_vocabulary: there is no vocabulary to extend without init_from"),
        ({"training": {"graphs": "yes"}}, "training.graphs: a graph is for one shape; bound them with batches.shapes"),
        ({"training": {"optimizer": {"betas": [0.9, 1.0]}}}, "two numbers from 0 to below 1; got"),
    ],
)  # fmt: skip
def test_combinations_that_cannot_be_are_refused(changed: dict[str, Any], said: str) -> None:
    values = {key: value for key, value in {**PAIRS, **changed}.items() if value is not None}
    with pytest.raises(Misuse, match=said):
        settings_from(values, Config)


def test_numbers_cannot_be_foretold_by_a_task_of_text() -> None:
    with pytest.raises(Misuse, match=r"task: translate gives text out; the target of data\.train is numbers"):
        settings_from({"data": {"train": {"series": "a.tsv", "target": "numbers"}}, "output": "m"}, Config)


def test_every_mistake_is_told_at_once_with_its_line_and_the_nearest_key(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_text("data: {train: a.tsv}\noutput: m\ntraining:\n  stepz: 3\n  clip: -1\nnetwork: {widht: 8}\n")
    with pytest.raises(Misuse) as told:
        read_config(path, Config)
    said = str(told.value)
    assert "training.stepz: unknown key 'stepz'; did you mean 'steps'?" in said
    assert "training.clip: expected greater than or equal to 0, came -1" in said
    assert "network.widht: unknown key 'widht'; did you mean 'width'?" in said
    assert "c.yaml:4" in said


def test_the_tables_of_tasks_are_whole() -> None:
    assert set(COLUMNS) == set(SCORES) == set(TASKS)
    assert set(SEQUENCES) <= set(TASKS)


@pytest.mark.parametrize("name", shipped.names())
def test_every_shipped_configuration_can_be_read(name: str) -> None:
    assert read_config(shipped.found(name), Config).output


def test_a_configuration_is_found_by_its_name_or_the_nearest_is_told(tmp_path: Path) -> None:
    own = tmp_path / "own.yaml"
    own.write_text("output: m\n")
    assert shipped.found(str(own)) == own
    assert shipped.found("two-pairs").name == "two-pairs.yaml"
    with pytest.raises(Misuse, match=r"two-pirs: there is no such file, .*; did you mean two-pairs\?"):
        shipped.found("two-pirs")
