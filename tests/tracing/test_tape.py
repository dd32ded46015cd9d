"""What a tape records: compiled code, operators of higher order, threads, tapes in tapes."""

import threading
import weakref
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

import regard
from regard.tracing import label
from regard.tracing.derivation import Derivation
from tests.tracing.arithmetic import every_equation_is_true


def test_a_tensor_that_was_no_part_of_it_is_told_so() -> None:
    with regard.trace() as tape:
        torch.ones(3) * 2
    with pytest.raises(ValueError, match=r"this tensor \[2\] was not part of the trace: pass one that"):
        tape.derivation(torch.ones(2))
    with pytest.raises(ValueError, match=r"a derivation is asked for of a tensor; got list"):
        tape.derivation([1.0])  # type: ignore[arg-type]


def test_what_was_given_is_a_derivation_of_one_step() -> None:
    x = torch.randn(2)
    with regard.trace() as tape:
        x * 2
    derivation = tape.derivation(x)
    assert [step.role for step in derivation.steps] == ["given"]
    assert "is given" in derivation.why("input", 0).text


def test_the_last_step_is_the_tensor_asked_for_with_its_own_indices() -> None:
    x = torch.randn(2, 3)
    with regard.trace() as tape:
        h = label(torch.tanh(x), "h")
        y = h.T.reshape(2, 3)[1]
    derivation = tape.derivation(y)
    assert derivation.steps[-1].shape == (3,)
    assert derivation.why("output", 0).parents[0][:2] == ("h", (1, 1))
    assert torch.equal(derivation.target.value, y)


def test_a_derivation_may_be_asked_for_inside_the_trace() -> None:
    x = torch.tensor([1.0, 2])
    with regard.trace() as tape:
        y = x + 1
        derivation = tape.derivation(y)
        y.mul_(3)
    assert derivation.target.value.tolist() == [2, 3]
    assert tape.derivation(y).target.value.tolist() == [6, 9]


def test_compiled_code_runs_eagerly_under_the_trace() -> None:
    layer = nn.Sequential(nn.Linear(3, 4), nn.Tanh())
    compiled, x = torch.compile(layer, backend="aot_eager"), torch.randn(2, 3)
    expected = compiled(x)
    with regard.trace() as tape:
        y = compiled(x)
    derivation = tape.derivation(y)
    assert [step.name for step in derivation.steps] == ["0", "1"]
    assert "input" in {step.name for step in derivation.givens}
    torch.testing.assert_close(y, expected)
    torch.testing.assert_close(compiled(x), expected)


def test_a_function_compiled_inside_the_trace_runs_eagerly() -> None:
    with regard.trace() as tape:
        y = torch.compile(lambda x: torch.tanh(x) * 2, backend="aot_eager")(torch.randn(3))
    assert tape.derivation(y).target.operation == "aten.mul"


@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
def test_operators_of_higher_order_are_opaque_steps() -> None:
    from torch.nn.attention.flex_attention import flex_attention

    torch.manual_seed(0)
    q, k, v = (torch.randn(1, 1, 4, 8) for _ in range(3))
    with torch.no_grad(), regard.trace() as tape:
        y = flex_attention(q, k, v) * 2
    expected = flex_attention(q, k, v) * 2
    assert torch.equal(y, expected)
    derivation = tape.derivation(y)
    (opaque,) = (step for step in derivation.steps if step.role == "opaque")
    assert "flex_attention" in opaque.operation
    assert set(opaque.inputs) >= {"input#1", "input#2", "input#3"}
    index = (0,) * len(opaque.shape)
    assert "for which no rule is known" in derivation.why(opaque.name, *index).text
    every_equation_is_true(derivation, 1e-5)


def test_an_operation_without_a_rule_is_opaque_and_never_guessed() -> None:
    x = torch.eye(3) * 2
    with regard.trace() as tape:
        y = torch.linalg.inv(x) + 1
    derivation = tape.derivation(y)
    opaque = next(step for step in derivation.steps if step.role == "opaque")
    assert "no rule is known" in derivation.why(opaque.name, 0, 0).text
    assert derivation.why(opaque.name, 0, 0).parents == ()


