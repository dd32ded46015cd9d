"""A false equation is never printed: where numbers were written past PyTorch after they were read, it is said."""

import ctypes
import json
import threading
from collections.abc import Callable

import jsonschema_rs
import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import regard
from regard.tracing import label
from regard.tracing.checking import all_untrue, untrue
from regard.tracing.derivation import Derivation
from regard.tracing.forms import Rule
from regard.tracing.render.equation import OVERWRITTEN
from regard.tracing.step import Step
from tests.tracing.arithmetic import every_equation_is_true
from tests.tracing.cases import CASES
from tests.tracing.render.samples import overwritten
from tests.tracing.test_storing import SCHEMA


def by_numpy(x: Tensor) -> None:
    x.numpy()[0] = 99


def by_pointer(x: Tensor) -> None:
    ctypes.c_float.from_address(x.data_ptr()).value = 99


def by_another_thread(x: Tensor) -> None:
    thread = threading.Thread(target=lambda: x[0].fill_(99))
    thread.start()
    thread.join()


WAYS = (by_numpy, by_pointer, by_another_thread)


@pytest.mark.parametrize("write", WAYS, ids=lambda write: write.__name__)
def test_what_is_written_past_the_dispatcher_prints_no_false_equation(write: Callable[[Tensor], None]) -> None:
    x = torch.tensor([1.0, 2])
    with regard.trace() as tape:
        y = label(x * 2, "y")
        write(x)
        z = label(y + x, "z")
    derivation = tape.derivation(z)
    cell = derivation.why("y", 0)
    assert not cell.holds
    assert cell.text == "2 ≠ 99·2" + OVERWRITTEN
    assert derivation.why("y", 0, fine=True).text == "2 ≠ 99·2" + OVERWRITTEN
    assert derivation.why("y", 1).text == "4 = 2·2"
    assert derivation.why("z", 0).text == "101 = 2 + 99"  # read after it was written


@pytest.mark.parametrize("write", [by_numpy, by_pointer], ids=lambda write: write.__name__)
def test_so_it_is_after_the_trace(write: Callable[[Tensor], None]) -> None:
    x = torch.tensor([1.0, 2])
    with regard.trace() as tape:
        y = torch.tanh(x) * 1
    derivation = tape.derivation(y)
    assert derivation.why("output", 0).text == "0.7616 ≈ tanh(1)·1"
    write(x)
    assert derivation.why("output", 0).text == "0.7616 ≠ tanh(99)·1" + OVERWRITTEN
    write(y)
    assert derivation.why("output", 0).text == "99 ≠ tanh(99)·1" + OVERWRITTEN


def test_a_copy_of_what_was_written_over_says_so_too() -> None:
    x = torch.tensor([1.0, 2])
    with regard.trace() as tape:
        y = label(x.clone(), "y")
        by_numpy(x)
    derivation = tape.derivation(y)
    assert derivation.why("y", 0).text == "1 ≠ input[0]" + OVERWRITTEN
    assert derivation.why("y", 1).text == "2 = input[1]"


def test_a_buffer_that_numpy_fills_before_every_call_is_no_concern() -> None:
    buffer = np.zeros(3, np.float32)
    x, layer = torch.from_numpy(buffer), nn.Linear(3, 2)
    for k in range(2):
        buffer[:] = [k, 1, 2]
        with regard.trace() as tape:
            y = layer(x)
        assert every_equation_is_true(tape.derivation(y), 1e-5)


def altered(step: Step, flat: int) -> Callable[[], None]:
    """Another number in a place; what puts the old one back."""
    assert step.held is not None
    array, at = step.held.tensor.detach().numpy(), np.unravel_index(flat, step.shape)
    old = array[at].copy()
    step._array = None  # of what does not lie row by row a copy is read
    if array.dtype.kind != "f" or np.isfinite(old):
        array[at] = (
            not old if array.dtype == bool else old + 1 if array.dtype.kind != "f" else old + abs(old) / 8 + 0.01
        )

    def back() -> None:
        array[at] = old
        step._array = None

    return back


