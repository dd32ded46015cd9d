"""Names, formulas and tokens in LaTeX, such that any text at all compiles with pdfLaTeX in a plain article.

Accented Latin letters are written as letter and accent, Greek ones as mathematics. What pdfLaTeX cannot set without
further packages stands as it is for LuaLaTeX and XeLaTeX, and as a question mark for pdfLaTeX.
"""

import re
import unicodedata

OTHER = r"""% Letters of other scripts: as they are where the engine reads them, else question marks.
\newcommand{\other}[2]{\ifdefined\XeTeXversion #1\else\ifdefined\directlua #1\else #2\fi\fi}
"""

ASCII = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "%": r"\%", "_": r"\_",
    "^": r"\textasciicircum{}", "~": r"\textasciitilde{}", "<": "$<$", ">": "$>$", "|": "$|$", '"': "''",
    "[": "{[}", "]": "{]}",
}  # fmt: skip

MATH = {
    "·": r"\cdot ", "×": r"\times ", "⊙": r"\odot ", "Σ": r"\sum ", "Π": r"\prod ", "√": r"\surd ", "∞": r"\infty ",
    "≈": r"\approx ", "≤": r"\le ", "≥": r"\ge ", "≠": r"\ne ", "∂": r"\partial ", "→": r"\to ", "−": "-", "∈": r"\in ",
    "…": r"\ldots ", "⋯": r"\cdots ", "±": r"\pm ", "∘": r"\circ ", "∇": r"\nabla ", "ᵀ": r"{}^{\top}", "²": "{}^{2}",
    "³": "{}^{3}", "¹": "{}^{1}", "⁻": "{}^{-}", "½": r"\frac{1}{2}", "∥": r"\Vert ", "‖": r"\Vert ", "′": "'",
    "⊕": r"\oplus ",
    "⌊": r"\lfloor ", "⌋": r"\rfloor ", "∧": r"\wedge ", "∨": r"\vee ", "¬": r"\neg ",
    "₀": "{}_{0}", "₁": "{}_{1}", "₂": "{}_{2}",
}  # fmt: skip

TEXT = {
    "‘": "`", "’": "'", "“": "``", "”": "''", "–": "--", "—": "---", "…": r"\ldots{}", "ß": r"\ss{}", "æ": r"\ae{}",
    "Æ": r"\AE{}", "œ": r"\oe{}", "Œ": r"\OE{}", "ø": r"\o{}", "Ø": r"\O{}", "ł": r"\l{}", "Ł": r"\L{}", "ı": r"\i{}",
    "¿": "?`", "¡": "!`", "§": r"\S{}", "©": r"\copyright{}", "\u00a0": "~", "␣": r"$\sqcup$", "∅": r"$\emptyset$",
    "⏎": r"$\hookleftarrow$", "⇥": r"$\mapsto$", "▁": r"\_",
}  # fmt: skip

ACCENTS = {
    "\u0300": "`", "\u0301": "'", "\u0302": "^", "\u0303": "~", "\u0304": "=", "\u0306": "u", "\u0307": ".",
    "\u0308": '"', "\u030a": "r", "\u030b": "H", "\u030c": "v", "\u0327": "c", "\u0323": "d",
}  # fmt: skip

