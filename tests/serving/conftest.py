"""A toy translator for all tests of the server, and a client of it in the same process."""

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("fastapi", reason="the server's extra is not installed")

from fastapi.testclient import TestClient

from regard.builtin import detector
from regard.pipeline.model import Pipeline, load
from regard.serving.app import make
from regard.serving.settings import ServerSettings
from regard.serving.translating import Translator
from tests.browser import browser  # noqa: F401 - a fixture
from tests.pipeline.toy import folder_of


@pytest.fixture(scope="session")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return folder_of(tmp_path_factory.mktemp("served") / "model", steps=200, languages=("es", "de"))


@pytest.fixture(scope="session")
def model(toy: Path) -> Pipeline:
    return load(toy)


@pytest.fixture
def client(model: Pipeline) -> Iterator[TestClient]:
    with client_of(model) as found:
        yield found


def client_of(model: Pipeline, **settings: object) -> TestClient:
    limits = ServerSettings().changed(**settings)
    return TestClient(make(Translator(model, limits, detector()), lambda: model))
