"""A trace returns what an untraced run returns, and puts every setting back."""

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import regard
from regard.tracing import Tape, active
from regard.tracing.primitives import primitives
from tests.tracing.arithmetic import every_equation_is_true


def settings() -> list[object]:
    """Everything global that a trace touches."""
    modules = torch.nn.modules.module
    return [
        torch.backends.cuda.flash_sdp_enabled(), torch.backends.cuda.mem_efficient_sdp_enabled(),
        torch.backends.cuda.math_sdp_enabled(), torch.backends.cuda.cudnn_sdp_enabled(),
        torch.backends.mkldnn.enabled, torch.backends.cudnn.enabled, torch.backends.mha.get_fastpath_enabled(),
        list(modules._global_forward_hooks), list(modules._global_forward_pre_hooks), active(),
        torch._C._len_torch_dispatch_stack(),
        sys.modules["torch._dynamo"].eval_frame._stance.stance if "torch._dynamo" in sys.modules else "default",
    ]  # fmt: skip


def test_every_setting_is_as_before() -> None:
    before = settings()
    with regard.trace():
        assert not torch.backends.mkldnn.enabled
        assert not torch.backends.cuda.flash_sdp_enabled()
        assert active()
        assert settings() != before
    assert settings() == before


@pytest.mark.parametrize("where", ["code", "module", "operation"])
def test_every_setting_is_as_before_after_an_exception(where: str) -> None:
    class Falls(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            raise RuntimeError("fell")

    def fall(x: Tensor) -> None:
        with regard.trace():
            if where == "module":
                nn.Sequential(nn.Linear(3, 3), Falls())(x)
            elif where == "operation":
                x @ x
            raise RuntimeError("fell")

    before = settings()
    with pytest.raises(RuntimeError, match=r"fell|shapes cannot be multiplied"):
        fall(torch.randn(2, 3))
    assert settings() == before


def test_traces_that_overlap_put_everything_back_when_the_last_one_leaves() -> None:
    before = settings()
    one, other = regard.trace(), regard.trace()
    one.__enter__()
    other.__enter__()
    one.__exit__(None, None, None)
    assert not torch.backends.mkldnn.enabled
    assert not torch.backends.cuda.flash_sdp_enabled()
    other.__exit__(None, None, None)
    assert settings() == before


def test_of_traces_that_overlap_each_records_while_it_is_on() -> None:
    x = torch.tensor([1.0, 2])
    one, other = regard.trace(), regard.trace()
    first_tape = one.__enter__()
    a = x + 1
    second_tape = other.__enter__()
    b = a * 2
    one.__exit__(None, None, None)
    c = b - 3
    other.__exit__(None, None, None)
    d = c * c
    assert [record.operation for record in first_tape.records if record.called] == ["aten.add", "aten.mul"]
    assert [record.operation for record in second_tape.records if record.called] == ["aten.mul", "aten.sub"]
    assert first_tape.derivation(b).why("output", 0).text == "4 = (1 + 1)·2"
    assert second_tape.derivation(c).why("output", 0).text == "1 = 2·2 - 3"
    assert d.tolist() == [1, 9]


def test_a_mode_of_someone_else_that_was_entered_later_stays_on() -> None:
    from torch.utils._python_dispatch import TorchDispatchMode

    class Counts(TorchDispatchMode):
        seen = 0

        def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            Counts.seen += 1
            return function(*args, **(kwargs or {}))

    before = settings()
    tracing, counting = regard.trace(), Counts()
    tape = tracing.__enter__()
    counting.__enter__()
    tracing.__exit__(None, None, None)
    torch.ones(2) * 2
    counting.__exit__(None, None, None)
    assert Counts.seen == 2
    assert len(tape) == 0
    assert settings() == before


def test_a_trace_in_a_generator_that_ends_later_records_what_ran_meanwhile() -> None:
    def generate() -> Iterator[Tape]:
        with regard.trace() as tape:
            yield tape

    before, x = settings(), torch.ones(2)
    generator = generate()
    inner = next(generator)
    with regard.trace() as outer:
        x * 2
        assert list(generator) == []
        x * 3
    assert [record.operation for record in inner.records if record.called] == ["aten.mul"]
    assert [record.operation for record in outer.records if record.called] == ["aten.mul", "aten.mul"]
    assert settings() == before


def test_a_trace_left_in_another_thread_says_so_and_records_no_more() -> None:
    before, x, said = settings(), torch.ones(2), []
    tracing = regard.trace()
    tape = tracing.__enter__()
    x * 2

    def elsewhere() -> None:
        with pytest.raises(ValueError, match=r"a trace is left in the thread in which it was entered; this one") as it:
            tracing.__exit__(None, None, None)
        said.append(it)

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    x * 3
    assert said
    assert len(tape) == 2
    torch.utils._python_dispatch._pop_mode()
    assert settings() == before


def test_traces_of_two_threads_put_everything_back() -> None:
    before = settings()
    both, left = threading.Barrier(2, timeout=20), threading.Event()

    def elsewhere() -> None:
        with regard.trace():
            both.wait()
            left.wait(20)

    thread = threading.Thread(target=elsewhere)
    thread.start()
    with regard.trace():
        both.wait()
    left.set()
    thread.join()
    assert settings() == before


def test_settings_that_were_off_stay_off() -> None:
    torch.backends.mha.set_fastpath_enabled(False)
    torch.backends.cuda.enable_flash_sdp(False)
    try:
        before = settings()
        with regard.trace():
            pass
        assert settings() == before
    finally:
        torch.backends.mha.set_fastpath_enabled(True)
        torch.backends.cuda.enable_flash_sdp(True)


def test_a_module_that_catches_an_exception_of_another_keeps_its_path() -> None:
    class Falls(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            raise RuntimeError("fell")

    class Catches(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.falls, self.stands = Falls(), nn.Linear(3, 2)

        def forward(self, x: Tensor) -> Tensor:
            try:
                return self.falls(x)
            except RuntimeError:
                return torch.tanh(self.stands(x))

    with regard.trace() as tape:
        output = nn.Sequential(Catches())(torch.randn(2, 3))
    derivation = tape.derivation(output)
    assert [step.name for step in derivation.steps] == ["0.stands", "0"]
    assert derivation["0"].module == "0"


MODULES = {
    "lstm": (lambda: nn.LSTM(3, 4, 2, bidirectional=True), lambda: (torch.randn(5, 2, 3),)),
    "gru": (lambda: nn.GRU(3, 4), lambda: (torch.randn(5, 2, 3),)),
    "attention": (lambda: nn.MultiheadAttention(8, 2), lambda: (torch.randn(5, 2, 8),) * 3),
    "encoder": (
        lambda: nn.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True).eval(),
        lambda: (torch.randn(5, 2, 8),),
    ),
    "convolution": (lambda: nn.Conv2d(2, 3, 3, padding=1), lambda: (torch.randn(2, 2, 5, 5),)),
    "transformer": (lambda: nn.Transformer(8, 2, 1, 1, 16, 0.0).eval(), lambda: (torch.randn(5, 2, 8),) * 2),
}


def first(output: object) -> Tensor:
    found = output[0] if isinstance(output, tuple) else output
    assert isinstance(found, Tensor)
    return found


@pytest.mark.filterwarnings("ignore:enable_nested_tensor is True")
@pytest.mark.parametrize("gradients", ["gradients", "none", "inference"])
@pytest.mark.parametrize("name", MODULES)
def test_a_traced_run_returns_what_an_untraced_one_returns(name: str, gradients: str) -> None:
    torch.manual_seed(0)
    make, draw = MODULES[name]
    module, inputs = make(), draw()
    mode = {"gradients": torch.enable_grad, "none": torch.no_grad, "inference": torch.inference_mode}[gradients]
    with mode():
        default = first(module(*inputs))
        with primitives():
            same_back_ends = first(module(*inputs))
        with regard.trace() as tape:
            traced = first(module(*inputs))
    assert torch.equal(traced, same_back_ends)
    torch.testing.assert_close(traced, default, rtol=1e-6, atol=1e-6)
    assert traced.requires_grad == default.requires_grad
    derivation = tape.derivation(traced)
    assert torch.equal(derivation.target.value, traced)
    assert not [step for step in derivation.fine if step.role == "opaque"]


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_one_big_product_is_not_taken_apart(mode: Callable[[], AbstractContextManager[None]]) -> None:
    """Of a parameter, matmul makes one product of all rows where it would make many of another tensor."""
    x, weight = torch.randn(5, 2, 8).transpose(0, 1), nn.Parameter(torch.randn(24, 8))
    with mode(), regard.trace() as tape:
        x @ weight.T
    assert [record.operation for record in tape.records if record.operation in ("aten.mm", "aten.bmm")] == ["aten.mm"]


def test_random_numbers_are_drawn_as_without_a_trace() -> None:
    module, x = nn.Sequential(nn.Dropout(0.5), nn.Linear(6, 6), nn.Dropout(0.3)), torch.randn(4, 6)
    torch.manual_seed(3)
    with primitives():
        expected = module(x)
    torch.manual_seed(3)
    with regard.trace() as tape:
        got = module(x)
    assert torch.equal(got, expected)
    derivation = tape.derivation(got)
    assert {step.operation for step in derivation.fine if step.role == "random"} == {"aten.bernoulli"}
    assert every_equation_is_true(derivation, 1e-5) > 0


def test_the_gradients_of_a_traced_run_are_those_of_an_untraced_one() -> None:
    torch.manual_seed(0)
    module, x = nn.LSTM(3, 4), torch.randn(5, 2, 3)
    with primitives():
        module(x)[0].square().sum().backward()
    expected = [parameter.grad.clone() for parameter in module.parameters()]
    module.zero_grad()
    with regard.trace():
        module(x)[0].square().sum().backward()
    for parameter, gradient in zip(module.parameters(), expected, strict=True):
        assert torch.equal(parameter.grad, gradient)
