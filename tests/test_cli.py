"""The command itself: its version, its help, and how it says that something is wrong."""

import subprocess
import sys
from pathlib import Path

import pytest

from regard import cli
from regard.support.errors import Failure, Misuse
from regard.version import __version__


def regard(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "regard", *arguments], capture_output=True, text=True, check=False)


def test_the_version_is_printed_without_loading_torch() -> None:
    code = (
        "import sys; from regard.cli import main\ntry: main(['--version'])\nfinally: assert 'torch' not in sys.modules"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (run.stdout, run.returncode) == (f"regard {__version__}\n", 0)


def test_an_unknown_command_is_misuse() -> None:
    run = regard("tranlsate")
    assert run.returncode == 2
    assert "No such command 'tranlsate'" in run.stderr
    assert "Traceback" not in run.stderr


@pytest.mark.parametrize(
    ("error", "status", "said"),
    [
        (Misuse("no such model"), 2, "regard: no such model\n"),
        (Failure("the disk is full"), 1, "regard: the disk is full\n"),
        (
            FileNotFoundError(2, "No such file or directory", "../a.en"),
            1,
            "regard: ../a.en: no such file or directory\n",
        ),
    ],
)
def test_errors_are_one_plain_line(
    error: Exception,
    status: int,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fails(arguments: list[str] | None) -> None:
        raise error

    monkeypatch.setattr(cli, "app", fails)
    with pytest.raises(SystemExit, match=str(status)):
        cli.main([])
    assert capsys.readouterr().err == said


def test_every_module_of_the_package_has_a_docstring_or_is_trivial() -> None:
    for path in (Path(__file__).parents[1] / "src" / "regard").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert text.startswith(('"""', 'r"""')) or len(text.splitlines()) < 6, path
