"""Each kind of network learns to copy, to reverse and to sort, decoded word by word from what it was trained on.

Sequences are drawn at random, so those it is asked were not learned by heart: there are 8^5 of the longest.
"""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from regard.decoding.searching import search
from regard.decoding.settings import SearchSettings
from regard.models.baseline_settings import FixedSettings
from regard.models.build import build
from regard.models.contract import Choices, SequenceModel
from regard.models.input_settings import WordSettings
from regard.models.rnn_settings import AttentionSettings, RecurrentEncoderSettings, RecurrentSettings
from regard.models.sizes import Sizes
from regard.models.transformer_settings import TransformerSettings
from regard.text.specials import END, START

WORDS = 8
TASKS: dict[str, Callable[[Tensor], Tensor]] = {
    "copy": lambda x: x, "reverse": lambda x: x.flip(1), "sort": lambda x: x.sort(1).values,
}  # fmt: skip


def recurrent(**changed: Any) -> RecurrentSettings:
    small = {"cell": "gru", "width": 32, "embedding": 32, "input": WordSettings(width=32), "dropout": 0.0}
    return RecurrentSettings(**small | changed)  # type: ignore[arg-type]


KINDS = {
    "bahdanau": recurrent(),
    "luong": recurrent(attention=AttentionSettings(kind="luong")),
    "luong, no feeding": recurrent(attention=AttentionSettings(kind="luong", input_feeding=False)),
    "transformer": TransformerSettings(
        width=32, heads=4, feed_forward=64, encoder_layers=1, decoder_layers=1, positions="learned", longest=8,
        dropout=0.0,
    ),
    "location": recurrent(attention=AttentionSettings(kind="luong", score="location", places=8)),
    "local-m": recurrent(attention=AttentionSettings(reach="local_m", window=2)),
    "local-p": recurrent(attention=AttentionSettings(reach="local_p", window=1)),
    "coverage": recurrent(attention=AttentionSettings(coverage=True)),
    "hard, straight through": recurrent(attention=AttentionSettings(hard="straight_through")),
    "hard, gumbel": recurrent(attention=AttentionSettings(hard="gumbel")),
    "hard, reinforce": recurrent(attention=AttentionSettings(hard="reinforce")),
}  # fmt: skip
LUONG_HARD = {
    each: recurrent(attention=AttentionSettings(kind="luong", hard=each))
    for each in ("straight_through", "gumbel", "reinforce")
}
BLIND = {
    "plain": recurrent(attention=None),
    "fixed": FixedSettings(
        encoder=RecurrentEncoderSettings(cell="gru", width=32, input=WordSettings(width=32)),
        source_places=4, target_places=5, dropout=0.0,
    ),
}  # fmt: skip


def drawn(task: str, rows: int, length: int) -> tuple[Tensor, Tensor]:
    """Sequences and what is to be said to them, its end counted."""
    source = torch.randint(4, 4 + WORDS, (rows, length))
    return source, torch.cat([TASKS[task](source), torch.full((rows, 1), END)], 1)


def learn(settings: Any, task: str, shortest: int, longest: int) -> SequenceModel:
    """Train until a batch of the longest is all but right, for 1500 steps at most."""
    torch.manual_seed(1)
    model = build(settings, Sizes(source=4 + WORDS, target=4 + WORDS), "translate")
    assert isinstance(model, SequenceModel)
    optimizer = torch.optim.Adam(model.parameters(), 5e-3)
    for step in range(1500):
        source, wanted = drawn(task, 64, shortest + step % (longest - shortest + 1))
        taught = model.teach(source, torch.cat([torch.full((64, 1), START), wanted[:, :-1]], 1))
        said = -cross_entropy(taught.logits.flatten(0, 1), wanted.flatten(), reduction="none").view_as(wanted)
        loss = -said.mean() + (0.0 if taught.choices is None else reinforced(taught.choices, said.detach()))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        good = float((taught.logits.argmax(-1) == wanted).float().mean())
        if step % 25 == 24 and good > 0.99 and right(model, task, longest) > 0.998:
            break
    return model.eval()


def reinforced(choices: Choices, reward: Tensor) -> Tensor:
    """REINFORCE: the reward of looking at a place is the log-probability of the right word there."""
    better = reward - choices.baseline
    return better.square().mean() - (better.detach() * choices.log_prob).mean() - 0.01 * choices.entropy.mean()


def right(model: SequenceModel, task: str, length: int) -> float:
    """The share of words of decoded sequences that are right where they stand."""
    model.eval()
    source, wanted = drawn(task, 200, length)
    found = search(model, source, settings=SearchSettings(beam=1))
    said = [[*each[0].tokens, END, *[0] * length][: length + 1] for each in found]
    model.train()
    return float((torch.tensor(said) == wanted).float().mean())


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("name", KINDS)
def test_attention_learns_to_copy_reverse_and_sort(name: str, task: str) -> None:
    assert right(learn(KINDS[name], task, 3, 5), task, 5) >= 0.99


@pytest.mark.parametrize("name", LUONG_HARD)
def test_hard_attention_that_the_state_after_asks_learns_as_well(name: str) -> None:
    assert right(learn(LUONG_HARD[name], "reverse", 3, 5), "reverse", 5) >= 0.99


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("name", BLIND)
def test_what_has_no_attention_learns_it_at_length_4(name: str, task: str) -> None:
    assert right(learn(BLIND[name], task, 4, 4), task, 4) >= 0.99
