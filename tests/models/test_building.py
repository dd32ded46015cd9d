"""A configuration becomes a network: which class, with which input, and what cannot be said in one sentence each."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from regard.models.baseline_settings import FixedSettings, WindowSettings
from regard.models.baselines import Fixed, WindowEncoder
from regard.models.build import build
from regard.models.folder import load_folder
from regard.models.images import Grid
from regard.models.inputs import Rows
from regard.models.network_settings import KINDS, network_settings
from regard.models.outputs import EncoderLabeller, EncoderTagger
from regard.models.rnn.decoder import Recurrent
from regard.models.rnn_settings import AttentionSettings, RecurrentEncoderSettings, RecurrentSettings
from regard.models.sizes import Sizes
from regard.models.transformer import Transformer, TransformerEncoder
from regard.models.transformer_settings import TransformerSettings
from regard.models.words import Words
from regard.support.errors import Misuse
from tests.models.kinds import LABELLERS, SEQUENCES, TAGGERS, target

SIZES = Sizes(source=11, target=11, tags=3, labels=2)
TINY = TransformerSettings(width=8, heads=2, feed_forward=8, encoder_layers=1, decoder_layers=1)


@pytest.mark.parametrize(
    ("settings", "task", "expected"),
    [
        (TINY, "translate", Transformer), (TINY, "language_model", Transformer), (TINY, "tag", EncoderTagger),
        (TINY, "classify", EncoderLabeller), (RecurrentSettings(width=4), "translate", Recurrent),
        (RecurrentSettings(width=4), "language_model", Recurrent), (RecurrentSettings(width=4), "tag", EncoderTagger),
        (WindowSettings(width=4), "tag", EncoderTagger), (WindowSettings(width=4), "classify", EncoderLabeller),
        (FixedSettings(), "reconstruct", Fixed),
    ],
)  # fmt: skip
def test_a_task_has_its_class(settings: Any, task: str, expected: type) -> None:
    model = build(settings, SIZES, task)
    assert type(model) is expected
    assert (model.settings, model.sizes, model.task) == (settings, SIZES, task)


def test_parts_follow_the_task() -> None:
    assert build(TINY, SIZES, "language_model").encoder is None
    assert build(RecurrentSettings(width=4), SIZES, "language_model").encoder is None
    assert isinstance(build(TINY, SIZES, "tag").encoder, TransformerEncoder)
    assert isinstance(build(WindowSettings(width=4), SIZES, "tag").encoder, WindowEncoder)


@pytest.mark.parametrize(
    ("sizes", "task", "expected"),
    [(SIZES, "translate", Words), (Sizes(target=11, input_width=3), "translate", Rows),
     (Sizes(target=11, image=(1, 8, 0)), "caption", Grid)],
)  # fmt: skip
@pytest.mark.parametrize("settings", [TINY, RecurrentSettings(width=4), FixedSettings()], ids=lambda each: each.kind)
def test_the_input_is_what_the_data_are_unless_it_was_chosen(
    settings: Any, sizes: Sizes, task: str, expected: type
) -> None:
    assert type(build(settings, sizes, task).encoder.input) is expected


@pytest.mark.parametrize(
    ("settings", "sizes", "task", "said"),
    [
        (TINY, SIZES, "translat", r"unknown task 'translat'; did you mean 'translate'"),
        (TINY.changed(parts="decoder"), SIZES, "tag", r"parts: the task tag needs 'encoder'; got 'decoder'"),
        (TINY, Sizes(source=11), "translate", r"sizes.target: missing, and a sequence out needs it"),
        (TINY, Sizes(source=11, target=12), "translate", r"share_embeddings: .* got 11 and 12 words"),
        (TINY.changed(start=11), SIZES, "translate", r"start: the vocabulary has 11 words; got 11"),
        (RecurrentSettings(share_embeddings=True), Sizes(source=11, target=12), "translate", r"got 11 and 12 words"),
        (RecurrentSettings(input={"embedding": "one_hot"}, share_embeddings=True), SIZES, "translate",  # type: ignore[arg-type]
         r"share_embeddings: the source has no embeddings to share"),
        *(
            (RecurrentSettings(encoder_layers=0, input={"embedding": "one_hot"}, attention={"score": score}), SIZES,  # type: ignore[arg-type]
             "translate", rf"attention.score: {score} needs a memory as wide .* got 11 and 256 .*'general'")
            for score in ("dot", "scaled_dot", "cosine")
        ),
        (WindowSettings(), SIZES, "translate", r"kind: a window gives tags or a label, not what the task translate"),
        (FixedSettings(), SIZES, "tag", r"kind: fixed maps a source to a sequence, not what the task tag needs"),
        (FixedSettings(), SIZES, "language_model", r"kind: fixed maps a source to a sequence"),
    ],
)  # fmt: skip
def test_what_cannot_be_built_is_told(settings: Any, sizes: Sizes, task: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        build(settings, sizes, task)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (TINY.changed(positions="learned", longest=3), r"made for 3 places; got 5 \(a network's setting longest says"),
        (RecurrentSettings(width=4, attention=AttentionSettings(kind="luong", score="location", places=3)),
         r"5 keys, but .* knows 3 places \(a network's setting attention\.places says"),
    ],
)  # fmt: skip
def test_a_source_longer_than_a_network_is_made_for_names_the_setting(settings: Any, said: str) -> None:
    model = build(settings, SIZES, "translate").eval()
    with pytest.raises(ValueError, match=said):
        model(torch.randint(4, 11, (2, 5)), target(3)[:2])


def test_the_network_section_is_told_apart_by_its_kind() -> None:
    assert network_settings({"kind": "window", "window": None}) == WindowSettings(window=None)
    fixed = network_settings({"kind": "fixed", "encoder": {"cell": "gru"}})
    assert fixed == FixedSettings(encoder=RecurrentEncoderSettings(cell="gru"))
    assert network_settings({}) == TransformerSettings()
    with pytest.raises(Misuse, match="network: unknown kind of network 'recurent'; did you mean 'recurrent'"):
        network_settings({"kind": "recurent"})
    assert set(KINDS) == {"transformer", "recurrent", "window", "fixed"}


SAVED = [
    "luong, no feeding", "plain, readout, tied", "fixed", "captions, bahdanau", "characters, bahdanau",
    "language model, lstm", "tagger, window", "labeller, attention",
]  # fmt: skip


@pytest.mark.parametrize("name", SAVED)
@torch.no_grad()
def test_a_model_of_any_kind_comes_back_from_its_folder(tmp_path: Path, name: str) -> None:
    kind = (SEQUENCES | TAGGERS | LABELLERS)[name]
    model, source = kind.model(), kind.source()
    model.save(tmp_path)
    back: Any = load_folder(tmp_path).model
    assert back.settings == model.settings
    if name in SEQUENCES:
        assert torch.equal(back(source, target(), kind.lengths), model(source, target(), kind.lengths))
    else:
        said = [each.predict(each.encode(source, kind.lengths)) for each in (back, model)]
        assert torch.equal(*said)


def test_all_network_settings_are_read_without_torch() -> None:
    code = "import sys, regard.models.network_settings; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
