"""Training on from a model folder, with its tokens or with more."""

from pathlib import Path
from typing import Any

import pytest
import torch

from regard.models.folder import load_folder
from regard.support.errors import Misuse
from regard.training.running import train
from tests.training.conftest import config, said, sentences

NEW = ["pear", "apple", "plum"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that was trained, and files to train on from it."""
    made = tmp_path_factory.mktemp("first")
    lines = [f"{each}\t{said(each)}\n" for each in sentences(100)]
    (made / "old.tsv").write_text("".join(lines))
    more = [
        f"{each} {NEW[n % 3]}\t{NEW[n % 3].upper()} {said(each)}\n" for n, each in enumerate(sentences(100, seed=1))
    ]
    (made / "new.tsv").write_text("".join(more))
    train(values(made, made / "old.tsv", made / "model", training={"epochs": 1}), quiet=True)
    return made


def values(made: Path, tsv: Path, output: Path, **changed: Any) -> dict[str, Any]:
    tokenizer = {"kind": "words", "vocabulary": 60, "min_count": 1}
    own = config(made, output, **changed)
    del own["prepared"]
    return own | {
        "data": {"train": str(tsv), "dev_size": 10} | ({} if "init_from" in changed else {"tokenizer": tokenizer})
    }


def on_from(folder: Path, output: Path, **changed: Any) -> dict[str, Any]:
    own = values(folder, folder / "new.tsv", output, init_from=str(folder / "model"), **changed)
    del own["network"]
    return own


def test_training_goes_on_from_the_weights_with_the_same_tokens(folder: Path, tmp_path: Path) -> None:
    still = {"epochs": 1, "optimizer": {"rate": 1e-12}, "averaging": {"name": "none"}}
    train(on_from(folder, tmp_path / "on", training=still), quiet=True)
    before, after = load_folder(folder / "model"), load_folder(tmp_path / "on")
    assert before.tokenizers == after.tokenizers
    for old, new in zip(before.model.parameters(), after.model.parameters(), strict=True):
        torch.testing.assert_close(old, new, atol=1e-6, rtol=0)


def test_a_vocabulary_is_extended_behind_the_tokens_there_are(folder: Path, tmp_path: Path) -> None:
    still = {"epochs": 1, "optimizer": {"rate": 1e-12}, "averaging": {"name": "none"}}
    own = on_from(folder, tmp_path / "on", training=still, extend_vocabulary=True)
    own["data"]["tokenizer"] = {"kind": "words", "vocabulary": 60, "min_count": 1}
    train(own, quiet=True)
    before, after = load_folder(folder / "model"), load_folder(tmp_path / "on")
    old, new = before.tokenizers["source"], after.tokenizers["source"]
    assert new.pieces[: old.vocabulary] == old.pieces
    assert {*NEW} <= {*new.pieces}
    assert not {*NEW} & {*old.pieces}
    tables = [each.model.state_dict()["encoder.input.vectors.weight"] for each in (before, after)]
    assert tables[1].shape[0] == new.vocabulary
    torch.testing.assert_close(tables[1][: old.vocabulary], tables[0], atol=1e-6, rtol=0)
    assert tables[1][old.vocabulary :].std() > 0


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"task": "classify"}, "holds a model for the task translate, not classify"),
        (
            {"network": {"width": 99, "heads": 3}},
            "network: width, encoder_layers, decoder_layers, heads, feed_forward differ from the network of",
        ),
        ({"data": {"tokenizer": {"vocabulary": 500}}}, "data.tokenizer: with init_from the tokenizers are the model's"),
    ],
)
def test_what_cannot_be_trained_on_from_is_told(
    folder: Path, tmp_path: Path, changed: dict[str, Any], told: str
) -> None:
    own = on_from(folder, tmp_path / "on")
    if changed.get("task") == "classify":
        (tmp_path / "l.tsv").write_text("a\tred cat\nb\tblue dog\n" * 5)
        changed = {"task": "classify", "data": {"train": {"labelled": str(tmp_path / "l.tsv")}}}
    elif "data" in changed:
        changed = {"data": own["data"] | changed["data"]}
    with pytest.raises(Misuse, match=told):
        train(own | changed, quiet=True)


def test_a_model_begins_with_the_vectors_of_a_file(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "vectors.txt").write_text("cat 1 2 3 4\ndog -1 0.5 0 2\nunseen 9 9 9 9\n")
    network = {
        "kind": "recurrent",
        "width": 8,
        "input": {"width": 4, "vectors": str(tmp_path / "vectors.txt"), "freeze": True},
    }
    own = values(folder, folder / "old.tsv", tmp_path / "m", training={"epochs": 1}) | {"network": network}
    train(own, quiet=True)
    loaded = load_folder(tmp_path / "m")
    table = loaded.model.state_dict()["encoder.input.vectors.weight"]
    number = loaded.tokenizers["source"].pieces.index("cat")
    assert table[number].tolist() == [1, 2, 3, 4]
    network["input"] |= {"width": 5}  # type: ignore[operator]
    with pytest.raises(Misuse, match=r"network.input.width: the vectors of .* are 4 wide; got 5"):
        train(own | {"output": str(tmp_path / "n")}, quiet=True)
