"""Every ```python block of README.md and docs/ runs, a file's blocks in one namespace, and says what is true.

A comment at the end of a line of code is checked where it claims a value: `2 + 2  # 4`. What is claimed is the
value of the expression, or what `print(...)` prints; `# ≈ 0.5` (or a tensor's numbers) allows for rounding to the
digits shown. Any other comment is written with words first: `# the weights: one row a query`. An indented block
straight after a snippet whose last line prints is what that line prints.
"""

import ast
import contextlib
import io
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
FENCE = re.compile(r"^( *)```(\w*)[^\n]*\n(.*?)^\1```", re.MULTILINE | re.DOTALL)
SHOWN = re.compile(r"\n?\n((?: {4}.*\n)+)")
NUMBER = re.compile(r"-?\d+\.\d+(?:e[+-]?\d+)?|-?\d+(?:e[+-]?\d+)?")


def blocks(text: str) -> Iterator[tuple[int, str, str]]:
    """The Python blocks of a page: the line on which its code begins, the code, and an indented block after it."""
    for found in FENCE.finditer(text):
        indent, language, code = found.groups()
        if language in ("python", "py"):
            lines = [line.removeprefix(indent) for line in code.splitlines()]
            shown = SHOWN.match(text, found.end())
            after = textwrap.dedent(shown.group(1)).strip() if shown else ""
            yield text[: found.start(3)].count("\n") + 1, "\n".join(lines), after


def claim_of(line: str) -> str | None:
    """What the comment at the end of a line of code claims it gives; after `print(...)` any comment is a claim."""
    if (printed := re.search(r"^print\(.*\)  # (.*)$", line)) is not None:
        return printed.group(1)
    found = re.search(r"\S.*?  # (≈ ?)?([-\[(\"'{]?[\d\[(\"'{].*|True|False|None|tensor.*)$", line)
    return None if found is None else (found.group(1) or "") + found.group(2)


def agrees(value: object, printed: str, claim: str) -> bool:
    """Whether a value (or what was printed) is what is claimed: to the letter, or with ≈ to the digits shown."""
    shown = printed.strip() or repr(value)
    if not claim.startswith("≈"):
        return re.sub(r"\s+", " ", claim.strip()) in (re.sub(r"\s+", " ", shown), re.sub(r"\s+", " ", str(value)))
    plain = getattr(value, "tolist", lambda: shown)() if value is not None else shown
    expected, got = NUMBER.findall(claim), NUMBER.findall(str(plain))
    return len(expected) == len(got) and all(
        abs(float(number) - float(each)) <= 0.51 * 10 ** -len(number.partition(".")[2].partition("e")[0])
        for number, each in zip(expected, got, strict=True)
    )


def executed(statement: ast.stmt, where: str, names: dict[str, object]) -> tuple[object, str]:
    """The value of a statement that is an expression, and what it prints."""
    out, value = io.StringIO(), None
    with contextlib.redirect_stdout(out):
        if isinstance(statement, ast.Expr):
            value = eval(compile(ast.Expression(statement.value), where, "eval"), names)
        else:
            exec(compile(ast.Module([statement], []), where, "exec"), names)
    return value, out.getvalue()


def run(page: str, text: str) -> int:
    """Execute a page's blocks and check what they claim; how many claims there were."""
    names: dict[str, object] = {"__name__": page}
    checked = 0
    for start, code, shown in blocks(text):
        lines, printed = code.splitlines(), ""
        for statement in ast.parse(code).body:
            ast.increment_lineno(statement, start - 1)
            where = f"{page}:{statement.lineno}"
            value, printed = executed(statement, where, names)
            claim = claim_of(lines[(statement.end_lineno or 0) - start])
            if claim is not None and isinstance(statement, ast.Expr):
                checked += 1
                assert agrees(value, printed, claim), f"{where}: {claim!r} is claimed; got {printed or value!r}"
        if shown and printed:
            checked += 1
            assert printed.strip() == shown, f"{page}:{start}: what stands after it is not what it prints: {printed}"
    return checked


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_snippet_runs_and_gives_what_it_claims(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run(str(page.relative_to(ROOT)), page.read_text(encoding="utf-8"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_to_a_file_of_the_project_leads_somewhere(page: Path) -> None:
    text = re.sub(FENCE, "", page.read_text(encoding="utf-8"))
    for target in re.findall(r"\]\(([^)#\s]+)", text):
        if "://" not in target and not target.startswith("mailto:"):
            assert (page.parent / target).exists(), f"{page.name} links to {target}, which is not there"


@pytest.mark.parametrize(
    ("code", "claims"),
    [
        ("x = 2\nx + 2  # 4", 1),
        ("print('a b')  # a b\nprint(1, 2)  # 1 2", 2),
        ("[1 / 3, 2]  # ≈ [0.33, 2]", 1),
        ("import torch\ntorch.tensor([[1 / 3, 1e-9]])  # ≈ [[0.3333, 0.0000]]", 1),
        ("torch = 1  # the name of a number", 0),
        ("def f():\n    return 3  # 4\nf()  # 3", 1),
    ],
)
def test_claims_are_found_and_checked(code: str, claims: int) -> None:
    assert run("page", f"words\n```python\n{code}\n```\n") == claims


@pytest.mark.parametrize(
    "code",
    ["2 + 2  # 5", "[0.5, 0.25]  # ≈ [0.5, 0.26]", "print(1)  # 2", "[1, 2]  # ≈ [1]", "'a'  # 'b'", "True  # False"],
)
def test_a_claim_that_is_false_is_seen(code: str) -> None:
    with pytest.raises(AssertionError, match=r"page:3: .* is claimed; got"):
        run("page", f"words\n```python\n{code}\n```\n")


def test_what_stands_after_a_snippet_is_what_its_last_line_prints() -> None:
    page = "```python\nprint('a')\nprint('b c\\nd')\n```\n\n    b c\n    d\n\nwords\n"
    assert run("page", page) == 1
    with pytest.raises(AssertionError, match="page:2: what stands after it is not what it prints"):
        run("page", page.replace("    d", "    e"))


def test_blocks_share_their_pages_names_and_other_languages_are_left_alone() -> None:
    run("page", "```python\na = 1\n```\n```sh\nrm -rf /\n```\n- in a list\n  ```python\n  a + 1  # 2\n  ```\n")
