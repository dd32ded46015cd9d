"""One call for every way to search."""

from collections.abc import Sequence

import torch
from torch import Tensor

from regard.decoding import fixed
from regard.decoding.beam import BeamSearch
from regard.decoding.greedy import OneByOne
from regard.decoding.results import Hypothesis
from regard.decoding.rules import Rules
from regard.decoding.settings import SearchSettings
from regard.models.contract import SequenceModel


@torch.inference_mode()
def search(
    model: SequenceModel,
    source: Tensor,
    lengths: Tensor | None = None,
    settings: SearchSettings | None = None,
    *,
    rules: Rules | None = None,
    want_weights: bool = False,
    numbers: Sequence[int] | None = None,
) -> list[list[Hypothesis]]:
    """For each sentence of the batch its `nbest` results, best first.

    source and lengths as `model.encode` takes them. `numbers` (0, 1, 2, … unless given) name the sentences, so that
    sampling draws the same for a sentence whatever batch it is in. What is found does not depend on the batch:
    neither on its size nor its order nor its padding. The model is asked as it is: call `model.eval()` first.
    """
    settings = SearchSettings() if settings is None else settings
    rules = (Rules() if rules is None else rules).checked(len(source), model.vocabulary, model.end_token)
    if not len(source):
        return []
    numbers = range(len(source)) if numbers is None else numbers
    limits = _limits(model, source, lengths, settings)
    memory = model.encode(source, lengths)
    if source.device.type == "cuda" and fixed.obstacle(settings, rules, want_weights) is None:
        beam = fixed.ready(model, fixed_shape(source, settings, limits), settings)
        if beam is not None:
            return beam.run(memory, limits)
    if settings.sample or settings.beam == 1:
        return OneByOne(model, memory, limits, numbers, settings, rules, want_weights).run()
    return BeamSearch(model, memory, limits, settings, rules, want_weights).run()


def fixed_shape(source: Tensor, settings: SearchSettings, limits: Tensor) -> fixed.Shape:
    """The room that a batch needs."""
    return fixed.Shape.around(len(source), settings.beam, source.shape[1], int(limits.max()))


def _limits(model: SequenceModel, source: Tensor, lengths: Tensor | None, settings: SearchSettings) -> Tensor:
    """[B]: the most tokens of each result, its end counted."""
    places = [source.shape[1]] * len(source) if lengths is None else lengths.tolist()
    limits = torch.tensor([settings.limit(int(length)) for length in places], device=source.device)
    return limits if model.longest is None else limits.clamp(max=model.longest)
