"""What every model keeps: stepping is all at once, padding and neighbours change nothing, runs are counted."""

import re
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from regard.decoding.searching import search
from regard.decoding.settings import SearchSettings
from regard.models.contract import SequenceModel
from regard.models.outputs import EncoderLabeller, EncoderTagger
from regard.models.transformer_settings import TransformerSettings
from tests.models.kinds import (
    LABELLERS,
    LANGUAGE,
    LENGTHS,
    LOOKING,
    PLACES,
    SEQUENCES,
    TAGGERS,
    WORDS,
    Kind,
    stepped,
    target,
)

every_sequence = pytest.mark.parametrize("name", SEQUENCES)


def close(one: Tensor, other: Tensor) -> None:
    """To 1e-5, and where numbers are large (nothing norms them) to a millionth of the largest."""
    torch.testing.assert_close(one, other, atol=1e-5 + 1e-6 * float(other.detach().abs().max()), rtol=0)


@every_sequence
@torch.inference_mode()
def test_stepping_is_all_at_once(name: str) -> None:
    kind = SEQUENCES[name]
    model, source, fed = kind.model(), kind.source(), target()
    close(stepped(model, source, fed, kind.lengths)[0], model(source, fed, kind.lengths))
    close(stepped(model, source, fed, None)[0], model(source, fed))


@every_sequence
@torch.inference_mode()
def test_padding_and_neighbours_change_nothing(name: str) -> None:
    kind = SEQUENCES[name]
    model, source, fed = kind.model(), kind.source(), target()
    together = model(source, fed, kind.lengths)
    close(model(kind.spoilt(source), fed, kind.lengths), together)
    for row in range(3):
        close(model(kind.cut(source, row), fed[row : row + 1])[0], together[row])


@every_sequence
def test_a_sentence_without_words_disturbs_nobody(name: str) -> None:
    """As rows that only fill a batch up are: numbers and gradients stay finite, and the others what they are."""
    kind = SEQUENCES[name]
    model, source, fed = kind.model(), kind.source(), target()
    lengths = kind.lengths * torch.tensor([1, 0, 1])
    logits = model(source, fed, lengths)
    close(logits[[0, 2]], model(source, fed, kind.lengths)[[0, 2]])
    assert logits.isfinite().all()
    logits.square().mean().backward()
    assert all(each.grad is None or each.grad.isfinite().all() for each in model.parameters())


@every_sequence
@torch.inference_mode()
def test_no_step_knows_the_words_after_it(name: str) -> None:
    kind = SEQUENCES[name]
    model, source, fed = kind.model(), kind.source(), target()
    other = torch.cat([fed[:, :3], target(seed=9)[:, 3:]], 1)
    close(model(source, other, kind.lengths)[:, :3], model(source, fed, kind.lengths)[:, :3])


@every_sequence
@torch.inference_mode()
def test_rows_of_a_beam_share_the_memory_and_follow_select(name: str) -> None:
    """Rows 2b and 2b + 1 belong to sentence b; each has a history of its own, which select carries along."""
    kind = SEQUENCES[name]
    model, source = kind.model(), kind.source()
    one, other = target(seed=3), target(seed=4)
    memory = model.encode(source, kind.lengths)
    state = model.start(memory)
    _, state, _ = model.step(one[:, 0], state, memory)
    state = state.select(torch.tensor([0, 0, 1, 1, 2, 2]))
    both = torch.stack([one, other], 1).flatten(0, 1)
    for place in (1, 2):
        logits, state, _ = model.step(both[:, place], state, memory)
    swapped = state.select(torch.tensor([1, 0, 3, 2, 5, 4]))
    logits, _, _ = model.step(both[:, 3].view(3, 2).flip(1).flatten(), swapped, memory)
    expected = [model(source, each, kind.lengths)[:, 3] for each in (other, one)]
    close(logits, torch.stack(expected, 1).flatten(0, 1))


@every_sequence
@torch.inference_mode()
def test_a_memory_without_the_sentences_that_are_finished_goes_on_as_before(name: str) -> None:
    kind = SEQUENCES[name]
    model, source, fed = kind.model(), kind.source(), target()
    memory = model.encode(source, kind.lengths)
    _, state, _ = model.step(fed[:, 0], model.start(memory), memory)
    left = torch.tensor([2, 0])
    logits, _, _ = model.step(fed[left, 1], state.select(left), memory.select(left))
    close(logits, model(source, fed, kind.lengths)[left, 1])


