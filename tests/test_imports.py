"""The arrows of docs/architecture.md: a room imports only what lies before it."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import regard

SOURCE = Path(__file__).parents[1] / "src" / "regard"

# Each room may import those before it, and nothing of those after it.
ORDER = [
    "version", "support", "config", "tracing", "attention", "text", "data", "models", "worked", "decoding",
    "evaluation", "training", "pipeline", "builtin", "serving", "cli", "__main__",
]  # fmt: skip

# Narrower than the order says: what a room may take of another, by module or by name.
ONLY = {
    "tracing": {"regard.support"},
    "attention": {"regard.support", "regard.tracing"},
}
NAMES_ATTENTION_TAKES_FROM_TRACING = {"label", "active"}


def room(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imports_of(path: Path) -> list[tuple[str, tuple[str, ...]]]:
    """The modules of regard that a file imports, at any depth of the file, each with the names taken."""
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively; the project names modules in full"
            if (node.module or "").split(".")[0] == "regard":
                found.append((node.module or "", tuple(alias.name for alias in node.names)))
        elif isinstance(node, ast.Import):
            found += [(alias.name, ()) for alias in node.names if alias.name.split(".")[0] == "regard"]
        elif isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", "")) == "import_module":
            texts = [each.value for each in node.args if isinstance(each, ast.Constant) and isinstance(each.value, str)]
            found += [(text, ()) for text in texts if text.startswith("regard.")]
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "regard":
            found.append(("regard", (node.attr,)))
    return found


def rooms_taken(module: str, names: tuple[str, ...]) -> list[str]:
    """`regard.models.rnn` → models; `from regard import load, tracing` → the rooms that hold the names."""
    parts = module.split(".")
    if len(parts) > 1:
        return [parts[1]]
    homes = {name: regard._HOMES.get(name, f"regard.{name}").split(".")[1] for name in names}
    return [room for room in homes.values() if room in ORDER]


FILES = sorted(path for path in SOURCE.rglob("*.py") if path != SOURCE / "__init__.py")


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_module_imports_only_what_lies_before_it(path: Path) -> None:
    own = room(path)
    assert own in ORDER, f"{own} is a new room: give it a place in ORDER and in docs/architecture.md"
    for module, names in imports_of(path):
        for taken in rooms_taken(module, names):
            assert ORDER.index(taken) <= ORDER.index(own), f"{path.name}: {own} must not import {taken}"
            if own in ONLY and taken != own:
                assert f"regard.{taken}" in ONLY[own], f"{path.name}: {own} takes nothing from {taken}"
        if own == "attention" and module.startswith("regard.tracing"):
            assert names, f"{path.name} takes the whole of {module}"
            assert set(names) <= NAMES_ATTENTION_TAKES_FROM_TRACING, f"{path.name} takes {names} from tracing"


def test_an_import_against_the_order_would_be_seen(tmp_path: Path) -> None:
    file = tmp_path / "x.py"
    file.write_text(
        "def f():\n    from regard.models.rnn import Cell\n    import regard.serving.app\n"
        "    from regard import load, train\n"
        "    import_module('regard.data.shards')\n    regard.trace()\n"
    )
    found = sorted(room for each in imports_of(file) for room in rooms_taken(*each))
    assert found == ["data", "models", "pipeline", "serving", "tracing", "training"]


def test_importing_regard_is_quick_and_leaves_torch_alone() -> None:
    code = (
        "import sys, time; t = time.perf_counter(); import regard; t = time.perf_counter() - t;"
        "print(t, 'torch' in sys.modules, 'numpy' in sys.modules)"
    )
    runs = [subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True) for _ in range(3)]
    seconds, torch, numpy = min(run.stdout.split() for run in runs)
    assert (torch, numpy) == ("False", "False")
    assert float(seconds) < 0.2
