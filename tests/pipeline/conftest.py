"""One small translator for all tests of a run."""

from pathlib import Path

import pytest

from regard.pipeline.model import Pipeline, load
from tests.pipeline.toy import folder_of


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return folder_of(tmp_path_factory.mktemp("models") / "en-es-de", steps=400, languages=("es", "de"))


@pytest.fixture(scope="session")
def model(folder: Path) -> Pipeline:
    return load(folder)
