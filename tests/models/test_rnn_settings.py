"""Settings of inputs and of recurrent networks: what cannot be is told before anything is built."""

import subprocess
import sys
from typing import Any

import pytest

from regard.models.input_settings import ImageSettings, WordSettings
from regard.models.rnn_settings import AttentionSettings, RecurrentSettings
from regard.support.errors import Misuse


def test_an_input_is_of_words_unless_it_says_otherwise() -> None:
    assert RecurrentSettings(input={"width": 100}).input == WordSettings(width=100)  # type: ignore[arg-type]
    image = RecurrentSettings(input={"kind": "image", "width": 32})  # type: ignore[arg-type]
    assert image.input == ImageSettings(width=32)


def test_a_score_has_its_papers_default() -> None:
    assert [AttentionSettings(kind=kind).scored for kind in ("bahdanau", "luong")] == ["additive", "general"]


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"input": {"kind": "imag"}}, r"input: unknown kind 'imag'; did you mean 'image'"),
        ({"attention": {"scor": "dot"}}, r"attention.scor: unknown key 'scor'; did you mean 'score'"),
        ({"attention": {"input_feeding": True}}, r"input_feeding: is Luong's"),
        ({"attention": {"kind": "luong", "score": "dot", "coverage": True}}, r"coverage: only the score additive"),
        ({"attention": {"kind": "luong", "depth": 2}}, r"depth: only the score additive has hidden layers; got gen"),
        ({"attention": {"hard": "gumbel", "normalise": "relu"}}, r"hard attention draws from a softmax; got relu"),
        ({"attention": {"normalise": "sample"}}, r"attention.normalise: sample .* learn nothing.*hard: reinforce"),
        ({"attention": {"hard": "reinforce", "dropout": 0.1}}, r"dropout: would fall on a choice"),
        ({"attention": {"kind": "luong", "score": "dot"}}, r"dot needs a memory as wide .* got 512 and 256 .*general"),
        ({"encoder_layers": 0, "attention": {"score": "dot"}, "input": {"width": 9}}, r"got 9 and 256"),
        ({"bridge": "copy"}, r"bridge: encoder and decoder have different shapes"),
        ({"reversed": True}, r"reversed: a bidirectional encoder reads backwards already"),
        ({"share_embeddings": True, "embedding": 64}, r"share_embeddings: .* vectors of one width"),
        ({"share_embeddings": True, "input": {"freeze": True}}, r"share_embeddings: .* frozen \(input\.freeze\)"),
        ({"one_hot_target": True, "tie_output": True}, r"one_hot_target: there are no embeddings"),
        ({"tie_output": True, "readout": 5}, r"readout: a tied output needs the width of the embeddings, 256"),
        ({"input": {"embedding": "one_hot", "freeze": True}}, r"one_hot has no vectors to begin with or to freeze"),
        ({"input": {"kind": "image", "patch": [0, 3]}}, r"patch: expected a height and a width of 1 or more"),
    ],
)
def test_what_cannot_be_is_refused_with_the_way_out(values: dict[str, Any], said: str) -> None:
    with pytest.raises(Misuse, match=said):
        RecurrentSettings(**values)


def test_settings_are_read_without_torch() -> None:
    code = "import sys, regard.models.rnn_settings; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_settings_come_back_from_json() -> None:
    settings = RecurrentSettings(attention=AttentionSettings(kind="luong"), input=ImageSettings())
    assert RecurrentSettings.model_validate_json(settings.model_dump_json()) == settings