def test_other_threads_are_not_recorded() -> None:
    layer, done = nn.Linear(3, 3), []

    def elsewhere() -> None:
        done.append(label(layer(torch.randn(2, 3)), "elsewhere"))

    with regard.trace() as tape:
        x = torch.randn(2, 3)
        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
        y = x * 2
    assert len(done) == 1
    assert {step.operation for step in tape.derivation(y).fine} == {"aten.randn", "aten.mul"}
    assert len(tape) == 2


def test_tapes_within_tapes_record_each_their_own() -> None:
    x = torch.randn(3)
    with regard.trace() as outer:
        a = torch.tanh(x)
        with regard.trace() as inner:
            b = label(a * 2, "b")
        c = b + 1
    assert [step.name for step in outer.derivation(c).steps] == ["b", "output"]
    assert "b" in inner.derivation(b)
    assert "b" in outer.derivation(b)
    with pytest.raises(ValueError, match="was not part of the trace"):
        inner.derivation(c)


def test_a_tensor_without_strides_passes_through() -> None:
    with regard.trace() as tape:
        sparse = torch.eye(3).to_sparse()
        y = torch.sparse.mm(sparse, torch.randn(3, 2))
    assert tape.derivation(y).target.shape == (3, 2)


def nested() -> Tensor:
    return torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(4, 3)])


def turned_on_itself() -> Tensor:
    whole = torch.eye(3).to_sparse()
    whole.mul_(2)
    return whole.to_dense() + 1


def fake() -> Tensor:
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        return torch.empty(3, 4) * 2 + 1


# What it computes, and its first cell.
OF_OTHER_LAYOUTS: dict[str, tuple[Callable[[], Tensor], str]] = {
    "nested": (lambda: torch.nested.to_padded_tensor(nested() * 2, 0.0) + 1, "3 = 2 + 1"),
    "nested at the end": (lambda: nested() * 2, "output[0] was made by aten.mul, for which no rule is known"),
    "sparse": (lambda: torch.sparse.mm(torch.eye(3).to_sparse(), torch.ones(3, 2)) + 1, "2 = 1 + 1"),
    "sparse at the end": (lambda: torch.eye(3).to_sparse() * 2, "output[0, 0] was made by aten.mul, for which no rule"),
    "sparse in place": (turned_on_itself, "3 = 2 + 1"),
    "rows of it": (lambda: torch.eye(3).to_sparse_csr() @ torch.ones(3, 2) + 1, "2 = 1 + 1"),
    "mkldnn": (lambda: (torch.ones(2, 3).to_mkldnn() + torch.ones(2, 3).to_mkldnn()).to_dense() * 2, "4 = 2·2"),
    "fake": (fake, "output[0, 0] ≈ empty[0, 0]·2 + 1"),
    "meta": (lambda: torch.empty(3, 4, device="meta") * 2 + 1, "output[0, 0] ≈ empty[0, 0]·2 + 1"),
}


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors", "ignore:Sparse CSR", "ignore:Sparse invariant")
@pytest.mark.parametrize("name", OF_OTHER_LAYOUTS)
def test_tensors_that_are_no_plain_arrays_pass_through(name: str) -> None:
    compute, text = OF_OTHER_LAYOUTS[name]
    with regard.trace() as tape:
        y = compute()
    derivation = tape.derivation(y)
    target = derivation.target
    assert derivation.why(target.name, *[0] * len(target.shape)).text.startswith(text)
    assert derivation.text(width=80, color=False)
    assert Derivation.from_json(derivation.to_json()).target.name == target.name
    for step in derivation.fine:
        if not step.has_values:
            with pytest.raises(ValueError, match="were left out of the derivation"):
                step.value  # noqa: B018


def test_a_tape_keeps_no_graph_of_the_backward_pass() -> None:
    class Kept:
        def __init__(self, tensor: Tensor) -> None:
            self.tensor = tensor

    alive: list[weakref.ref[Kept]] = []

    def pack(tensor: Tensor) -> Kept:
        kept = Kept(tensor)
        alive.append(weakref.ref(kept))
        return kept

    w = torch.randn(3, 3, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda kept: kept.tensor), regard.trace() as tape:
        loss = (torch.randn(2, 3) @ w).square().sum()
    assert [each() for each in alive if each() is not None]
    derivation = tape.derivation(loss)
    del loss
    assert [each() for each in alive if each() is not None] == []
    assert derivation.target.has_values