RAISED = "(?![ᵀ¹²³])"  # letters to Unicode, marks of another letter here
PIECE = re.compile(
    rf"(?P<base>(?:{RAISED}[^\W\d_])+[0-9]*)(?P<arrow>[→←](?=[_^\[), ]|$))?(?P<prime>['′]*)"
    rf"(?:_(?P<low>\{{[^{{}}]*\}}|(?:{RAISED}\w)+))?"
    r"|\^(?P<high>\{[^{}]*\}|\([^()]*\)|-?\w+)|(?P<number>\d+(?:\.\d+)?)"
    r"|√(?P<root>\([^()]*\)|\w+)|(?P<sign>.)",
    re.DOTALL,
)
GREEK = {
    "α": "alpha", "β": "beta", "γ": "gamma", "δ": "delta", "ε": "epsilon", "ζ": "zeta", "η": "eta", "θ": "theta",
    "ι": "iota", "κ": "kappa", "λ": "lambda", "μ": "mu", "µ": "mu", "ν": "nu", "ξ": "xi", "π": "pi", "ρ": "rho",
    "σ": "sigma", "τ": "tau", "υ": "upsilon", "φ": "phi", "χ": "chi", "ψ": "psi", "ω": "omega", "Γ": "Gamma",
    "Δ": "Delta", "Θ": "Theta", "Λ": "Lambda", "Ξ": "Xi", "Φ": "Phi", "Ψ": "Psi", "Ω": "Omega",
}  # fmt: skip


def escaped(words: str) -> str:
    """Words for the text of a document."""
    return "".join(_letter(each) for each in unicodedata.normalize("NFC", words))


def _letter(letter: str) -> str:
    if letter in ASCII or letter in TEXT:
        return ASCII.get(letter) or TEXT[letter]
    if letter.isascii():
        return letter if letter.isprintable() else " "
    if letter in GREEK:
        return rf"$\{GREEK[letter]}$"
    if letter in MATH and not letter.isalpha():
        return f"${MATH[letter].strip()}$"
    apart = unicodedata.normalize("NFD", letter)
    if apart[0].isascii() and len(apart) == 2 and apart[1] in ACCENTS:
        return rf"\{ACCENTS[apart[1]]}{{{apart[0]}}}"
    return rf"\other{{{letter}}}{{?}}"


def name(step: str, index: tuple[int, ...] = ()) -> str:
    """A step's name in mathematics: a letter with its index, or a path as it is."""
    plain = re.fullmatch(r"[^\W\d_]+\d*[→←]?['′]*(?:_(?:\{[^{}]*\}|\w+))?(?:\^\d+)?", step)
    called = formula(step) if plain else rf"\mbox{{\texttt{{{escaped(step)}}}}}"
    return rf"{called}[{', '.join(map(str, index))}]" if index else called


def formula(text: str) -> str:
    """A formula as the code tells it (`softmax(Q K^T / √d)`) in LaTeX's mathematics."""
    return "".join(_piece(found) for found in PIECE.finditer(text)).strip()


def _piece(found: re.Match[str]) -> str:
    if found["base"]:
        low = f"_{{{_inner(found['low'])}}}" if found["low"] else ""
        word = _word(found["base"])
        if found["arrow"]:
            word = rf"\{'overrightarrow' if found['arrow'] == '→' else 'overleftarrow'}{{{word}}}"
        return word + "'" * len(found["prime"] or "") + low
    if found["high"]:
        return r"{}^{\top}" if found["high"] == "T" else f"^{{{_inner(found['high'])}}}"
    if found["root"]:
        return rf"\sqrt{{{formula(found['root'].removeprefix('(').removesuffix(')'))}}}"
    return found["number"] or _sign(found["sign"])


def _inner(part: str) -> str:
    """What stands in braces, or a word by itself, as an index."""
    return formula(part[1:-1]) if part.startswith("{") else _word(part) if part.isidentifier() else formula(part)


def _word(word: str) -> str:
    if word in GREEK:
        return rf"\{GREEK[word]} "
    if word in MATH:
        return MATH[word].strip()
    if not word.isascii() or "_" in word:
        return rf"\mbox{{{escaped(word)}}}"
    return word if len(word) == 1 else rf"\mathrm{{{word}}}"


def _sign(sign: str) -> str:
    if sign in MATH:
        return MATH[sign]
    if sign.isspace():
        return r"\,"
    if sign in ",;":
        return rf"{sign}\allowbreak "
    return sign if sign in "+-*/()[]=,.:;<>|!?'" else rf"\mbox{{{escaped(sign)}}}"
