"""As LaTeX: whatever the tokens and the formulas are, a plain article compiles."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
import torch

from regard.tracing.derivation import Derivation
from regard.tracing.render.latex_words import escaped, formula, name
from tests.tracing.render.samples import TRACED, Builder, attention, every_form, heads, shapes

TOKENS = (
    "a_b", "50%", "$x$", "#&~^\\{}", "é", "ß", "ñandú", "আমি", "日本", "ł", "“q”", "<EOS>", "[UNK]", "▁the", "\n", "",
)  # fmt: skip
FORMULAS = {
    "s_t": "tanh(Σ_k W_k x_{i+k} + b)", "logits": "-|h - W_v|²", "n": "tanh(W_n x + b_n + r · (U_n h + b'_n))",
    "a.b_c.0.W": "Q K^T / √d", "α_3": "x^(2i+1) − 10^{-4} ≈ x^2ᵀ", "∂loss/∂A": "A ⊙ (G − Σ A ⊙ G)",
    "M": "mask(E, causal(align='end') & lengths([3, 2]))", "আ": "আ + 1", "K": "K.T", "add#1": "X_{#1} + W_Q_1ᵀ",
    "r": "1 / √(var(x) + ε)", "C'": "f · C' + i · g", "∅": "∅ ∧ ½ ⌊x⌋ → ∇f",
}  # fmt: skip


def formulas() -> Derivation:
    to = Builder()
    for called, said in FORMULAS.items():
        to.add(called, torch.tensor([0.5, -1.0]), "given", formula=said)
    return to.derivation()


def nasty() -> Derivation:
    return attention(16, 16).with_axes({"X": (TOKENS, None), "A": (TOKENS, TOKENS)})


MAKERS = [attention, nasty, heads, shapes, formulas, every_form, *TRACED]


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="no pdflatex on this machine")
@pytest.mark.parametrize("make", MAKERS, ids=lambda make: make.__name__)
def test_a_plain_article_compiles(make: object, tmp_path: Path) -> None:
    (tmp_path / "d.tex").write_text(make().latex(), encoding="utf-8")  # type: ignore[operator]
    done = subprocess.run(
        ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "d.tex"], cwd=tmp_path, capture_output=True
    )
    told = done.stdout.decode(errors="replace")
    assert done.returncode == 0, told[-1500:]
    assert "Overfull" not in told


@pytest.mark.parametrize("make", MAKERS, ids=lambda make: make.__name__)
def test_braces_dollars_and_environments_close(make: object) -> None:
    text = make().latex()  # type: ignore[operator]
    bare = re.sub(r"\\[{}$%&#_]", "", re.sub(r"\\\\|(?<!\\)%.*", "", text))
    assert bare.count("{") == bare.count("}")
    assert bare.count("$") % 2 == 0
    assert re.findall(r"\\begin\{(\w+)\}", text).count("array") == re.findall(r"\\end\{(\w+)\}", text).count("array")
    assert text.startswith("\\documentclass{article}")
    assert text.endswith("\\end{document}\n")
    assert set(re.findall(r"\\usepackage\{(\w+)\}", text)) == {"graphicx"}


def test_equations_are_mathematics() -> None:
    text = attention().latex(only="A")
    assert r"$A = \mathrm{softmax}(M)$" in text
    assert r"A[2, 0]\colon\ 0.3875 \approx \frac{e^{0.3756}}{e^{0.3756} + e^{-0.4135} + e^{0.4944}}" in text
    assert r"\mbox{are} & 0.1015 & 0.8985 & \times" in text
    assert "-\\infty" in attention().latex(only="M")


def test_a_body_stands_in_another_document() -> None:
    body = attention().latex(only="A", document=False)
    assert "documentclass" not in body
    assert body in attention().latex(only="A")


@pytest.mark.parametrize(
    ("text", "latex"),
    [
        ("Q K^T / √d", r"Q\,K{}^{\top}\,/\,\sqrt{d}"),
        ("x_{i+k}", "x_{i+k}"),
        ("b'_n", "b'_{n}"),
        ("α_3", r"\alpha _{3}"),
        ("softmax(E)", r"\mathrm{softmax}(E)"),
        ("x_t² + W_h_0ᵀ", r"x_{t}{}^{2}\,+\,W_{\mbox{h\_0}}{}^{\top}"),
        ("out.weightᵀ", r"\mathrm{out}.\mathrm{weight}{}^{\top}"),
    ],
)
def test_formulas_are_written_as_mathematics(text: str, latex: str) -> None:
    assert formula(text) == latex


def test_names_and_tokens_are_escaped() -> None:
    assert name("W_Q", (0, 1)) == "W_{Q}[0, 1]"
    assert name("layers.0.out_proj") == r"\mbox{\texttt{layers.0.out\_proj}}"
    assert escaped("é_ł") == r"\'{e}\_\l{}"
    assert escaped("আ") == r"\other{আ}{?}"