@every_sequence
@torch.inference_mode()
def test_some_columns_are_those_of_all(name: str) -> None:
    kind = SEQUENCES[name]
    model, fed = kind.model(), target()
    memory = model.encode(kind.source(), kind.lengths)
    columns = torch.tensor([7, 2, 10])
    some = model.step(fed[:, 0], model.start(memory), memory, columns=columns).logits
    close(some, model.step(fed[:, 0], model.start(memory), memory).logits[:, columns])


@pytest.mark.parametrize("name", LOOKING)
@torch.inference_mode()
def test_weights_lie_on_real_places_and_asking_for_them_changes_nothing(name: str) -> None:
    kind = LOOKING[name]
    model, source, fed = kind.model(), kind.source(), target()
    logits, weights = stepped(model, source, fed, kind.lengths)
    assert all(each is not None for each in weights)
    seen = torch.stack([each for each in weights if each is not None], 1)  # [B, T, L, H, S]
    memory = model.encode(source, kind.lengths)
    assert memory.lengths is not None
    real = torch.arange(seen.shape[-1]) < memory.lengths.view(3, 1, 1, 1, 1)
    assert not seen.masked_fill(real, 0).any()
    if "relu" not in name and "local" not in name:
        close(seen.sum(-1), torch.ones_like(seen.sum(-1)))
    close(logits, model(source, fed, kind.lengths))


@pytest.mark.parametrize("name", LANGUAGE)
@torch.inference_mode()
def test_a_language_model_reads_no_source(name: str) -> None:
    model, fed = LANGUAGE[name].model(), target()
    close(model(fed, fed), model(torch.zeros(3, 1, dtype=torch.long), fed))


class Counted:
    """How often a part of a model ran, told by a hook."""

    def __init__(self, part: nn.Module) -> None:
        self.runs = 0
        part.register_forward_hook(self._count)

    def _count(self, *given: Any) -> None:
        self.runs += 1


