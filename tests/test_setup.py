"""What a newcomer types first: the make targets, the pip lines of the README, and the pins that both install by."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
LINES = [line.split("#")[0].strip() for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()]
PINS = {canonicalize_name(name): Version(pin) for name, _, pin in (line.partition("==") for line in LINES if line)}
PIP_LINES = re.findall(r"`(pip install [^`]*)`", README)
SETS_UP = [
    r"-m venv --clear NEW$",
    r"NEW/bin/python -m pip install .*-c constraints.txt -e '\.\[test\]'$",
]
"""What must run, in this order, where there is no environment yet."""


def make(*targets: str) -> subprocess.CompletedProcess[str]:
    """What make would run for these, in a folder NEW that is not there."""
    outside = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
    words = ["make", "--dry-run", "VENV=NEW", f"PYTHON={sys.executable}", *targets]
    return subprocess.run(words, cwd=ROOT, env=outside, capture_output=True, text=True)


def admitted(requirement: Requirement) -> bool:
    """Whether the pin of what is required here, if it has one, is of the versions asked for."""
    if requirement.marker is not None and not requirement.marker.evaluate({"extra": ""}):
        return True
    pin = PINS.get(canonicalize_name(requirement.name))
    return pin is None or requirement.specifier.contains(pin, prereleases=True)


@pytest.mark.skipif(shutil.which("make") is None, reason="there is no make here")
@pytest.mark.parametrize(
    ("target", "does"),
    [
        ("setup", []),
        ("run", [r"NEW/bin/regard serve; else NEW/bin/regard work self-attention; fi$"]),
        ("test", [r"^NEW/bin/python -m pytest -n 2"]),
        ("lint", [r"^NEW/bin/ruff check \.$", r"^NEW/bin/ruff format --check \.$", r"^NEW/bin/mypy$"]),
    ],
)
def test_a_make_target_sets_up_and_does_what_it_is_for(target: str, does: list[str]) -> None:
    ran = make(target)
    assert ran.returncode == 0, ran.stderr
    place = 0
    for expected in [*SETS_UP, *does]:
        found = re.compile(expected, re.MULTILINE).search(ran.stdout, place)
        assert found, f"make {target} does not go on with {expected}:\n{ran.stdout}"
        place = found.end()


@pytest.mark.skipif(shutil.which("make") is None, reason="there is no make here")
@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md"])
def test_every_make_target_that_a_page_names_is_there(page: str) -> None:
    named = set(re.findall(r"^ {4}make (\w+)|`make (\w+)", (ROOT / page).read_text(encoding="utf-8"), re.MULTILINE))
    targets = sorted({target for pair in named for target in pair if target})
    assert {"test"} <= set(targets)
    ran = make(*targets)
    assert ran.returncode == 0, ran.stderr


def test_the_readme_installs_in_two_ways_and_names_extras_that_are_there() -> None:
    assert PIP_LINES == ["pip install .", "pip install '.[serve,data]'"]
    named = {each for line in PIP_LINES for extras in re.findall(r"\[([^\]]*)\]", line) for each in extras.split(",")}
    assert named <= set(PROJECT["optional-dependencies"])


@pytest.mark.parametrize("line", PIP_LINES)
def test_a_pip_line_of_the_readme_installs_the_package_with_all_it_comes_with(line: str, tmp_path: Path) -> None:
    """Without the network: its dependencies, which stand here already, are left out, and so is isolation."""
    what = line.removeprefix("pip install ").strip("'")
    offline = ["--no-deps", "--no-index", "--no-build-isolation", "--quiet", "--target", str(tmp_path / "site")]
    subprocess.run([sys.executable, "-m", "pip", "install", *offline, what], cwd=ROOT, check=True, capture_output=True)
    code = "import regard, sys; from regard.cli import main; print(regard.__file__); main(['problems'])"
    paths = {**os.environ, "PYTHONPATH": str(tmp_path / "site")}
    ran = subprocess.run(
        [sys.executable, "-P", "-c", code], cwd=tmp_path, env=paths, capture_output=True, text=True, check=True
    )
    assert ran.stdout.startswith(str(tmp_path / "site"))
    assert "self-attention" in ran.stdout
    assert (tmp_path / "site" / "regard" / "configs" / "quickstart.yaml").is_file()
    assert (tmp_path / "site" / "bin" / "regard").is_file()


def test_every_requirement_of_the_package_is_pinned_within_its_range() -> None:
    extras = PROJECT["optional-dependencies"].values()
    needed = [Requirement(each) for group in (PROJECT["dependencies"], *extras) for each in group]
    for requirement in (each for each in needed if each.name != PROJECT["name"]):
        assert canonicalize_name(requirement.name) in PINS, f"constraints.txt does not pin {requirement.name}"
        assert admitted(requirement), f"constraints.txt pins {requirement.name} outside {requirement}"


def test_the_pins_admit_one_another() -> None:
    checked = 0
    for name in PINS:
        try:
            if version(name) != str(PINS[name]) and Version(version(name)).public != PINS[name].public:
                continue  # another version stands here, and what it asks for says nothing of the one pinned
        except PackageNotFoundError:
            continue
        for requirement in map(Requirement, requires(name) or []):
            checked += 1
            assert admitted(requirement), f"{name} {PINS[name]} asks for {requirement}; pinned is another"
    assert checked > 100


def test_what_pypis_pytorch_asks_for_on_linux_is_what_is_pinned() -> None:
    """Its CPU build, with which this may run, does not say so itself: these are the words of the other one."""
    words = {"2.13.0": ["triton==3.7.1", "cuda-toolkit==13.0.3", "nvidia-cudnn-cu13==9.20.0.48", "cuda-bindings<14"]}
    for each in map(Requirement, words[str(PINS[canonicalize_name("torch")])]):
        assert admitted(each), f"PyTorch asks for {each}"
