"""Backward inside the trace: gradients are steps, and their equations are true."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

import regard
from regard.tracing import label
from tests.tracing.arithmetic import every_equation_is_true
from tests.tracing.cases import GRADIENTS, r


def weighted(y: Tensor) -> Tensor:
    """A loss to which every cell matters differently."""
    return (y * torch.linspace(0.5, 2, y.numel(), dtype=y.dtype).reshape(y.shape)).sum()


@pytest.mark.parametrize("name", GRADIENTS)
def test_a_gradient_is_opened_and_its_equations_are_true(name: str) -> None:
    torch.manual_seed(0)
    start = r(3, 4)
    x = start.clone().requires_grad_()
    torch.manual_seed(1)
    with regard.trace() as tape:
        loss = label(weighted(GRADIENTS[name](label(x, "x"))), "loss")
        loss.backward()
    derivation = tape.derivation(loss, gradients=[x])
    assert derivation.target.label == "loss"
    assert derivation.steps[-1] is derivation["∂loss/∂x"]
    assert torch.equal(derivation["∂loss/∂x"].value, x.grad)
    assert not [step for step in derivation.fine if step.role == "opaque"]
    every_equation_is_true(derivation)

    def again(x: Tensor) -> Tensor:
        torch.manual_seed(1)
        return weighted(GRADIENTS[name](x))

    # The truth from outside: finite differences. What is learned of padding PyTorch leaves out.
    for index in [] if "padding" in name else [(0, 0), (1, 2), (2, 3)]:
        step = torch.zeros(3, 4, dtype=torch.float64)
        step[index] = 1e-6
        difference = (again(start + step) - again(start - step)) / 2e-6
        assert float(derivation.why("∂loss/∂x", *index).value) == pytest.approx(float(difference), abs=1e-6)


def test_steps_on_the_way_have_gradients_by_their_names() -> None:
    torch.manual_seed(0)
    x, w, v = r(3, 4), r(4, 4).requires_grad_(), r(4, 2).requires_grad_()
    with regard.trace() as tape:
        q = label(x @ w, "Q", "X W")
        a = label((q @ x.T).softmax(-1), "A", "softmax(Q Xᵀ)")
        o = label(a @ x @ v, "O", "A X V")
        loss = label(o.square().mean(), "loss")
        gradient_w, gradient_v = torch.autograd.grad(loss, [w, v])
    derivation = tape.derivation(loss, gradients=[w, v])
    names = [step.name for step in derivation.steps]
    assert names.index("loss") < names.index("∂loss/∂O") < names.index("∂loss/∂A") < names.index("∂loss/∂Q")
    assert torch.equal(
        derivation["∂loss/∂parameter#1" if "∂loss/∂parameter#1" in derivation else names[-1]].value, gradient_w
    )
    assert derivation["∂loss/∂A"].formula
    assert derivation["∂loss/∂loss"].value == 1
    cell = derivation.why("∂loss/∂O", 1, 1)
    assert {parent.step for parent in cell.parents} == {"∂loss/∂loss", "O"}
    assert gradient_v.shape == (4, 2)
    every_equation_is_true(derivation)


def test_a_module_s_parameters_have_gradients_by_their_paths() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.LayerNorm(4), nn.Linear(4, 2)).double()
    with regard.trace() as tape:
        loss = F.cross_entropy(model(r(5, 3)), torch.tensor([0, 1, 1, 0, 1]))
        loss.backward()
    derivation = tape.derivation(loss, gradients=list(model.parameters()))
    for name, parameter in model.named_parameters():
        assert torch.equal(derivation[f"∂loss/∂{name}"].value, parameter.grad)
    every_equation_is_true(derivation)


def test_an_lstm_s_gradients_are_steps_whose_equations_are_true() -> None:
    torch.manual_seed(0)
    lstm = nn.LSTM(3, 4).double()
    with regard.trace() as tape:
        loss = weighted(lstm(r(3, 2, 3))[0])
        loss.backward()
    derivation = tape.derivation(loss, gradients=[lstm.weight_hh_l0, lstm.weight_ih_l0])
    assert "∂loss/∂C_2" in derivation
    assert torch.equal(derivation["∂loss/∂weight_hh_l0"].value, lstm.weight_hh_l0.grad)
    assert not [step for step in derivation.fine if step.role == "opaque"]
    every_equation_is_true(derivation)


def test_of_two_losses_each_has_its_own_gradients() -> None:
    x = torch.tensor([1.0, 2, 3], requires_grad=True)
    with regard.trace() as tape:
        label(x, "x")
        one = label((x * x).sum(), "one")
        other = label((x * 5).sum(), "other")
        one.backward()
        other.backward()
    assert tape.derivation(one, gradients=[x])["∂one/∂x"].value.tolist() == [2, 4, 6]
    assert tape.derivation(other, gradients=[x])["∂other/∂x"].value.tolist() == [5, 5, 5]


def test_without_a_backward_pass_there_is_a_sentence() -> None:
    x = torch.randn(3, requires_grad=True)
    with regard.trace() as tape:
        loss = (x * x).sum()
        other = x.sum()
        other.backward()
        unused = label(torch.ones(2, requires_grad=True) * 1, "unused")
    with pytest.raises(
        ValueError, match=r"the gradient for this tensor \[3\] that was computed in the trace is not of"
    ):
        tape.derivation(loss, gradients=[x])
    with pytest.raises(ValueError, match=r"no gradient for this tensor \[2\] was computed in the trace: differentiate"):
        tape.derivation(loss, gradients=[unused])
    loss.backward()
    assert x.grad is not None


def test_one_tensor_may_stand_in_place_of_a_list_of_it() -> None:
    W = torch.ones(3, 2, requires_grad=True)
    with regard.trace() as tape:
        loss = W.square().sum()
        loss.backward()
    alone, listed = tape.derivation(loss, gradients=W), tape.derivation(loss, gradients=[W])
    assert alone == listed
    assert any(step.name.startswith("∂") for step in alone.steps)


def test_hooks_do_not_outlive_the_trace() -> None:
    x = torch.randn(3, requires_grad=True)
    with regard.trace() as tape:
        loss = (x * x).sum()
    loss.backward()
    assert tape.gradients.of == {}
    assert not x._backward_hooks


def test_of_a_weight_that_changed_each_loss_has_its_own_gradient() -> None:
    x, w = r(2, 3), r(3, 2).requires_grad_()
    with regard.trace() as tape:
        label(w, "W")
        one = label((x @ w).square().sum(), "one")
        one.backward()
        first = w.grad
        with torch.no_grad():
            w -= 0.1 * w.grad
        w.grad = None
        other = label((x @ w).tanh().sum(), "other")
        other.backward()
    assert torch.equal(tape.derivation(one, gradients=[w])["∂one/∂W"].value, first)
    derivation = tape.derivation(other, gradients=[w])
    assert torch.equal(derivation.steps[-1].value, w.grad)
    assert derivation.steps[-1].name.startswith("∂other/∂")
    every_equation_is_true(derivation)


def test_the_gradient_of_a_penalty_is_not_the_loss_s() -> None:
    w = r(3).requires_grad_()
    with regard.trace() as tape:
        loss = label((label(w, "W") ** 3).sum(), "loss")
        (gradient,) = torch.autograd.grad(loss, w, create_graph=True)
        penalty = label(gradient.square().sum(), "penalty")
        penalty.backward()
    assert torch.equal(tape.derivation(loss, gradients=[w])["∂loss/∂W"].value, gradient)
    assert torch.equal(tape.derivation(penalty, gradients=[w])["∂penalty/∂W"].value, w.grad)


def test_after_an_optimiser_s_step_the_gradients_are_still_there() -> None:
    layer, x = nn.Linear(2, 1), torch.randn(4, 2)
    optimiser = torch.optim.SGD(layer.parameters(), lr=0.1)
    with regard.trace() as tape:
        loss = label(layer(x).square().mean(), "loss")
        loss.backward()
        optimiser.step()
    derivation = tape.derivation(loss, gradients=list(layer.parameters()))
    assert torch.equal(derivation["∂loss/∂weight"].value, layer.weight.grad)
    assert torch.equal(derivation["∂loss/∂bias"].value, layer.bias.grad)


def test_another_root_or_seed_is_told() -> None:
    w = r(3).requires_grad_()
    with regard.trace() as tape:
        y = w * 2
        y.backward(r(3))
        loss = (w * w).sum()
        scaled = loss * 1024
        scaled.backward()
    for tensor in (y, loss):
        with pytest.raises(ValueError, match=r"began at another one, like a scaled loss, or with a gradient of the"):
            tape.derivation(tensor, gradients=[w])
    assert tape.derivation(scaled, gradients=[w]).steps[-1].value.tolist() == (w.detach() * 2048).tolist()


@pytest.mark.parametrize("reentrant", [False, True])
def test_gradients_go_through_checkpoints(reentrant: bool) -> None:
    torch.manual_seed(0)
    parts = nn.ModuleList([nn.Sequential(nn.Linear(3, 3), nn.Tanh()), nn.Linear(3, 2)]).double()
    x = r(5, 3).requires_grad_()
    with regard.trace() as tape:
        h = x
        for part in parts:
            h = checkpoint(part, h, use_reentrant=reentrant)
        loss = label(h.square().sum(), "loss")
        loss.backward()
    derivation = tape.derivation(loss, gradients=[x, *parts.parameters()])
    gradients = [step for step in derivation.steps if step.name.startswith("∂loss/∂")]
    for tensor in (x, *parts.parameters()):
        assert any(step.shape == tensor.shape and torch.equal(step.value, tensor.grad) for step in gradients)
    assert not [step for step in derivation.fine if step.role == "opaque"]
    assert every_equation_is_true(derivation) > 100


def test_a_pass_of_its_own_inside_another_is_none_of_it() -> None:
    x, w = r(3).requires_grad_(), r(3).requires_grad_()
    within: list[Tensor] = []

    def meanwhile(gradient: Tensor) -> None:
        with torch.enable_grad():
            other = (w * w).sum()
            within.append(other)
            other.backward()

    with regard.trace() as tape:
        h = label(x * 2, "h")
        h.register_hook(meanwhile)
        loss = label((h * w.detach()).sum(), "loss")
        loss.backward()
    assert torch.equal(tape.derivation(within[0], gradients=[w]).steps[-1].value, w.grad)
    assert torch.equal(tape.derivation(loss, gradients=[x]).steps[-1].value, x.grad)
    with pytest.raises(ValueError, match="its backward pass began at another one"):
        tape.derivation(loss, gradients=[w])
