"""The lecture's baselines: a layer over a window of words, and a matrix from places to places."""

import pytest
import torch

from regard.models.baseline_settings import WindowSettings
from regard.models.baselines import Fixed, WindowEncoder
from regard.models.sizes import Sizes
from regard.tracing import trace
from tests.models.kinds import SEQUENCES, target

SOURCE = torch.tensor([[4, 5, 6, 7, 8]])


def window(**settings: object) -> WindowEncoder:
    torch.manual_seed(0)
    return WindowEncoder(WindowSettings(width=6, **settings), Sizes(source=9)).eval()  # type: ignore[arg-type]


@torch.no_grad()
def test_a_window_is_a_fully_connected_layer_over_a_word_and_its_neighbours() -> None:
    model = window(window=1)
    x = torch.nn.functional.pad(model.input(SOURCE).states[0], (0, 0, 1, 1))
    layer = model.connected.linear
    expected = [torch.tanh(layer(torch.cat([x[at - 1], x[at], x[at + 1]]))) for at in range(1, 6)]
    torch.testing.assert_close(model(SOURCE).states[0], torch.stack(expected))


@pytest.mark.parametrize(
    ("settings", "reach"), [({"window": 0}, 0), ({"window": 2}, 2), ({"window": None, "longest": 5}, 4)]
)
@torch.no_grad()
def test_a_word_is_seen_from_as_far_as_the_window_reaches_and_no_farther(settings: dict[str, int], reach: int) -> None:
    model = window(**settings)
    other = SOURCE.clone()
    other[0, 0] = 3
    changed = (model(SOURCE).states != model(other).states).any(-1)[0]
    assert changed.tolist() == [at <= reach for at in range(5)]


@pytest.mark.parametrize("places", [1, 3, 5])
@torch.no_grad()
def test_a_traced_window_is_the_one_that_runs(places: int) -> None:
    model = window(window=3)
    with trace(model):
        shown = model(SOURCE[:, :places]).states
    torch.testing.assert_close(shown, model(SOURCE[:, :places]).states)


@torch.no_grad()
def test_fixed_places_are_mixed_by_the_matrix_alone_whatever_is_said() -> None:
    model = SEQUENCES["fixed"].model()
    assert isinstance(model, Fixed)
    states = model.encode(SOURCE).states
    expected = model.output(torch.einsum("ts,sd->td", model.W[:4, :5], states[0]))
    torch.testing.assert_close(model(SOURCE, target(4, 1))[0], expected)
    assert torch.equal(model(SOURCE, target(4, 1, seed=8)), model(SOURCE, target(4, 1)))
    step = model.step(torch.tensor([2]), model.start(model.encode(SOURCE)), model.encode(SOURCE), want_weights=True)
    assert torch.equal(step.weights[0, 0, 0], model.W[0, :5])


def test_more_places_than_the_matrix_has_are_refused() -> None:
    model = SEQUENCES["fixed"].model()
    with pytest.raises(ValueError, match=r"source: 10 places, but this model's matrix knows 9 \(source_places\)"):
        model.encode(torch.full((1, 10), 4))
    with pytest.raises(ValueError, match=r"target: 9 places, but this model's matrix knows 8 \(target_places\)"):
        model(SOURCE, torch.full((1, 9), 4))
    assert model.longest == 8
