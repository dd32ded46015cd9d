"""A server that listens: LibreTranslate's own client, generated requests, a signal to stop, and the command."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from regard.builtin import detector
from regard.pipeline.model import Pipeline, load
from regard.serving.app import make
from regard.serving.connections import patient
from regard.serving.settings import ServerSettings
from regard.serving.translating import Translator
from tests.serving.live import Live, live

schemathesis = pytest.importorskip("schemathesis", reason="schemathesis is not installed")


@pytest.fixture(scope="module")
def server(model: Pipeline) -> Iterator[Live]:
    with live(make(Translator(model, ServerSettings(at_once=1000), detector()), lambda: model)) as running:
        yield running


def test_the_client_of_libretranslate_works_unchanged(server: Live, model: Pipeline) -> None:
    client = pytest.importorskip("libretranslatepy").LibreTranslateAPI(server.url + "/")
    assert client.translate("one two three.", "en", "es") == model.translate("one two three.", to="es")[0].text
    assert client.detect("Where is the house?")[0]["language"] == "en"
    assert client.languages()[0] == {"code": "en", "name": "English", "targets": ["es", "de"]}
    assert [each["code"] for each in client.languages()] == ["en", "es", "de"]


def test_no_request_that_the_schema_allows_breaks_the_server(server: Live) -> None:
    schema = schemathesis.openapi.from_url(f"{server.url}/openapi.json")
    operations = [each.ok() for each in schema.get_all_operations()]
    assert len(operations) >= 10
    statuses: Counter[int] = Counter()

    for operation in operations:

        @settings(max_examples=15, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
        @given(case=operation.as_strategy())
        def asked(case: Any) -> None:
            answer = case.call()
            statuses[answer.status_code] += 1
            assert answer.status_code < 500 or answer.status_code == 503, case.as_curl_command()
            if answer.status_code >= 400:
                assert isinstance(answer.json()["error"], str)

        asked()
    assert statuses[200] > 10
    assert statuses[400] > 20


def started(*arguments: str) -> tuple[subprocess.Popen[str], str]:
    """The command, once it answers, and where."""
    process = subprocess.Popen(
        [sys.executable, "-m", "regard", "serve", *arguments, "--port", "0"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert process.stdout is not None
    said = [process.stdout.readline(), process.stdout.readline()]
    url = said[1].split()[1] if len(said[1].split()) > 1 else ""
    until = time.monotonic() + 60
    while time.monotonic() < until and process.poll() is None:
        try:
            with urllib.request.urlopen(f"{url}/health", timeout=5) as answer:
                assert json.load(answer) == {"status": "ok"}
            return process, url
        except OSError:
            time.sleep(0.1)
    process.kill()
    raise AssertionError(f"never answered: {said} {process.communicate()[1]}")


def test_the_command_serves_and_a_signal_ends_it_when_answers_are_out(toy: Path) -> None:
    process, url = started(str(toy))
    try:
        assert url.startswith("http://127.0.0.1:")
        body = json.dumps({"q": ["one two."] * 60, "source": "en", "target": "es"}).encode()
        host, port = url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), timeout=30) as connection:
            head = (
                f"POST /translate HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nConnection: close\r\n"
            )
            connection.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
            time.sleep(0.05)
            process.send_signal(signal.SIGTERM)
            answer = b""
            while part := connection.recv(65536):
                answer += part
        found = json.loads(answer.partition(b"\r\n\r\n")[2])["translatedText"]
        assert len(set(found)) == 1
        assert found[0] == load(toy).translate("one two.", to="es")[0].text
        assert process.wait(30) in (0, -signal.SIGTERM)
    finally:
        process.kill()
        process.communicate()


def answered(connection: socket.socket, seconds: float) -> bytes:
    """All that comes until the other side closes; TimeoutError where it does not."""
    connection.settimeout(seconds)
    found = b""
    while part := connection.recv(65536):
        found += part
    return found


@pytest.mark.parametrize("sent", [b"", b"POST /translate HTTP/1.1\r\nHost: x\r\nX-Slow: "], ids=["nothing", "half"])
def test_a_request_whose_head_never_comes_is_let_go(model: Pipeline, sent: bytes) -> None:
    with live(make(Translator(model, ServerSettings())), http=patient(0.3)) as running:
        with socket.create_connection(("127.0.0.1", running.port)) as connection:
            connection.sendall(sent)
            assert answered(connection, 10) == b""
        with socket.create_connection(("127.0.0.1", running.port)) as connection:
            whole = b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n"
            connection.sendall(whole)
            time.sleep(0.6)  # a head that came in time leaves the connection open
            connection.sendall(whole + sent)
            assert answered(connection, 10).count(b'{"status":"ok"}') == 2


def test_a_server_that_stops_does_not_wait_for_a_request_that_is_half_sent(model: Pipeline) -> None:
    running = Live(make(Translator(model, ServerSettings())), http=patient(), graceful=60)
    with socket.create_connection(("127.0.0.1", running.port)) as connection:
        connection.sendall(b"POST /translate HTTP/1.1\r\nHost: x\r\nContent-Length: 90\r\n\r\n{")
        time.sleep(0.3)
        began = time.monotonic()
        running.stop()
        assert time.monotonic() - began < 15
        assert not running.thread.is_alive()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["no-such-folder"], "no-such-folder: no such folder"),
        (["{toy}", "--engine", "onnx"], "unknown engine 'onnx'"),
        (["{toy}", "--numbers", "int4"], "unknown numbers 'int4'"),
        (["{toy}", "--keys", "{toy}/none.txt"], "none.txt: cannot be read"),
        (["{toy}", "--set", "charactres=3"], "characters"),
        (["{toy}", "--host", "256.1.1.1"], "256.1.1.1:5000 cannot be listened at"),
    ],
)
def test_what_cannot_be_served_is_a_sentence(toy: Path, arguments: list[str], said: str, capsys: Any) -> None:
    from regard.cli import main

    with pytest.raises(SystemExit) as left:
        main(["serve", *(each.replace("{toy}", str(toy)) for each in arguments)])
    assert left.value.code == 2
    assert said in capsys.readouterr().err


def test_a_port_that_is_taken_is_a_sentence(toy: Path, capsys: Any) -> None:
    from regard.cli import main

    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(SystemExit) as left:
            main(["serve", str(toy), "--port", str(port)])
    assert left.value.code == 2
    assert f"127.0.0.1:{port} cannot be listened at: address already in use" in capsys.readouterr().err
