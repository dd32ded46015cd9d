"""The translator that comes with the package: taken where no model is named, run without torch, as good as it says."""

import re
import subprocess
import sys
import zipfile
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from regard import builtin
from regard.cli import main
from regard.cli.opening import translator
from regard.models.folder import rewritten
from regard.models.reading import read_model_json
from regard.pipeline.fast.engine import Fast
from regard.pipeline.model import Pipeline, load
from regard.support.errors import Misuse
from tests.pipeline.toy import folder_of

SHIPPED = builtin.translator()
shipped = pytest.mark.skipif(SHIPPED is None, reason="this checkout has no translator in src/regard/builtin")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return folder_of(tmp_path_factory.mktemp("builtin") / "model", steps=200, languages=("es", "de"))


@pytest.fixture(scope="module")
def small(whole: Path) -> Path:
    rewritten(whole, whole.parent / "small", "int8")
    return whole.parent / "small"


@pytest.fixture
def own(small: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """As if it were the package's."""
    monkeypatch.setattr(builtin, "TRANSLATOR", small)
    return small


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as left:
        main(list(arguments))
    return int(left.value.code or 0)


@pytest.mark.parametrize("engine", ["auto", "pytorch"])
def test_it_translates_where_no_model_is_named(own: Path, whole: Path, engine: str, capsys: Any) -> None:
    assert run("translate", "one two.", "--to", "es", "--engine", engine) == 0
    assert capsys.readouterr().out.strip() == load(whole).translate("one two.", to="es")[0].text == "uno dos."


def test_without_one_a_model_must_be_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: Any) -> None:
    monkeypatch.setattr(builtin, "TRANSLATOR", tmp_path)
    assert run("translate", "one.", "--to", "es") == 2
    said = "name a model's folder with --model FOLDER: this build of regard comes without a translator"
    assert capsys.readouterr().err.strip() == f"regard: {said}"
    assert run("serve") == 2
    assert "this build of regard comes without a translator" in capsys.readouterr().err


def test_each_model_is_run_by_the_engine_that_suits_it(own: Path, whole: Path) -> None:
    pytest.importorskip("ctranslate2", reason="CTranslate2 is not installed")
    assert isinstance(translator(None, precision="auto"), Fast)
    assert isinstance(translator(str(whole), precision="auto"), Pipeline)
    assert isinstance(translator(str(whole), precision="auto", engine="ctranslate2"), Fast)
    for asked in ({"precision": "float32"}, {"engine": "pytorch"}, {"pytorch": "it has no groups"}):
        assert isinstance(translator(None, **({"precision": "auto"} | asked)), Pipeline)
    with pytest.raises(Misuse, match="--engine ctranslate2: PyTorch alone does this: it has no groups"):
        translator(None, engine="ctranslate2", pytorch="it has no groups")
    with pytest.raises(Misuse, match="unknown engine 'onnx'"):
        translator(None, engine="onnx")


def test_what_one_engine_does_not_do_the_other_does(own: Path, capsys: Any) -> None:
    assert run("translate", "one two.", "--to", "de", "--alignment", "--format", "tsv") == 0
    assert re.fullmatch(r"1\t1\t-\d\.\d+\teins zwei\.\t(\d-\d ?)+\n", capsys.readouterr().out)


def test_where_the_other_engine_is_there_no_torch_is_read(small: Path) -> None:
    pytest.importorskip("ctranslate2", reason="CTranslate2 is not installed")
    code = (
        "import atexit, sys; from regard.cli import main; atexit.register(lambda: print('torch' in sys.modules)); "
        f"main(['translate', 'one two.', '--model', {str(small)!r}, '--to', 'es'])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.stderr, done.stdout) == ("", "uno dos.\nFalse\n")


RIGHT = {
    ("Let's go", "es"): {"vamos", "vámonos", "vayamos"},
    ("I go to school.", "bn"): {"আমি স্কুলে যাই", "আমি বিদ্যালয়ে যাই"},
    ("The black cat ate the mouse.", "fr"): {"le chat noir a mangé la souris", "le chat noir mangea la souris"},
    ("The black cat ate the mouse.", "es"): {
        "el gato negro se comió el ratón", "el gato negro comió el ratón", "el gato negro se comió al ratón",
    },
    ("The black cat ate the mouse.", "de"): {
        "die schwarze katze hat die maus gefressen", "die schwarze katze fraß die maus",
        "die schwarze katze aß die maus", "die schwarze katze hat die maus gegessen",
    },
    ("The black cat ate the mouse.", "it"): {
        "il gatto nero ha mangiato il topo", "il gatto nero mangiò il topo", "il gatto nero si è mangiato il topo",
    },
}  # fmt: skip
"""Sentences of the lecture, and what is right; none was added to what it was trained on."""


@shipped
@pytest.mark.parametrize(("text", "to"), RIGHT, ids=lambda each: str(each)[:16])
def test_the_sentences_of_the_lecture_come_out_right(text: str, to: str) -> None:
    assert SHIPPED is not None
    model = translator(None, precision="auto", threads=1)
    said = model.translate(text, to=to)[0].text.casefold().rstrip(".!।").strip("¡ ")
    assert said in {each.casefold() for each in RIGHT[text, to]}


@shipped
def test_its_card_tells_its_source_its_licence_and_how_good_each_direction_is() -> None:
    assert SHIPPED is not None
    card = (SHIPPED / "README.md").read_text(encoding="utf-8")
    for said in ("https://tatoeba.org", "CC BY 2.0 FR", "Hindi and Bengali are weak"):
        assert said in card
    pairs = read_model_json(SHIPPED)["about"]["pairs"]
    assert set(pairs) == {
        each for code in ("es", "fr", "de", "it", "hi", "bn") for each in (f"en-{code}", f"{code}-en")
    }
    assert len(re.findall(r"^\| \w+ → \w+ \| [\d,]+ \| [\d.]+ \| [\d.]+ \|$", card, re.MULTILINE)) == len(pairs)


@shipped
def test_it_takes_no_more_of_a_wheel_than_it_may() -> None:
    assert SHIPPED is not None
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as wheel:
        for path in SHIPPED.iterdir():
            wheel.write(path)
    assert buffer.tell() <= 25_000_000
