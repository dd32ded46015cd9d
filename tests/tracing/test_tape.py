"""A trace changes nothing, keeps what was, and puts everything back."""

import sys
import threading

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import regard
from regard.tracing import active, label
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

    before, x = settings(), torch.randn(2, 3)
    with pytest.raises(RuntimeError, match="fell|shapes cannot be multiplied"), regard.trace() as tape:
        if where == "module":
            nn.Sequential(nn.Linear(3, 3), Falls())(x)
        elif where == "operation":
            x @ x
        raise RuntimeError("fell")
    assert settings() == before
    assert tape.modules.path == ""


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
    "encoder": (lambda: nn.TransformerEncoderLayer(8, 2, 16, 0.0).eval(), lambda: (torch.randn(5, 2, 8),)),
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


# In place


def test_what_is_written_over_stays_as_it_was() -> None:
    x = torch.tensor([1.0, 2, 3])
    with regard.trace() as tape:
        a = label(x * 2, "a")
        b = label(a + 1, "b")
        a.mul_(10)
        c = a + b
    derivation = tape.derivation(c)
    assert derivation["a"].value.tolist() == [2, 4, 6]
    assert derivation["b"].value.tolist() == [3, 5, 7]
    assert derivation["input"].value.tolist() == [1, 2, 3]
    assert derivation.why("output", 1).text == "45 = 4·10 + 5"


def test_an_input_that_is_written_over_stays_as_it_was() -> None:
    x = torch.tensor([1.0, 2, 3])
    with regard.trace() as tape:
        y = x * 2
        x.zero_()
        z = x + y
    derivation = tape.derivation(z)
    assert derivation["input"].value.tolist() == [1, 2, 3]
    assert derivation.why("output", 2).text == "6 = 0 + 3·2"
    assert tape.derivation(x).target.value.tolist() == [0, 0, 0]


def test_parts_of_a_buffer_are_followed_to_where_they_were_written() -> None:
    x = torch.arange(6.0).reshape(2, 3)
    with regard.trace() as tape:
        buffer = torch.full((3, 3), -1.0)
        buffer[0] = x[0] * 2
        buffer[1:, :2] = x[:, 1:] + 10
        early = buffer.clone()
        buffer[2, 1] = 7
        buffer.T[2, 2] = 8
        late = buffer * 1
    expected = [[0, 2, 4], [11, 12, -1], [14, 15, -1]]
    assert tape.derivation(early).target.value.tolist() == expected
    derivation = tape.derivation(late)
    expected[2] = [14, 7, 8]
    assert derivation.target.value.tolist() == expected
    every_equation_is_true(derivation)
    assert [parent.index for parent in tape.derivation(early).why("output", 1, 1).parents] == [(0, 1)]


def test_columns_that_do_not_touch_do_not_concern_each_other() -> None:
    x = torch.randn(3, 8)
    with regard.trace() as tape:
        gates = x * 1.0
        i, f = gates.chunk(2, 1)
        i.sigmoid_()
        f.tanh_()
        y = i * f
    derivation = tape.derivation(y)
    assert [step.operation for step in derivation.steps] == ["aten.mul", "aten.mul"]
    every_equation_is_true(derivation, 1e-5)


def test_overlapping_windows_of_one_storage_are_told_apart() -> None:
    x = torch.arange(8.0)
    with regard.trace() as tape:
        windows = x.unfold(0, 4, 2)
        y = windows.sum(1)
        x[3] = 100
        z = windows.sum(1)
    assert tape.derivation(y).why("output", 1).text == "14 = 2 + 3 + 4 + 5"
    assert tape.derivation(z).why("output", 1).text == "111 = 2 + 100 + 4 + 5"


def test_after_the_trace_a_change_is_noticed() -> None:
    weight = nn.Parameter(torch.ones(3))
    with regard.trace() as tape:
        y = weight * 2
    derivation = tape.derivation(y)
    with torch.no_grad():
        weight.add_(1)
    with pytest.raises(ValueError, match=r"the values of 'parameter' were overwritten in place after"):
        derivation["parameter"].value  # noqa: B018


def test_an_optimiser_inside_the_trace_leaves_the_old_weights_in_the_derivation() -> None:
    layer, x = nn.Linear(2, 1), torch.randn(4, 2)
    optimiser = torch.optim.SGD(layer.parameters(), lr=0.1)
    with regard.trace() as tape:
        loss = label(layer(x).square().mean(), "loss")
        loss.backward()
        before = layer.weight.detach().clone()
        optimiser.step()
    assert not torch.equal(layer.weight, before)
    assert torch.equal(tape.derivation(loss)["weight"].value, before)


# Bounds


def test_too_many_numbers_are_an_error_that_says_what_to_do() -> None:
    before, layer, x = settings(), nn.Sequential(nn.Linear(10, 200, bias=False)), torch.randn(10, 10)
    with (
        pytest.raises(ValueError, match=r"more than max_elements=1,000 numbers, at aten.mm in 0: trace less, raise"),
        regard.trace(max_elements=1_000),
    ):
        layer(x)
    assert settings() == before


def test_memory_grows_with_what_is_computed_and_not_with_views_or_weights() -> None:
    layer, x = nn.Linear(100, 10), torch.randn(5, 100)
    with torch.no_grad(), regard.trace() as tape:
        y = layer(x)
        for _ in range(50):
            y = y.T.reshape(10, 5).T
    assert tape.elements == 50
    assert tape.derivation(y).why("output", 0, 0).value == float(y[0, 0])


