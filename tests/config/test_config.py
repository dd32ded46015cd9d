"""A configuration file is read whole, or every mistake in it is told at once."""

from pathlib import Path
from typing import Annotated, Literal

import pytest
from pydantic import Field, ValidationError

from regard.config import Settings, read_config, settings_from
from regard.support.errors import Misuse


class Files(Settings):
    source: str
    "The file of the source side."
    kind: Literal["lines", "tsv"] = "lines"
    "How the sentences stand in it."


class Adam(Settings):
    kind: Literal["adam"] = "adam"
    "Which optimiser."
    rate: float = Field(default=1e-3, gt=0)
    "The learning rate."


class Descent(Settings):
    kind: Literal["descent"] = "descent"
    "Which optimiser."


class Run(Settings):
    train: str | Files
    "What is learnt from."
    dev: tuple[Files, ...] = ()
    "What is measured on."
    epochs: int = 3
    "How often."
    optimiser: Annotated[Adam | Descent, Field(discriminator="kind")] = Adam()
    "How the weights move."


@pytest.fixture
def read(tmp_path, monkeypatch):
    """Write the text to run.yaml and read it as a Run."""
    monkeypatch.chdir(tmp_path)

    def _read(text: str, *overrides: str) -> Run:
        Path("run.yaml").write_text(text, encoding="utf-8")
        return read_config("run.yaml", Run, overrides)

    return _read


def told(read, text: str, *overrides: str) -> list[str]:
    with pytest.raises(Misuse) as caught:
        read(text, *overrides)
    return str(caught.value).splitlines()


def test_a_file_becomes_settings_and_the_rest_takes_its_default(read) -> None:
    run = read("train: {source: a.en}\noptimiser:\n  kind: adam\n  rate: 3e-4\n")
    assert run == Run(train=Files(source="a.en"), optimiser=Adam(rate=0.0003))
    assert (run.epochs, run.dev) == (3, ())


def test_every_mistake_is_told_at_once_with_its_line_and_key_path(read) -> None:
    text = """\
train: {sorce: a.en, kind: tvs}
dev:
- source: 1e-4
- source: b.en
  rate: 3
epochs: true
optimiser: {kind: adm}
optimisr: 3
"""
    assert told(read, text) == [
        "run.yaml: 8 mistakes",
        "run.yaml:1: train.source: missing, and there is no default: The file of the source side.",
        "run.yaml:1: train.kind: unknown choice 'tvs'; did you mean 'tsv'? (known: lines, tsv)",
        "run.yaml:1: train.sorce: unknown key 'sorce'; did you mean 'source'? (known: kind, source)",
        "run.yaml:3: dev.0.source: expected text (in quotes, if it looks like something else), came 0.0001",
        "run.yaml:5: dev.1.rate: unknown key 'rate' here; did you mean optimiser.rate?",
        "run.yaml:6: epochs: expected a whole number, came 'true'",
        "run.yaml:7: optimiser: unknown kind 'adm'; did you mean 'adam'? (known: adam, descent)",
        "run.yaml:8: optimisr: unknown key 'optimisr'; did you mean 'optimiser'? "
        "(known: dev, epochs, optimiser, train)",
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("train: 5", "run.yaml:1: train: expected text (in quotes, if it looks like something else) or "
                     "a mapping of keys to values, came 5"),
        ("train: a\nepochs: 2.5", "run.yaml:2: epochs: expected a whole number, came 2.5"),
        ("train: a\nepochs:", "run.yaml:2: epochs: expected a whole number, came nothing (null)"),
        ("train: a\ndev: {}", "run.yaml:2: dev: expected a list, came an empty mapping"),
        ("train: a\noptimiser: {kind: adam, rate: .inf}",
         "run.yaml:2: optimiser.rate: expected a finite number, came inf"),
        ("train: a\noptimiser: {kind: adam, rate: 0}",
         "run.yaml:2: optimiser.rate: expected greater than 0, came 0"),
        ("", "run.yaml: train: missing, and there is no default: What is learnt from."),
        ("- train", "run.yaml: expected keys and values (key: value) at the top, came list"),
        ("epochs: 1\nepochs: 2", "run.yaml:2: not a configuration in YAML: the key 'epochs' stands here and "
                                 "on line 1; one of them must go"),
        ("train: {source: a, source: b}", "run.yaml:1: not a configuration in YAML: the key 'source' stands "
                                          "here and on line 1; one of them must go"),
        ("train: a\n\tepochs: 1", "run.yaml:2: not a configuration in YAML: a tab where YAML wants spaces"),
        ("train: a: b", "run.yaml:1: not a configuration in YAML: a colon where no key can stand "
                        "(check the indentation, or put quotes around the text)"),
        ("? [1]\n: 2", "run.yaml:1: not a configuration in YAML: a list or a mapping as a key"),
        ("train: !!python/object/apply:os.getcwd []",
         "run.yaml:1: not a configuration in YAML: no room for the tag "
         "'tag:yaml.org,2002:python/object/apply:os.getcwd'; only plain values"),
        ("train: &a [*a]", "run.yaml:1: not a configuration in YAML: an alias that holds itself"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_in_one_line(read, text: str, message: str) -> None:
    assert told(read, text) == [message]


def test_aliases_that_grow_without_end_are_refused_quickly(read) -> None:
    text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
    text += "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 12))
    assert told(read, text)[0].endswith("aliases that stand for more than 100000 values")


def test_a_file_nested_without_end_or_in_another_encoding_is_refused(read) -> None:
    assert told(read, "train: " + "[" * 5000) == ["run.yaml: nested too deeply for a configuration"]
    Path("run.yaml").write_bytes("train: für".encode("latin-1"))
    with pytest.raises(Misuse, match=r"^run.yaml: not UTF-8 at byte 8; a configuration is UTF-8 text$"):
        read_config("run.yaml", Run)


def test_a_file_that_is_not_there_is_the_systems_error_and_names_it(tmp_path) -> None:
    with pytest.raises(FileNotFoundError, match=r"none.yaml"):
        read_config(tmp_path / "none.yaml", Run)


class Scalars(Settings):
    values: list[object]
    "Any."


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("no", "no"), ("on", "on"), ("yes", "yes"), ("true", True), ("12:30", "12:30"), ("1e-4", 1e-4),
        ("010", "010"), ("1_000", 1000), ("0x1f", 31), ("2024-01-01", "2024-01-01"), ("~", None),
        ("-3", -3), (".5", 0.5), ("1.", 1.0), ("'5'", "5"), ("1e", "1e"), ("3.0", 3.0),
    ],
)  # fmt: skip
def test_scalars_are_those_of_yaml_1_2(tmp_path, written: str, value: object) -> None:
    file = tmp_path / "x.yaml"
    file.write_text(f"values: [{written}]")
    (came,) = read_config(file, Scalars).values
    assert (came, type(came)) == (value, type(value))


