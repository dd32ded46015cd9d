"""A model folder: what goes in comes back, and what is wrong with one is told in a sentence."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from regard.models.build import build
from regard.models.folder import load_folder, save_folder
from regard.models.sizes import Sizes
from regard.models.transformer_settings import TransformerSettings
from regard.support.errors import Misuse
from regard.text.settings import TokenizerSettings
from regard.text.tokenizer import Tokenizer

SMALL = TransformerSettings(width=8, heads=2, feed_forward=12, encoder_layers=1, decoder_layers=1)
SIZES = Sizes(source=11, target=11)
TEXTS = ["a small cat", "the small dogs", "a dog and a cat"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    torch.manual_seed(0)
    save_folder(tmp_path / "model", build(SMALL, SIZES, "translate"), task="translate", about={"source": "en"})
    return tmp_path / "model"


def words(texts: list[str]) -> Tokenizer:
    return Tokenizer.train(texts, TokenizerSettings(kind="words", min_count=1, vocabulary=50))


@pytest.mark.parametrize("changed", [
    {}, {"positions": "learned", "longest": 9}, {"positions": "alibi"}, {"share_embeddings": False},
    {"tie_output": False, "output_bias": True}, {"gated": True, "norm": "rms", "kv_heads": 1},
], ids=str)  # fmt: skip
def test_a_model_comes_back_with_its_numbers(tmp_path: Path, changed: dict[str, Any]) -> None:
    torch.manual_seed(0)
    model = build(SMALL.changed(**changed), SIZES, "translate").eval()
    about = {"source": "en", "target": "de", "scores": {"bleu": 31.5}, "seed": 3}
    model.save(tmp_path / "m", about=about)
    back = load_folder(tmp_path / "m")
    source, target, lengths = torch.randint(4, 11, (2, 5)), torch.randint(4, 11, (2, 4)), torch.tensor([5, 3])
    assert torch.equal(back.model(source, target, lengths), model(source, target, lengths))
    assert (back.task, back.about, back.model.settings) == ("translate", about, model.settings)
    assert not back.model.training


def test_a_tied_table_is_one_again_after_loading(folder: Path) -> None:
    model = load_folder(folder).model
    assert model.output.vectors is model.words.vectors is model.encoder.input.vectors


def test_a_folder_holds_tokenizers_one_file_where_both_sides_have_one(tmp_path: Path) -> None:
    model, one, two = build(SMALL, SIZES, "translate"), words(TEXTS), words(["un chat", "le chien"])
    save_folder(tmp_path / "joint", model, task="translate", tokenizers={"source": one, "target": one})
    save_folder(tmp_path / "apart", model, task="translate", tokenizers={"source": one, "target": two})
    assert {each.name for each in (tmp_path / "joint").iterdir()} == {
        "README.md", "model.json", "tokenizer.json", "weights.safetensors",
    }  # fmt: skip
    assert load_folder(tmp_path / "joint").tokenizers == {"source": one, "target": one}
    assert load_folder(tmp_path / "apart").tokenizers == {"source": one, "target": two}


def test_names_of_tags_come_back(tmp_path: Path) -> None:
    model = build(SMALL, Sizes(source=11, tags=3), "tag")
    model.save(tmp_path, names=("NOUN", "VERB", "DET"))
    assert load_folder(tmp_path).names == ("NOUN", "VERB", "DET")


def test_the_card_says_what_it_is_trained_on_what_and_how_good(tmp_path: Path) -> None:
    model = build(SMALL, SIZES, "translate")
    about = {
        "name": "Small talk", "source": "en", "target": "de", "trained_on": {"multi30k": {"pairs": 29000}},
        "licence": "CC BY 4.0", "scores": {"test": {"bleu": 31.25}}, "seed": 7,
    }  # fmt: skip
    model.save(tmp_path / "m", about=about)
    card = (tmp_path / "m" / "README.md").read_text()
    count = sum(each.numel() for each in model.parameters())
    for said in (
        "# Small talk", "(en → de)", f"{count:,} parameters", "## Trained on", "- multi30k:\n  - pairs: 29000",
        "Licence: CC BY 4.0.", "## How good it is", "  - bleu: 31.25", 'regard.load("m")', "- seed: 7",
    ):  # fmt: skip
        assert said in card


def test_the_card_of_a_model_of_several_languages_says_into_which_it_may_be_asked(tmp_path: Path) -> None:
    tokenizer = Tokenizer.train(["one two", "uno dos"], TokenizerSettings(vocabulary=300), languages=("es", "de"))
    sizes = Sizes(source=tokenizer.vocabulary, target=tokenizer.vocabulary)
    sides = {"source": tokenizer, "target": tokenizer}
    save_folder(tmp_path / "m", build(SMALL, sizes, "translate"), task="translate", tokenizers=sides)
    card = (tmp_path / "m" / "README.md").read_text()
    assert 'model.translate(["…"], to="es")  # or de' in card


def test_nothing_in_a_folder_executes(folder: Path) -> None:
    assert {each.suffix for each in folder.iterdir()} == {".json", ".safetensors", ".md"}
    assert (folder / "weights.safetensors").read_bytes()[8:9] == b"{"


def changed_json(folder: Path, **values: Any) -> None:
    path = folder / "model.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


def changed_network(folder: Path, **values: Any) -> None:
    changed_json(folder, network={**json.loads((folder / "model.json").read_text())["network"], **values})


def nested(folder: Path, times: int) -> None:
    path = folder / "model.json"
    path.write_text(path.read_text().replace('"about": {', f'"about": {{"x": {"[" * times}{"]" * times},', 1))


def instead(path: Path) -> None:
    path.unlink()
    path.mkdir()


def changed_weights(folder: Path, change: Any) -> None:
    path = folder / "weights.safetensors"
    held = load_file(path)
    change(held)
    save_file(held, path)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-20])


WRONG: dict[str, tuple[Any, str]] = {
    "newer": (
        lambda folder: changed_json(folder, format_version=2),
        r"model\.json: written in format 2 \(by regard .*\); this regard, .*, reads up to 1: install a newer one",
    ),
    "another format": (lambda folder: changed_json(folder, format="x"), "not a model of regard; expected format"),
    "no model": (lambda folder: (folder / "model.json").unlink(), r"no model is here: model\.json is missing"),
    "model.json cut": (lambda folder: cut(folder / "model.json"), r"model\.json: cut off or damaged: "),
    "no weights": (lambda folder: (folder / "weights.safetensors").unlink(), "no such file, and without its weights"),
    "weights cut": (
        lambda folder: cut(folder / "weights.safetensors"), "cut off or damaged, it is no whole safetensors file",
    ),
    "empty weights": (
        lambda folder: (folder / "weights.safetensors").write_bytes(b""), "cut off or damaged, it is no whole",
    ),
    "a missing part": (lambda folder: changed_json(folder, tokenizers={"source": "tokenizer.json"}),
        r"tokenizer\.json: missing, and model\.json beside it names it"),
    "a file elsewhere": (lambda folder: changed_json(folder, tokenizers={"source": "../x.json"}),
        "tokenizers: expected names of files in the folder; got '../x.json'"),
    "another network": (
        lambda folder: changed_json(folder, task="reconstruct"), r"belongs to another model than model\.json beside it",
    ),
    "a setting": (
        lambda folder: changed_json(folder, network={"kind": "transformer", "widht": 3}), r"network.*widht.*width",
    ),
    "a kind": (lambda folder: changed_json(folder, network={"kind": "transfomer"}), "did you mean 'transformer'"),
    "a task": (lambda folder: changed_json(folder, task="translat"), "unknown task 'translat'; did you mean"),
    "a size": (lambda folder: changed_json(folder, sizes={"source": 11}), "sizes.target: missing"),
    "version 0": (
        lambda folder: changed_json(folder, format_version=0), "format_version: expected .* from 1 to 1; got 0",
    ),
    "version true": (lambda folder: changed_json(folder, format_version=True), "format_version: .*; got true"),
    "no version": (lambda folder: changed_json(folder, format_version=None), "format_version: .*; got null"),
    "a network that is a list": (
        lambda folder: changed_json(folder, network=[1, 2]), r"network: expected a mapping .*; got \[1, 2\]",
    ),
    "a kind that is a list": (lambda folder: changed_json(folder, network={"kind": ["a"]}), "unknown kind of network"),
    "a task that is a number": (lambda folder: changed_json(folder, task=3), "task: expected the name of a .*; got 3"),
    "sizes that are text": (lambda folder: changed_json(folder, sizes="11"), 'sizes: expected a mapping .*; got "11"'),
    "tokenizers that are a list": (
        lambda folder: changed_json(folder, tokenizers=["tokenizer.json"]), "tokenizers: expected a mapping of source",
    ),
    "tokenizers that are numbers": (
        lambda folder: changed_json(folder, tokenizers={"source": 5}), r"tokenizers\.source: .* name of a file; got 5",
    ),
    "names that are a number": (lambda folder: changed_json(folder, names=5), "names: expected a list of names; got 5"),
    "a name that is a number": (lambda folder: changed_json(folder, names=["A", 7]), "names: .* labels; got 7"),
    "an about that is a list": (lambda folder: changed_json(folder, about=[]), r"about: expected a mapping; got \[\]"),
    "nesting": (lambda folder: nested(folder, 100_000), "damaged: nested too deeply"),
    "some nesting": (lambda folder: nested(folder, 300), "damaged: nested too deeply"),
    "a width beyond bounds": (
        lambda folder: changed_network(folder, width=2**40), r"a network of these settings cannot be built",
    ),
    "a width beyond the memory": (
        lambda folder: changed_network(folder, width=2**24), r"tensor .* has the shape .*; the network .* needs",
    ),
    "weights that are a folder": (
        lambda folder: instead(folder / "weights.safetensors"), r"weights\.safetensors: cannot be read: is a folder",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_with_a_folder_is_one_sentence(folder: Path, name: str) -> None:
    spoil, said = WRONG[name]
    spoil(folder)
    with pytest.raises(Misuse, match=said) as caught:
        load_folder(folder)
    assert "\n" not in str(caught.value)


def test_tensors_that_do_not_fit_are_named(folder: Path) -> None:
    name = "encoder.input.vectors.weight"
    changed_weights(folder, lambda held: held.update({name: torch.ones(2, 8)}))
    with pytest.raises(Misuse, match=rf"tensor {name} has the shape \[2, 8\]; .* needs \[11, 8\]"):
        load_folder(folder)
    changed_weights(folder, lambda held: held.pop(name))
    with pytest.raises(Misuse, match=rf"tensor {name} is missing, which the network of model.json has"):
        load_folder(folder)
    changed_weights(folder, lambda held: held.update({name: torch.ones(11, 8), "more": torch.ones(1)}))
    with pytest.raises(Misuse, match="tensor more is not a part of the network"):
        load_folder(folder)


def test_a_folder_that_is_not_there_is_told() -> None:
    with pytest.raises(Misuse, match="nowhere: no such folder"):
        load_folder("nowhere")


def test_a_save_that_fails_leaves_the_model_that_stood_there(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = {each.name: each.read_bytes() for each in folder.iterdir()}
    model = build(SMALL, SIZES, "translate")

    def full(*given: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("regard.support.atomic.os.fsync", full)
    with pytest.raises(OSError, match="No space left"):
        model.save(folder)
    assert {each.name: each.read_bytes() for each in folder.iterdir()} == before
