"""Dropout drawn by sixteen bits."""

import pytest
import torch

from regard.models.dropping import add_dropped, drop, keeping


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9])
def test_so_many_are_dropped_and_the_others_made_up_for_it(share: float) -> None:
    torch.manual_seed(0)
    kept = keeping(torch.empty(401, 999), share)
    assert ((kept == 0) | torch.isclose(kept, torch.tensor(1 / (1 - share)))).all()
    assert float((kept == 0).float().mean()) == pytest.approx(share, abs=0.003)
    # Neighbours, which share a draw of 64 bits, are dropped as independently as any others.
    gone = (kept == 0).flatten().float()
    for apart in (1, 2, 3, 4):
        both = float((gone[:-apart] * gone[apart:]).mean())
        assert both == pytest.approx(share**2, abs=0.004)


def test_the_gradient_goes_where_the_number_went_and_a_seed_repeats() -> None:
    x, added = torch.randn(7, 5), torch.randn(7, 5, requires_grad=True)
    torch.manual_seed(3)
    first = add_dropped(x, added, 0.4)
    first.sum().backward()
    torch.manual_seed(3)
    kept = keeping(x, 0.4)
    torch.testing.assert_close(first, x + added * kept)
    torch.testing.assert_close(added.grad, kept)
    torch.manual_seed(3)
    torch.testing.assert_close(drop(added, 0.4), added * kept)


def test_a_sum_is_in_the_numbers_of_what_is_added_to() -> None:
    x = torch.randn(4, 4)
    assert add_dropped(x, x.bfloat16(), 0.0).dtype == torch.float32
    assert torch.equal(add_dropped(x, x, 0.0), x + x)