def test_overrides_come_on_top_and_reach_into_lists(read) -> None:
    text = "train: {source: a}\ndev: [{source: b}, {source: c}]\n"
    run = read(text, "train.kind=tsv", "dev.1.source=d=e", "epochs=7", "optimiser.kind=descent")
    assert run == Run(
        train=Files(source="a", kind="tsv"),
        dev=(Files(source="b"), Files(source="d=e")),
        epochs=7,
        optimiser=Descent(),
    )


def test_an_override_makes_the_mappings_that_lead_to_it(read) -> None:
    assert read("", "train.source=a").train == Files(source="a")


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("epochs", "--set epochs: expected path.to.key=value, such as data.train.source=a.en"),
        (".x=3", "--set .x=3: expected path.to.key=value, such as data.train.source=a.en"),
        ("epochs=[", "--set epochs=[: '[' is not a YAML value; put quotes around text"),
        ("dev.1.source=x", "--set dev.1.source=x: dev is a list of 1, numbered from 0; came '1'"),
        ("train.source=x", "--set train.source=x: train is 'a', which has no key 'source'"),
        ("epochs=ten", "--set epochs=ten: epochs: expected a whole number, came 'ten'"),
        ("epoch=3", "--set epoch=3: epoch: unknown key 'epoch'; did you mean 'epochs'? "
                    "(known: dev, epochs, optimiser, train)"),
    ],
)  # fmt: skip
def test_a_wrong_override_is_named_as_it_was_given(read, override: str, message: str) -> None:
    assert told(read, "train: a\ndev: [{source: b}]", override) == [message]


def test_an_override_changes_neither_the_given_values_nor_an_alias(read) -> None:
    values = {"train": {"source": "a"}}
    settings_from(values, Run, ["train.source=b"])
    assert values == {"train": {"source": "a"}}
    run = read("dev: [&one {source: b}, *one]\ntrain: a", "dev.0.source=c")
    assert [each.source for each in run.dev] == ["c", "b"]


def test_settings_built_in_python_tell_their_mistakes_the_same_way() -> None:
    with pytest.raises(Misuse) as caught:
        Run(train={"sorce": 3}, epochs="x")  # type: ignore[arg-type]
    assert str(caught.value).splitlines() == [
        "Run: train.source: missing, and there is no default: The file of the source side.",
        "Run: train.sorce: unknown key 'sorce'; did you mean 'source'? (known: kind, source)",
        "Run: epochs: expected a whole number, came 'x'",
    ]


def test_settings_are_frozen_keyword_only_and_described() -> None:
    run = Run(train="a")
    with pytest.raises(ValidationError, match="frozen"):
        run.epochs = 4  # type: ignore[misc]
    with pytest.raises(TypeError, match="positional"):
        Run("a")  # type: ignore[call-arg]
    assert {field.description for field in Files.model_fields.values()} == {
        "The file of the source side.", "How the sentences stand in it.",
    }  # fmt: skip


def test_changed_settings_are_checked_again() -> None:
    run = Run(train="a")
    assert run.changed(epochs=9) == Run(train="a", epochs=9)
    with pytest.raises(Misuse, match="Run: epochs: expected a whole number, came 'x'"):
        run.changed(epochs="x")
    with pytest.raises(Misuse, match="Run: epoch: unknown key 'epoch'; did you mean 'epochs'"):
        run.changed(epoch=3)