def test_big_tensors_can_be_left_out_step_by_step() -> None:
    x, w = torch.randn(4, 5), torch.randn(5, 30)
    with regard.trace(max_elements=10, largest=20) as tape:
        big = label(x @ w, "big", "x w")
        small = big.sum()
    derivation = tape.derivation(small)
    assert not derivation["big"].has_values
    cell = derivation.why("big", 1, 2)
    assert [parent.value for parent in cell.parents] == [
        float(value) for pair in zip(x[1], w[:, 2], strict=True) for value in pair
    ]
    with pytest.raises(ValueError, match=r"the values of 'big' \[4, 30\] were left out"):
        cell.value  # noqa: B018
    assert len(derivation.why("output").parents) == 120


def test_storage_that_is_left_out_is_not_mistaken_for_what_comes_after_it() -> None:
    with regard.trace(largest=5) as tape:
        for k in range(20):
            big = torch.full((100,), float(k)) * 2
            small = big[:3] + 1
    derivation = tape.derivation(small)
    assert derivation.why("output", 0).value == 39
    assert derivation.steps[-1].sources


@pytest.mark.parametrize("name", ["max_elements", "largest"])
def test_a_bound_is_a_whole_number(name: str) -> None:
    with (
        pytest.raises(ValueError, match=rf"{name}: expected a whole number of 0 or more; got -1"),
        regard.trace(**{name: -1}),
    ):
        pass


# Asking


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


# Other ways to run


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


def test_operators_of_higher_order_are_opaque_steps() -> None:
    from torch.nn.attention.flex_attention import flex_attention

    torch.manual_seed(0)
    q, k, v = (torch.randn(1, 1, 4, 8) for _ in range(3))
    with torch.no_grad(), pytest.warns(UserWarning, match="flex_attention called without torch.compile"):
        with regard.trace() as tape:
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
    with regard.trace() as tape:
        x = torch.randn(2, 3)
        thread = threading.Thread(target=lambda: done.append(layer(torch.randn(2, 3))))
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


def test_a_name_that_stands_several_times_is_asked_for_in_full() -> None:
    block = nn.Sequential(Labelled(), Labelled())
    with regard.trace() as tape:
        y = block(torch.randn(2, 2))
    derivation = tape.derivation(y)
    with pytest.raises(ValueError, match=r"'A' stands 2 times in this derivation; ask for one of: 0.A, 1.A"):
        derivation["A"]
    assert derivation["0.A"].label == "A"


def test_a_module_that_runs_twice_counts_its_names() -> None:
    shared = Labelled()
    block = nn.Sequential(shared, shared)
    with regard.trace() as tape:
        y = block(torch.randn(2, 2))
    assert {"0.A#1", "0.A#2"} <= {step.name for step in tape.derivation(y).steps}


class Labelled(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return label(F.softmax(x, -1), "A", "softmax(x)") @ x


def test_a_step_that_is_not_there_names_the_nearest() -> None:
    with regard.trace() as tape:
        y = label(torch.randn(2) * 2, "weights")
    with pytest.raises(ValueError, match=r"unknown step 'wieghts'; did you mean 'weights'\?"):
        tape.derivation(y)["wieghts"]


def test_an_index_out_of_range_is_one_sentence() -> None:
    with regard.trace() as tape:
        y = label(torch.randn(2, 3) * 2, "E")
    derivation = tape.derivation(y)
    with pytest.raises(ValueError, match=r"'E' has the shape \[2, 3\]: index 3 on axis 1 is out of range \(0 to 2\)"):
        derivation.why("E", 0, 3)
    with pytest.raises(ValueError, match=r"expected 2 indices, got 1"):
        derivation.why("E", 0)
    assert derivation.why("E", -1, -1).index == (1, 2)


def test_inputs_and_parameters_have_the_names_of_the_code() -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Linear(3, 2)
            self.register_buffer("scale", torch.tensor([2.0, 3]))

        def forward(self, query: Tensor, pair: tuple[Tensor, Tensor]) -> Tensor:
            return self.inner(query + pair[0] * pair[1]) * self.scale

    model, x = Model(), torch.randn(1, 3)
    with regard.trace() as tape:
        y = model(x, (torch.randn(3), torch.randn(3)))
    names = {step.name: step.role for step in tape.derivation(y).givens}
    assert names == {"query": "given", "pair[0]": "random", "pair[1]": "random", "inner.weight": "parameter",
                     "inner.bias": "parameter", "scale": "constant"}  # fmt: skip


def test_the_root_says_where_paths_begin() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.Tanh(), nn.Linear(2, 2)))
    x = torch.randn(1, 2)
    with regard.trace(model) as tape:
        y = model[1](x)
    assert tape.derivation(y).steps[-1].name == "1.1"
    with regard.trace() as tape:
        y = model[1](x)
    assert tape.derivation(y).steps[-1].name == "1"


def test_two_models_in_one_trace_keep_apart() -> None:
    one, other = nn.Linear(2, 2), nn.Linear(2, 2)
    with regard.trace() as tape:
        y = other(torch.tanh(one(torch.randn(1, 2))))
    assert {step.name for step in tape.derivation(y).givens} >= {"weight", "Linear.weight"}
