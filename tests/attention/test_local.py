"""Luong's local attention, against its equations written out."""

import pytest
import torch

from regard.attention import attend, local_m, local_p, normalise, weigh
from tests.attention.paths import some


def test_local_m_looks_at_the_places_around_each_step() -> None:
    query, key = some(2, 5, 4), some(2, 7, 4, seed=1)
    mask, normaliser = local_m(1)
    weights = weigh(query, key, mask=mask, normalise=normaliser)
    scores = query @ key.mT / 2
    for step in range(5):
        near = slice(max(step - 1, 0), step + 2)
        torch.testing.assert_close(weights[:, step, near], scores[:, step, near].softmax(-1))
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, 5).double())


def test_local_m_past_the_end_of_the_source_attends_to_nothing() -> None:
    mask, normaliser = local_m(1)
    assert (weigh(some(9, 4), some(3, 4), mask=mask, normalise=normaliser)[4:] == 0).all()


def test_local_p_is_the_softmax_in_its_window_under_a_bell() -> None:
    query, key, centre = some(5, 4), some(9, 4, seed=1), torch.tensor([0.0, 2.5, 4.2, 8.0, 20.0], dtype=torch.float64)
    mask, normaliser = local_p(centre, 2)
    weights = weigh(query, key, mask=mask, normalise=normaliser)
    scores = query @ key.mT / 2
    for step, p in enumerate(centre.tolist()):
        window = [j for j in range(9) if p - 2 <= j <= p + 2]
        expected = torch.zeros(9, dtype=torch.float64)
        if window:
            bell = torch.tensor([2.718281828459045 ** (-((j - p) ** 2) / (2 * 1**2)) for j in window]).double()
            expected[window] = scores[step, window].softmax(-1) * bell
        torch.testing.assert_close(weights[step], expected, atol=1e-7, rtol=1e-6)


def test_the_centre_of_local_p_learns_through_the_bell() -> None:
    centre = torch.tensor([[1.3, 2.4]], dtype=torch.float64, requires_grad=True)
    query, key, value = some(1, 2, 4), some(1, 6, 4, seed=1), some(1, 6, 3, seed=2)

    def local(centre: torch.Tensor, query: torch.Tensor) -> torch.Tensor:
        mask, normaliser = local_p(centre, 2)
        return attend(query, key, value, mask=mask, normalise=normaliser)

    torch.autograd.gradcheck(local, (centre, query))


def test_local_p_goes_with_heads_where_the_centre_has_an_axis_for_them() -> None:
    query, key = some(2, 3, 5, 4), some(2, 3, 7, 4, seed=1)
    centre = some(2, 1, 5, seed=2).abs()
    mask, normaliser = local_p(centre, 2)
    whole = weigh(query, key, mask=mask, normalise=normaliser)
    mask, normaliser = local_p(centre[1, 0], 2)
    torch.testing.assert_close(whole[1, 2], weigh(query[1, 2], key[1, 2], mask=mask, normalise=normaliser))


def test_local_attention_takes_other_normalisers() -> None:
    query, key, value = some(5, 4), some(7, 4, seed=1), some(7, 3, seed=2)
    mask, normaliser = local_p(torch.arange(5.0).double(), 2, normalise.sample)
    _, details = attend(query, key, value, mask=mask, normalise=normaliser, details=True)
    assert details.log_prob.shape == (5,)
    assert local_m(2, normalise.sparsemax).normalise is normalise.sparsemax


def test_a_window_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match=r"local_p: width must be 1 or more, for the bell has σ = width / 2; got 0"):
        local_p(torch.zeros(3), 0)
    with pytest.raises(ValueError, match="window: left must be a whole number of places, 0 or more, or None; got -1"):
        local_m(-1)