@pytest.mark.parametrize("name", ["transformer", "bahdanau", "luong, no feeding", "plain, lstm, reversed"])
def test_a_sentence_is_trained_on_in_one_run_and_decoded_in_one_more_than_its_words(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind = SEQUENCES[name]
    model = kind.model().train()
    whole, steps, words = Counted(model), [], 4
    logits = Counted(model.output)
    own = model.step
    monkeypatch.setattr(model, "step", lambda *given, **named: steps.append(1) or own(*given, **named))
    model(kind.source()[:1], target(words + 1)[:1])
    assert (whole.runs, logits.runs, len(steps)) == (1, 1, 0)
    model.eval()
    ends_after(model, words)
    found = search(model, kind.source()[:1], settings=SearchSettings(beam=1))[0][0]
    assert len(found.tokens) == words
    assert len(steps) == words + 1


def ends_after(model: SequenceModel, words: int) -> None:
    """Make a model say so many words and then that the sentence is over."""
    output, said = model.output.forward, []

    def told(h: Tensor, columns: Tensor | None = None) -> Tensor:
        logits = output(h, columns)
        said.append(1)
        likely = torch.full_like(logits, -1e4)
        likely[..., model.end_token if len(said) > words else 4 + len(said)] = 0.0
        return likely

    model.output.forward = told  # type: ignore[method-assign]


@pytest.mark.parametrize("name", TAGGERS)
@torch.inference_mode()
def test_taggers_read_through_padding_and_beside_neighbours(name: str) -> None:
    kind = TAGGERS[name]
    model, source = kind.model(), kind.source()
    assert isinstance(model, EncoderTagger)
    together = model.predict(model.encode(source, kind.lengths))
    assert together.shape == (3, 6, 5)
    others = model.predict(model.encode(kind.spoilt(source), kind.lengths))
    for row, length in enumerate(LENGTHS.tolist()):
        alone = model.predict(model.encode(kind.cut(source, row)))
        close(together[row, :length], alone[0])
        close(others[row, :length], alone[0])


@pytest.mark.parametrize("name", LABELLERS)
@torch.inference_mode()
def test_labellers_read_through_padding_and_beside_neighbours(name: str) -> None:
    kind = LABELLERS[name]
    model, source = kind.model(), kind.source()
    assert isinstance(model, EncoderLabeller)
    together = model.predict(model.encode(source, kind.lengths))
    assert together.shape == (3, 4)
    close(model.predict(model.encode(kind.spoilt(source), kind.lengths)), together)
    for row in range(3):
        close(model.predict(model.encode(kind.cut(source, row)))[0], together[row])


READERS = {name: kind for name, kind in (SEQUENCES | TAGGERS | LABELLERS).items() if kind.task != "language_model"}


def answered(name: str, source: Tensor, lengths: Tensor | None, fed: Tensor) -> Tensor:
    model: Any = READERS[name].model()
    with torch.no_grad():
        said: Tensor = (
            model(source, fed, lengths) if name in SEQUENCES else model.predict(model.encode(source, lengths))
        )
    return said


@pytest.mark.parametrize("name", READERS)
def test_lengths_that_no_source_has_are_refused(name: str) -> None:
    kind = READERS[name]
    for spoilt in (2, -9):
        lengths = kind.lengths + torch.tensor([spoilt, 0, 0]) * (4 if kind.sizes.image is not None else 1)
        with pytest.raises(ValueError, match=r"lengths: expected 0 to \d+, the places of the source; got \["):
            answered(name, kind.source(), lengths, target())


@pytest.mark.parametrize("name", READERS)
def test_a_source_of_no_places_is_refused_or_answered(name: str) -> None:
    source = READERS[name].source()
    source = source[..., :0] if source.ndim == 4 else source[:, :0]
    try:
        assert answered(name, source, None, target()).isfinite().all()
    except ValueError as error:
        assert re.match(r"source: expected a (place|column) or more; got \[3, ", str(error))  # noqa: PT017
    else:
        assert isinstance(READERS[name].network, TransformerSettings)


@pytest.mark.parametrize("name", READERS)
def test_a_batch_of_no_sentences_is_refused_or_answered(name: str) -> None:
    source, lengths = READERS[name].source()[:0], READERS[name].lengths[:0]
    try:
        assert len(answered(name, source, lengths, target()[:0])) == 0
    except ValueError as error:
        assert str(error).startswith("source: expected a sentence or more in a batch; got [0, ")  # noqa: PT017


@pytest.mark.parametrize("name", READERS)
def test_what_stands_in_the_padding_reaches_no_gradient(name: str) -> None:
    kind = READERS[name]
    model = kind.model()
    own, other = (gradients_of(kind, model, source) for source in (kind.source(), kind.spoilt(kind.source())))
    for mine, theirs in zip(own, other, strict=True):
        torch.testing.assert_close(theirs, mine, atol=1e-6, rtol=1e-5)


def gradients_of(kind: Kind, model: Any, source: Tensor) -> list[Tensor]:
    """Of all that a model says where it speaks of a word; 0 where nothing depends on a parameter."""
    if isinstance(model, SequenceModel):
        said = model(source, target(), kind.lengths)
    else:
        said = model.predict(model.encode(source, kind.lengths))
        if isinstance(model, EncoderTagger):
            said = said[torch.arange(PLACES) < LENGTHS.unsqueeze(1)]
    grads = torch.autograd.grad(said.square().mean(), list(model.parameters()), allow_unused=True)
    return [torch.zeros(()) if each is None else each for each in grads]


@pytest.mark.parametrize("name", SEQUENCES | TAGGERS | LABELLERS)
def test_every_part_of_a_model_learns(name: str) -> None:
    """Each parameter has a gradient in training, and none that is not finite."""
    kind: Kind = (SEQUENCES | TAGGERS | LABELLERS)[name]
    model, source = kind.model().train(), kind.source()
    if isinstance(model, SequenceModel):
        taught = model.teach(source, target(), kind.lengths)
        loss = nn.functional.cross_entropy(taught.logits.flatten(0, 1), torch.randint(0, WORDS, (15,)))
        if taught.choices is not None:
            assert taught.choices.log_prob.shape == (3, 5)
            loss = loss + sum(each.sum() for each in taught.choices)
    else:
        logits = model.predict(model.encode(source, kind.lengths))
        loss = nn.functional.cross_entropy(logits.flatten(0, -2), torch.randint(0, 4, (logits[..., 0].numel(),)))
    loss.backward()
    without = [one for one, each in model.named_parameters() if each.grad is None or not each.grad.any()]
    assert without == []
    assert all(each.grad is None or each.grad.isfinite().all() for each in model.parameters())
