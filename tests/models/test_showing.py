"""A network as a table: parameters are those there are, multiply-adds those that the formulas say."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from regard.cli import main
from regard.models.build import build
from regard.models.rnn_settings import RecurrentSettings
from regard.models.showing import Part, in_bytes, shown, table
from regard.models.sizes import Sizes
from regard.models.transformer_settings import TransformerSettings
from tests.models.kinds import LABELLERS, SEQUENCES, TAGGERS

EVERY = SEQUENCES | TAGGERS | LABELLERS
PLACES = 7


def by_name(settings: Any, task: str = "translate") -> dict[str, Part]:
    model = build(settings, Sizes(source=30, target=40, tags=5), task)
    return {each.name: each for each in shown(model, PLACES).parts}


@pytest.mark.parametrize("name", EVERY)
def test_the_parts_are_the_whole(name: str) -> None:
    model = EVERY[name].model()
    found = shown(model, PLACES)
    assert found.parameters == sum(each.numel() for each in model.parameters())
    assert found.memory == 4 * found.parameters
    total = found.encoding + (found.decoding or 0)
    assert sum(each.multiply_adds for each in found.parts) == pytest.approx(total)
    assert (found.decoding is None) == (name not in SEQUENCES)
    assert not model.training


def test_a_transformer_multiplies_as_the_paper_says() -> None:
    d, f, h, layers = 16, 24, 4, 2
    settings = TransformerSettings(width=d, heads=h, feed_forward=f, encoder_layers=layers, decoder_layers=layers,
                                   share_embeddings=False)  # fmt: skip
    parts = by_name(settings)
    # Each token is projected four times; its query meets all keys, and their values are mixed.
    assert parts["encoder.stack.layers.0-1.attention"].multiply_adds == layers * (4 * d * d + 2 * PLACES * d)
    assert parts["encoder.stack.layers.0-1.feed_forward"].multiply_adds == layers * 2 * d * f
    # A decoder's step sees what was said before: (1 + 2 + … + n) / n keys in the mean.
    seen = (PLACES + 1) / 2
    assert parts["decoder.layers.0-1.attention"].multiply_adds == layers * (4 * d * d + 2 * seen * d)
    assert parts["decoder.layers.0-1.cross"].multiply_adds == layers * (4 * d * d + 2 * PLACES * d)
    assert parts["output"].multiply_adds == 40 * d
    assert (parts["output"].shapes, parts["output"].parameters) == ("shared", 0)
    assert parts["words.vectors"].shapes == "[40, 16]"
    assert parts["encoder.stack.layers.0-1.attention"].shapes == "4 × [16, 16], 4 × [16]"
    assert parts["encoder.stack.layers.0-1.attention"].parameters == layers * 4 * (16 * 16 + 16)


def test_a_recurrent_decoder_multiplies_as_its_formulas_say() -> None:
    d, e, memory = 6, 5, 12
    parts = by_name(RecurrentSettings(width=d, embedding=e, cell="gru"))
    assert parts["cells"].multiply_adds == 3 * d * (e + memory + d)
    # W s and U h_j (once a place), then for each place v · tanh(…) and a share of the context.
    assert parts["attention"].multiply_adds == d * d + memory * d + PLACES * (d + memory)
    assert parts["readout"].multiply_adds == (d + memory + e) * e
    assert parts["output"].multiply_adds == e * 40


def test_the_table_stands_in_columns() -> None:
    lines = table(shown(SEQUENCES["bahdanau"].model(), PLACES)).splitlines()
    ends = [len(line) for line in lines[: lines.index("")]]
    assert len(set(ends)) == 1
    assert lines[0].split() == ["part", "kind", "shapes", "parameters", "memory", "multiply-adds", "a", "token"]
    assert lines[-1].endswith("for each token of the target.")
    assert [in_bytes(each) for each in (12, 3400, 5_600_000, 7_890_000_000)] == ["12 B", "3.4 kB", "5.6 MB", "7.9 GB"]


def test_the_command_prints_a_model_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    torch.manual_seed(0)
    model = build(RecurrentSettings(width=6, embedding=5), Sizes(source=30, target=40), "translate")
    model.save(tmp_path / "m")
    with pytest.raises(SystemExit) as left:
        main(["show", str(tmp_path / "m")])
    printed = capsys.readouterr().out
    assert left.value.code in (0, None)
    assert printed.startswith(f"{tmp_path / 'm'}: translate, a network of the kind recurrent\n\npart ")
    with pytest.raises(SystemExit):
        main(["show", str(tmp_path / "m"), "--json", "--places", "5"])
    told = json.loads(capsys.readouterr().out)
    assert (told["task"], told["kind"], told["source"]) == ("translate", "recurrent", "5 places")
    assert told["parameters"] == sum(each.numel() for each in model.parameters())


def test_the_command_says_in_a_line_where_there_is_no_model(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["show", "nowhere"])
    assert left.value.code == 2
    assert capsys.readouterr().err == "regard: nowhere: no such folder\n"
