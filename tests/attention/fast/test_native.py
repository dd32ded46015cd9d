"""Where the compiled form of additive scores comes from, and what happens where there is none."""

import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch import Tensor

from regard.attention import additive_attention, attend, explain_choice, scores
from regard.attention.fast.additive import native
from tests.attention.paths import some


@pytest.fixture
def anew(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """Nothing is known from before, and the cache is empty."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("CC", raising=False)
    native.built.cache_clear()
    yield tmp_path / "cache" / "regard"
    native.built.cache_clear()


needs_compiler = pytest.mark.skipif(native._compiler() is None or os.name == "nt", reason="there is no C compiler")


def rows(batch: int = 16, places: int = 20, width: int = 64) -> list[Tensor]:
    return [some(batch, places, width, seed=seed, dtype=torch.float32, grad=False) for seed in range(3)]


def said(*tensors: Tensor, implementation: str = "auto") -> str:
    v = some(tensors[0].shape[-1], seed=9, dtype=torch.float32, grad=False)
    return str(explain_choice(*tensors, score=scores.Additive(None, None, v), implementation=implementation))


@needs_compiler
def test_it_is_built_once_and_found_again(anew: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built = native.built()
    assert built.code is not None
    assert built.how == f"compiled by {native._compiler()}"
    (library,) = anew.iterdir()
    made = library.stat().st_mtime_ns
    native.built.cache_clear()
    monkeypatch.setattr(native, "_compile", lambda *_: pytest.fail("it was compiled again"))
    assert native.built().code is not None
    assert library.stat().st_mtime_ns == made


@needs_compiler
def test_it_is_believed_whatever_the_caller_has_set(anew: Path) -> None:
    default = torch.get_default_dtype()
    with torch.autocast("cpu", torch.bfloat16):
        assert native.built().code is not None
    native.built.cache_clear()
    torch.set_default_dtype(torch.float64)
    try:
        assert native.built().code is not None
    finally:
        torch.set_default_dtype(default)


def test_another_processor_has_another_library(anew: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "_compile", lambda _, to: to.write_bytes(b""))
    own = native._library("/bin/sh")
    assert native._library("/bin/sh") == own
    monkeypatch.setattr(native, "_processor", lambda: "another")
    assert native._library("/bin/sh") != own


def test_a_folder_in_which_others_may_write_is_not_trusted(anew: Path) -> None:
    anew.mkdir(parents=True)
    assert native._folder() == anew
    anew.chmod(0o777)
    folder = native._folder()
    assert folder != anew
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_home_that_cannot_be_written_is_no_trouble(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert native._folder().is_dir()


@needs_compiler
@pytest.mark.parametrize("extra", ["--no-such-flag", "-mno-avx512f", "-mno-avx512f -mno-avx", "c++"])
def test_other_processors_and_other_compilers_give_the_same_numbers(
    anew: Path, monkeypatch: pytest.MonkeyPatch, extra: str
) -> None:
    """The first flag is none: what a compiler does not know is left out."""
    if "-mno" in extra and "x86" not in native._processor():
        pytest.skip("these flags are for another kind of processor")
    if extra == "c++":
        if shutil.which("c++") is None:
            pytest.skip("there is no C++ compiler")
        monkeypatch.setattr(native, "COMPILERS", ("c++",))
    else:
        known = () if extra == "--no-such-flag" else ("-Wno-psabi",)
        monkeypatch.setattr(native, "FLAGS", (*native.FLAGS, *known))
        monkeypatch.setattr(native, "ALL_IT_CAN", (f"{native.ALL_IT_CAN[0]} {extra}", ""))
    code = native.built().code
    assert code is not None
    q, k, _ = rows(2, 9, 37)
    q, k, v = q * 3, k * 3, some(37, dtype=torch.float32, grad=False)
    truth = torch.tanh(q.unsqueeze(2).double() + k.unsqueeze(1)) @ v.double()
    torch.testing.assert_close(native.forward(code, q, k, v, None).double(), truth, rtol=1e-6, atol=1e-5)


def test_without_a_compiler_products_of_matrices_do_it(anew: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "COMPILERS", ())
    tensors = rows()
    why = "gives the same answer for this call, faster (by products of matrices, since no C compiler was found)"
    assert said(*tensors).startswith(f"additive_cpu: {why}\n")
    v = some(64, dtype=torch.float32, grad=False)
    found = [additive_attention(*tensors, v, implementation=each) for each in ("fused", "reference")]  # type: ignore[arg-type]
    torch.testing.assert_close(*found)


def test_without_a_compiler_what_is_small_is_left_to_the_formula(anew: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "COMPILERS", ())
    tensors = rows(places=8)
    assert "too little to compute for what is not compiled (no C compiler was found)" in said(*tensors)
    assert said(*tensors, implementation="fused").startswith("additive_cpu")
    v = some(64, dtype=torch.float32)
    found = []
    for each in ("fused", "reference"):
        leaves = [one.requires_grad_() for one in rows(places=8)]
        output = attend(*leaves, score=scores.Additive(None, None, v), implementation=each)  # type: ignore[call-overload]
        found.append([output, *torch.autograd.grad(output.square().sum(), [*leaves, v])])
    torch.testing.assert_close(*found)


def test_it_can_be_turned_off(anew: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REGARD_NATIVE", "0")
    assert native.built() == (None, "REGARD_NATIVE=0")


def test_a_compiler_that_fails_is_told_and_done_without(
    anew: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    broken = tmp_path / "cc"
    broken.write_text("#!/bin/sh\necho 'no room left' >&2\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setenv("CC", f"{broken} -O2")
    assert native.built() == (None, f"{broken} did not build it: no room left")
    assert f"(by products of matrices, since {broken} did not build it: no room left)" in said(*rows())


@needs_compiler
def test_code_that_gives_other_numbers_is_not_believed(
    anew: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    wrong = tmp_path / "native.c"
    source = native.SOURCE.read_text("utf-8")
    assert "1.0f / 120" in source
    wrong.write_text(source.replace("1.0f / 120", "1.0f / 12"), "utf-8")
    monkeypatch.setattr(native, "SOURCE", wrong)
    assert native.built() == (None, f"{native._compiler()} builds wrong code of it")


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"score": scores.Dot()}, "the score 'dot' is no sum under a tanh"),
        ({"score": scores.Additive.of(64, 64, 8, depth=2)}, "the alignment network has more than one hidden layer"),
        ({"query": rows()[0][:, :0]}, "there is nothing to compute"),
        ({"query": rows(2, 2)[0], "key": rows(2, 2)[1], "value": rows(2, 2)[2]}, "there is too little to compute"),
    ],
)
def test_why_it_is_not_taken_is_said(settings: dict[str, object], says: str) -> None:
    query, key, value = rows()
    given = {"query": query, "key": key, "value": value, "score": scores.Additive.of(64, 64, 8), **settings}
    assert f"not additive_cpu: {says}" in str(explain_choice(**given))  # type: ignore[arg-type]


def test_in_float64_the_reference_is_taken() -> None:
    tensors = [each.double() for each in rows()]
    v = some(64, grad=False)
    assert "not additive_cpu: it computes in float32; got float64" in str(
        explain_choice(*tensors, score=scores.Additive(None, None, v))
    )


def formula(*tensors: Tensor) -> Tensor:
    return additive_attention(*tensors[:3], torch.ones(64))


@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated:DeprecationWarning")  # forward gradients import it
def test_torch_func_and_forward_gradients_go_by_the_reference() -> None:
    tensors = rows()
    alone = torch.stack([formula(*each) for each in zip(*tensors, strict=True)])
    torch.testing.assert_close(torch.func.vmap(formula)(*tensors), alone)
    directions = tuple(rows()[::-1])
    output, slope = torch.func.jvp(formula, tuple(tensors), directions)
    torch.testing.assert_close(output, alone)
    truth = torch.autograd.functional.jvp(formula, tuple(tensors), directions)[1]
    torch.testing.assert_close(slope, truth, rtol=1e-3, atol=1e-4)


class Model(torch.nn.Module):
    def forward(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        return formula(query, key, value)


def test_what_is_exported_has_operations_of_pytorch_alone() -> None:
    exported = torch.export.export(Model(), tuple(rows()))
    assert "regard" not in str(exported.graph)
    torch.testing.assert_close(exported.module()(*rows()), formula(*rows()))