def is_worked(step: Step) -> bool:
    rule = step.rule
    return step.held is not None and step.size > 0 and rule is not None and not (
        isinstance(rule, Rule) and rule.body.form in ("made", "drawn")
    )  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_another_number_than_was_computed_is_noticed(name: str) -> None:
    """Of every rule: the number that came out is changed, and then it does not hold."""
    torch.manual_seed(0)
    with regard.trace() as tape:
        output = CASES[name]()
    derivation = tape.derivation(output)
    tried = 0
    for step in derivation.fine:
        if is_worked(step) and step.dtype not in ("bfloat16", "float16"):
            flat = step.size - 1
            before = step.held.tensor.flatten()[flat].item()  # type: ignore[union-attr]
            back = altered(step, flat)
            if repr(step.held.tensor.flatten()[flat].item()) != repr(before):  # type: ignore[union-attr]
                tried += 1
                assert untrue(derivation, step, True).tolist() == [flat], step
            back()
    assert tried or "half" in name
    assert not all_untrue(derivation)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_rounding_is_no_falsehood(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(64, 4, 128, 0.0, batch_first=True).to(dtype)
    with torch.no_grad(), regard.trace() as tape:
        y = layer(torch.randn(2, 12, 64).to(dtype)).log_softmax(-1).exp().sum(-1)
    assert all_untrue(tape.derivation(y)) == {}


def test_what_overflows_is_no_falsehood() -> None:
    x = torch.tensor([300.0, 2], dtype=torch.float16)
    with regard.trace() as tape:
        y = label(x * x, "y")
    assert tape.derivation(y).why("y", 0).text == "∞ ≈ 300·300"


def test_json_says_which_cells_do_not_hold() -> None:
    derivation = overwritten()
    record = json.loads(derivation.to_json())
    jsonschema_rs.validate(SCHEMA, record)
    said = {step["name"]: step["untrue"] for step in record["steps"] if "untrue" in step}
    assert said == {"x": {"steps": [[2, 1]], "primitives": [[2, 1]]}, "a": {"steps": [[2, 1]], "primitives": [[2, 1]]}}
    back = Derivation.from_json(derivation.to_json())
    assert back == derivation
    assert back.why("a", 1, 0).text == derivation.why("a", 1, 0).text == "6 ≠ 30·2" + OVERWRITTEN


def test_through_a_hidden_step_it_is_said_of_the_shown_one() -> None:
    x = torch.tensor([1.0, 2, 3])
    with regard.trace() as tape:
        y = label(torch.exp(x) * 2 + 1, "y")
    derivation = tape.derivation(y)
    hidden = next(step for step in derivation.fine if step.operation == "aten.exp")
    by_numpy(hidden.value)
    assert derivation.why("y", 0).holds  # its formula speaks of x alone
    assert not derivation.why(hidden.name, 0, fine=True).holds
    found = all_untrue(derivation)
    assert [each.tolist() for each in found[hidden.position]] == [[0], [0]]
    assert found[hidden.position + 1][0].size == 0
    assert found[hidden.position + 1][1].tolist() == [0]


def test_in_a_document_it_is_said_in_words_that_can_be_broken() -> None:
    tex = overwritten().latex(only="a[1]")
    assert r"\neq" in tex
    assert r"\mbox{written}\allowbreak" in tex


@pytest.mark.parametrize("kind", [torch.float32, torch.float64, torch.bfloat16], ids=str)
@pytest.mark.parametrize("name", ["gelu", "gelu by tanh", "sigmoid", "silu", "softplus", "mish", "elu", "tanh"])
def test_small_results_of_large_numbers_are_no_suspects(name: str, kind: torch.dtype) -> None:
    """Where 1 + erf(x) or 1 + tanh(x) is nearly nothing, all its digits are rounding."""
    function = getattr(F, name) if hasattr(F, name) else lambda x: F.gelu(x, approximate="tanh")
    with regard.trace() as tape:
        y = function(torch.linspace(-40, 40, 801, dtype=kind))
    derivation = tape.derivation(y)
    assert untrue(derivation, derivation.target, True).tolist() == []


@pytest.mark.parametrize("name", ["gelu", "sigmoid", "silu"])
def test_what_was_written_over_beside_them_is_found_all_the_same(name: str) -> None:
    x = torch.tensor([-4.0, -3, 3])
    with regard.trace() as tape:
        y = getattr(F, name)(x)
    x.numpy()[:] = [-3.99, -3.01, 3.01]
    derivation = tape.derivation(y)
    assert untrue(derivation, derivation.target, True).tolist() == [0, 1, 2]
