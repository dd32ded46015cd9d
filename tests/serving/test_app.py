"""The server's paths: what they answer, what they refuse, and that one request never takes others with it."""

import json
import re
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient

from regard.pipeline.model import Pipeline
from regard.pipeline.results import Result
from regard.serving.app import make
from regard.serving.directions import Directions
from regard.serving.settings import ServerSettings
from regard.serving.starting import shared
from regard.serving.translating import Translator
from tests.pipeline.toy import sentence
from tests.serving.conftest import client_of

ASKED = {"q": "one two.", "source": "en", "target": "es"}


def test_a_text_is_translated_however_it_is_sent(client: TestClient, model: Pipeline) -> None:
    truth = model.translate("one two.", to="es")[0].text
    answers = [
        client.post("/translate", json=ASKED),
        client.post("/translate", data=ASKED),
        client.post("/translate", params=ASKED),
        client.post("/translate?source=en", json={"q": "one two.", "target": "es"}),
    ]
    assert [(each.status_code, each.json()) for each in answers] == [(200, {"translatedText": truth})] * 4


def test_a_list_gives_a_list_in_its_order(client: TestClient, model: Pipeline) -> None:
    texts = [sentence("en", [n, (n * 3) % 10]) for n in range(10)] + ["", "  \n"]
    found = client.post("/translate", json={**ASKED, "q": texts}).json()["translatedText"]
    assert found[:10] == [each.text for each in model.translate(texts[:10], to="es")]
    assert found[10:] == ["", "  \n"]
    form = client.post("/translate", data={**ASKED, "q": texts[:2]}).json()["translatedText"]
    assert form == found[:2]


def test_lines_and_spaces_between_sentences_stay(client: TestClient, model: Pipeline) -> None:
    first, second = (model.translate(text, to="es")[0].text for text in ("one two.", "three."))
    found = client.post("/translate", json={**ASKED, "q": " one two. \n  three.\n\n one two.\n"}).json()
    assert found["translatedText"] == f" {first} \n  {second}\n\n {first}\n"


def test_alternatives_come_only_when_asked_for(client: TestClient, model: Pipeline) -> None:
    assert "alternatives" not in client.post("/translate", json=ASKED).json()
    found = client.post("/translate", json={**ASKED, "alternatives": 2}).json()
    truth = [each.text for each in model.translate("one two.", to="es", nbest=3, beam=5)[0].all]
    assert [found["translatedText"], *found["alternatives"]] == list(dict.fromkeys(truth))


def test_a_language_is_detected_where_none_is_said() -> None:
    class Echo:
        tokenizers: dict[str, Any] = {}  # noqa: RUF012 - an engine has some
        about = {"pairs": ["en-es", "es-en", "en-de", "de-en"]}  # noqa: RUF012
        folder = None

        def translate(self, texts: Sequence[str], **asked: Any) -> list[Result]:
            return [Result(text, text.upper()) for text in texts]

    from regard.builtin import detector

    engine: Any = Echo()
    with TestClient(make(Translator(engine, ServerSettings(), detector()))) as client:
        found = client.post(
            "/translate", json={"q": ["¿Dónde está mi casa?", "Wo ist mein Haus?"], "source": "auto", "target": "en"}
        )
        told = found.json()["detectedLanguage"]
        assert [each["language"] for each in told] == ["es", "de"]
        assert all(50 < each["confidence"] <= 100 for each in told)
        # From German to Spanish there is no pair: it goes by way of English.
        assert client.post("/translate", json={"q": "ja", "source": "de", "target": "es"}).json() == {
            "translatedText": "JA"
        }
        assert {each["code"]: each["targets"] for each in client.get("/languages").json()} == {
            "en": ["es", "de"], "es": ["en", "de"], "de": ["en", "es"],
        }  # fmt: skip
        first = client.post("/detect", json={"q": "Where is my house?"}).json()[0]
        assert first["language"] == "en"
        assert client.post("/detect", json={"q": "1234 !?"}).json() == [{"confidence": 0, "language": "en"}]


def test_languages_that_are_only_translated_into_are_listed_too(client: TestClient) -> None:
    listed = client.get("/languages").json()
    assert [(each["code"], each["name"], each["targets"]) for each in listed] == [
        ("en", "English", ["es", "de"]), ("es", "Spanish", []), ("de", "German", []),
    ]  # fmt: skip
    for code in ("es", "de"):  # and from them nothing is translated
        answer = client.post("/translate", json={**ASKED, "source": code, "target": "en"})
        assert (answer.status_code, answer.json()) == (400, {"error": f"{code} is not supported"})


def test_a_sentence_too_long_for_the_model_is_cut_and_that_is_said(client: TestClient) -> None:
    long = "one two three four five six seven, " * 120 + "one."
    texts = ["one two.", long]
    found = client.post("/translate", json={**ASKED, "q": texts}).json()
    assert found["translatedText"][0] == "uno dos."
    assert len(found["translatedText"][1].split()) > 100
    assert found["remarks"][0] == []
    [remark] = found["remarks"][1]
    assert re.fullmatch(r"a sentence of more than 512 tokens \('one two .*…'\) was cut into \d+", remark)
    assert client.post("/translate", json={**ASKED, "q": long}).json()["remarks"] == [remark]
    assert "remarks" not in client.post("/translate", json=ASKED).json()


def test_one_text_of_many_that_cannot_be_translated_is_named(model: Pipeline) -> None:
    with client_of(model, characters=200_000) as client:
        answer = client.post("/translate", json={**ASKED, "q": ["one.", "x" * 60_000]})
    assert answer.status_code == 400
    assert answer.json()["error"].startswith("Invalid request: text 2 of 2: a sentence of 60,000 characters ('xxx")


def test_a_head_alone_is_answered_wherever_the_whole_is(client: TestClient) -> None:
    for path in ("/", "/health", "/languages", "/frontend/settings", "/metrics", "/docs"):
        head, whole = client.head(path), client.get(path)
        assert (head.status_code, head.content) == (200, b"")
        assert head.headers["content-type"] == whole.headers["content-type"]
        if path != "/metrics":
            assert head.headers["content-length"] == whole.headers["content-length"]
    assert client.head("/translate").status_code == 405
    assert client.head("/nothing").status_code == 404


REFUSED = {
    "no text": ({"source": "en", "target": "es"}, 400, "Invalid request: missing q parameter"),
    "empty text": ({**ASKED, "q": ""}, 400, "Invalid request: missing q parameter"),
    "no source": ({"q": "x", "target": "es"}, 400, "Invalid request: missing source parameter"),
    "no target": ({"q": "x", "source": "en"}, 400, "Invalid request: missing target parameter"),
    "unknown source": ({**ASKED, "source": "zz"}, 400, "zz is not supported"),
    "unknown target": ({**ASKED, "target": "zz"}, 400, "zz is not supported"),
    "too long": ({**ASKED, "q": "x" * 5001}, 400, "Invalid request: request (5001) exceeds text limit (5000)"),
    "too many": (
        {**ASKED, "q": ["x"] * 101},
        400,
        "Invalid request: 101 texts, and at most 100 may be asked for at once",
    ),
    "no text in the list": ({**ASKED, "q": ["x", 3]}, 400, "Invalid request: q is neither text nor a list of texts"),
    "format": ({**ASKED, "format": "pdf"}, 400, "pdf format is not supported"),
    "alternatives": ({**ASKED, "alternatives": "many"}, 400, "Invalid request: alternatives is not a number"),
    "too many alternatives": ({**ASKED, "alternatives": 9}, 400, "Invalid request: alternatives is at most 4"),
    "source that is no text": ({**ASKED, "source": ["en"]}, 400, "Invalid request: source is not text"),
}


@pytest.mark.parametrize(("asked", "status", "message"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_answered_is_said(client: TestClient, asked: dict[str, Any], status: int, message: str) -> None:
    answer = client.post("/translate", json=asked)
    assert (answer.status_code, answer.json()) == (status, {"error": message})


def test_bodies_that_cannot_be_read_are_refused(client: TestClient) -> None:
    def send(body: bytes, kind: str = "application/json") -> tuple[int, str]:
        answer = client.post("/translate", content=body, headers={"content-type": kind})
        return answer.status_code, answer.json()["error"]

    assert send(b"{") == (400, "Invalid JSON format")
    assert send(b"[1]") == (400, "Invalid JSON format")
    assert send(b"[" * 100_000) == (400, "Invalid JSON format")
    assert send(b'"\xff"') == (400, "Invalid request: the body is not UTF-8")
    assert send(b"x", "multipart/form-data; boundary=x")[0] == 415
    assert send(b" " * 2_000_000) == (413, "Invalid request: the body is larger than 1,048,576 bytes")
    assert client.get("/nothing").json() == {"error": "Not Found"}
    assert client.get("/translate").status_code == 405


def test_parameters_that_are_not_utf_8_are_refused(client: TestClient) -> None:
    for path, body in (("/translate", b"q=%ff%fe&source=en&target=es"), ("/translate?source=%FF&target=es", b"q=one")):
        kind = {"content-type": "application/x-www-form-urlencoded"}
        answer = client.post(path, content=body, headers=kind)
        assert (answer.status_code, answer.json()) == (400, {"error": "Invalid request: a parameter is not UTF-8"})


def test_what_is_null_or_empty_is_as_if_it_were_left_out(client: TestClient) -> None:
    for more in ({"format": ""}, {"format": None}, {"alternatives": None}, {"alternatives": ""}):
        assert client.post("/translate", json={**ASKED, **more}).status_code == 200


def test_a_request_larger_than_the_queue_is_answered_where_nothing_waits(model: Pipeline) -> None:
    with client_of(model, waiting=3) as client:
        answer = client.post("/translate", json={**ASKED, "q": "One.\n" * 10})
    assert answer.status_code == 200


def test_half_a_character_does_no_harm(client: TestClient) -> None:
    answer = client.post("/translate", content=b'{"q": "one \\ud83d two.", "source": "en", "target": "es"}')
    assert answer.status_code == 200


def test_keys_are_needed_where_there_are_some(model: Pipeline) -> None:
    with client_of(model, api_keys=("good", "other")) as client:

        def send(**more: Any) -> tuple[int, dict[str, Any]]:
            answer = client.post("/translate", json={**ASKED, **more})
            return answer.status_code, answer.json()

        assert send() == (403, {"error": "Please contact the server operator to get an API key"})
        assert send(api_key="bad") == (403, {"error": "Invalid API key"})
        assert send(api_key="goo") == (403, {"error": "Invalid API key"})
        assert send(api_key="good")[0] == send(api_key="other")[0] == 200
        assert client.post("/translate", json=ASKED, headers={"Authorization": "Bearer good"}).status_code == 200
        assert client.get("/health").json() == {"status": "ok"}
        told = client.get("/frontend/settings").json()
        assert told["keyRequired"] is True
        assert told["apiKeys"] is True


def test_so_many_a_minute_and_no_more(model: Pipeline) -> None:
    with client_of(model, per_minute=3) as client:
        found = [client.post("/detect", json={"q": "one"}) for _ in range(4)]
        assert [each.status_code for each in found] == [200, 200, 200, 429]
        assert found[3].json() == {"error": "Slowdown: 3 per 1 minute"}
        assert 1 <= int(found[3].headers["retry-after"]) <= 60
        assert client.get("/health").status_code == 200


def test_pages_elsewhere_may_ask_only_when_they_are_named(model: Pipeline, client: TestClient) -> None:
    origin = {"Origin": "https://elsewhere.example"}
    assert "access-control-allow-origin" not in client.get("/languages", headers=origin).headers
    with client_of(model, origins=("https://elsewhere.example",)) as open_client:
        found = open_client.get("/languages", headers=origin).headers
        assert found["access-control-allow-origin"] == "https://elsewhere.example"


class Slow:
    """An engine in whose place a test can stand."""

    tokenizers: dict[str, Any] = {}  # noqa: RUF012 - an engine has some
    about = {"source": "en", "target": "es"}  # noqa: RUF012
    folder = None

    def __init__(self, seconds: float = 0.0, broken: str = "") -> None:
        self.seconds, self.broken, self.batches = seconds, broken, list[int]()

    def translate(self, texts: Sequence[str], **asked: Any) -> list[Result]:
        import time

        self.batches.append(len(texts))
        time.sleep(self.seconds)
        if self.broken and any(self.broken in text for text in texts):
            raise ValueError("the weights are not finite")
        return [Result(text, text.upper()) for text in texts]


def served(engine: Any, **settings: Any) -> TestClient:
    return TestClient(make(Translator(engine, ServerSettings().changed(**settings))))


def together(client: TestClient, texts: Sequence[str]) -> list[tuple[int, dict[str, Any]]]:
    """All asked for at the same time."""

    def ask(text: str) -> tuple[int, dict[str, Any]]:
        answer = client.post("/translate", json={**ASKED, "q": text})
        return answer.status_code, answer.json()

    with ThreadPoolExecutor(len(texts)) as threads:
        return list(threads.map(ask, texts))


def test_requests_that_come_together_are_translated_together() -> None:
    engine = Slow(seconds=0.05)
    with served(engine, gather=50) as client:
        found = together(client, [f"text {n}." for n in range(12)])
    assert found == [(200, {"translatedText": f"TEXT {n}."}) for n in range(12)]
    assert sum(engine.batches) == 12
    assert len(engine.batches) < 8


def test_several_batches_are_searched_at_the_same_time_where_that_is_asked_for() -> None:
    both = threading.Barrier(2, timeout=30)  # breaks where only one comes

    class Together(Slow):
        def translate(self, texts: Sequence[str], **asked: Any) -> list[Result]:
            both.wait()
            return super().translate(texts, **asked)

    engine: Any = Together()
    app = make(Translator(engine, ServerSettings(batch=1), side_by_side=2))
    with TestClient(app) as client:
        assert together(client, ["one.", "two."]) == [(200, {"translatedText": each}) for each in ("ONE.", "TWO.")]


@pytest.mark.parametrize(("threads", "found"), [(1, (1, 1)), (2, (2, 1)), (8, (8, 1)), (16, (8, 2)), (20, (8, 2))])
def test_threads_are_shared_among_searches(threads: int, found: tuple[int, int]) -> None:
    assert shared(threads) == found


def test_a_request_that_fails_takes_no_other_with_it(caplog: pytest.LogCaptureFixture) -> None:
    engine = Slow(seconds=0.05, broken="bad")
    with served(engine, gather=50) as client:
        found = together(client, ["one.", "bad.", "two."])
    assert found[0] == (200, {"translatedText": "ONE."})
    assert found[1] == (500, {"error": "This request failed here; others go on"})
    assert found[2] == (200, {"translatedText": "TWO."})
    assert "the weights are not finite" in caplog.text


def test_a_full_queue_asks_to_come_back() -> None:
    with served(Slow(seconds=0.3), waiting=4, batch=1) as client:
        found = together(client, [f"text {n}." for n in range(12)])
        later = client.post("/translate", json=ASKED)
    assert {status for status, _ in found} == {200, 503}
    assert (503, {"error": "The server is busy: too many sentences are waiting to be translated"}) in found
    assert later.status_code == 200


def test_a_request_that_takes_too_long_is_let_go() -> None:
    with served(Slow(seconds=0.6), seconds=0.2) as client:
        answer = client.post("/translate", json=ASKED)
    assert (answer.status_code, answer.json()) == (503, {"error": "The request took longer than 0.2 seconds"})
    assert answer.headers["retry-after"] == "5"


def test_one_client_has_so_many_requests_open() -> None:
    with served(Slow(seconds=0.3), at_once=2) as client:
        found = together(client, [f"text {n}." for n in range(6)])
        assert {status for status, _ in found} == {200, 429}
        assert client.post("/translate", json=ASKED).status_code == 200


def test_an_explanation_tells_where_words_looked_and_opens_every_number(client: TestClient, model: Pipeline) -> None:
    told = client.post("/explain", json=ASKED).json()
    assert told["translatedText"] == model.translate("one two.", to="es")[0].text
    for step in told["steps"]:
        shares = [each["probability"] for each in step["candidates"]]
        assert shares == sorted(shares, reverse=True)
        assert step["probability"] == pytest.approx(shares[step["rank"] - 1], abs=1e-5)
    views = told["alignment"]["weights"]
    layers, heads = told["alignment"]["layers"], told["alignment"]["heads"]
    assert len(views) == 1 + layers + layers * heads
    single = [np.array(each["rows"]) for each in views if each["head"] is not None]
    np.testing.assert_allclose(np.mean(single, 0), views[0]["rows"], atol=1e-3)
    np.testing.assert_allclose(np.array(views[0]["rows"]).sum(1), 1, atol=1e-2)

    derivation = client.get(f"/explain/{told['id']}/1").json()
    steps = {step["name"]: step for step in derivation["steps"]}
    target = derivation["steps"][derivation["target"]]
    found = client.post(f"/explain/{told['id']}/1/cells", json={"name": target["name"], "cells": list(range(5))}).json()
    assert len(found["values"]) == 5
    assert found["reach"] == pytest.approx(told["steps"][0]["candidates"][0]["probability"], abs=1e-5)
    large = next(step for step in steps.values() if step["values"] is None and np.prod(step["shape"]) > 2000)
    values = client.post(f"/explain/{told['id']}/1/cells", json={"name": large["name"], "cells": [0, 1]}).json()[
        "values"
    ]
    assert all(isinstance(each, float) for each in values)


def test_what_of_an_explanation_is_not_there_is_said(client: TestClient) -> None:
    told = client.post("/explain", json=ASKED).json()
    assert client.get(f"/explain/{told['id']}/99").status_code == 404
    assert client.get("/explain/nothing/1").json() == {"error": "this explanation is no longer kept; ask for it again"}
    assert client.get(f"/explain/{told['id']}/x").status_code == 400
    ask = f"/explain/{told['id']}/1/cells"
    assert client.post(ask, json={"name": "nothing", "cells": [0]}).status_code == 404
    assert client.post(ask, json={"name": "p", "cells": [10**9]}).status_code == 400
    assert client.post(ask, json={"name": "p", "cells": "all"}).status_code == 400
    two = client.post("/explain", json={**ASKED, "q": "One two. Three four.\nFive."}).json()
    assert (two["sentence"], two["sentences"]) == ("One two.", 3)
    long = client.post("/explain", json={**ASKED, "q": "one " * 100})
    assert long.json() == {"error": "Invalid request: request (399) exceeds text limit (300)"}


def test_explanations_are_bounded_in_number_and_age(model: Pipeline) -> None:
    with client_of(model, explanations=2) as client:
        ids = [client.post("/explain", json=ASKED).json()["id"] for _ in range(3)]
        assert [client.get(f"/explain/{each}/1").status_code for each in ids] == [404, 200, 200]
        server = client.app.state.server  # type: ignore[attr-defined]
        now = server.explanations.clock()
        server.explanations.clock = lambda: now + 31 * 60
        assert client.get(f"/explain/{ids[2]}/1").status_code == 404
        assert len(server.explanations) == 0


def test_an_exported_model_explains_nothing_and_says_so() -> None:
    with served(Slow()) as client:
        answer = client.post("/explain", json=ASKED)
    assert (answer.status_code, answer.json()) == (
        404,
        {"error": "This model was exported, and exported models explain nothing"},
    )


def test_problems_are_worked_and_marked(client: TestClient, tmp_path: Path) -> None:
    shipped = {each["name"]: each for each in client.get("/problems").json()}
    assert len(shipped) >= 24
    found = client.post("/work", json={"problem": shipped["self-attention"]["text"]}).json()
    assert found["title"] == shipped["self-attention"]["title"]
    verdicts = {step["name"]: step["verdict"] for step in found["marks"]["steps"]}
    assert verdicts["E"] == "wrong"
    assert found["derivation"]["regard"] == "derivation"
    plain = client.post("/work", json={"problem": "title: T\ngiven: {x: 2}\nsteps: {y: x * 3}\n"}).json()
    assert plain["marks"] is None
    (tmp_path / "p.yaml").write_text("title: T\ngiven: {x: 2}\nsteps: {y: x * 3}\n")
    for wrong, said in (
        ("title: T\n", "there is no `given`"),
        (f"problem: {tmp_path}/p.yaml\n", "unknown shipped problem"),
        ("given: {x: 2}\nsteps: {y: x * z}\n", "problem:2:16: step y, in `z`: nothing is called 'z'"),
    ):
        answer = client.post("/work", json={"problem": wrong})
        assert answer.status_code == 400
        assert said in answer.json()["error"]


def test_counts_are_told_for_prometheus(client: TestClient) -> None:
    client.post("/translate", json={**ASKED, "q": ["one.", "two."]})
    client.post("/translate", json={})
    text = client.get("/metrics").text
    assert 'regard_requests_total{path="/translate",status="200"} 1' in text
    assert 'regard_requests_total{path="/translate",status="400"} 1' in text
    assert "regard_texts_total 2" in text
    assert "regard_characters_total 8" in text
    assert re.search(r'regard_request_seconds_bucket\{path="/translate",le="\+Inf"\} 2', text)
    assert "regard_waiting_texts 0" in text


def test_what_the_schema_says_of_a_path_is_what_it_takes(client: TestClient) -> None:
    schema = client.get("/openapi.json").json()
    assert set(schema["paths"]) >= {"/translate", "/detect", "/languages", "/explain", "/health", "/frontend/settings"}
    body = schema["paths"]["/translate"]["post"]["requestBody"]["content"]
    assert set(body) == {"application/json", "application/x-www-form-urlencoded"}
    assert body["application/json"]["schema"]["required"] == ["q", "source", "target"]
    assert "422" not in json.dumps(schema)


def test_what_goes_by_way_of_a_third_language_is_not_explained_and_the_answer_names_it(model: Pipeline) -> None:
    with client_of(model) as client:
        client.app.state.server.translator.directions = Directions([("es", "en"), ("en", "de")])  # type: ignore[attr-defined]
        answer = client.post("/explain", json={"q": "uno.", "source": "es", "target": "de"})
        assert answer.status_code == 400
        assert answer.json()["error"] == "Spanish to German goes by way of English: one step alone can be explained"
        answer = client.post("/explain", json={"q": "uno.", "source": "es", "target": "es"})
        assert answer.status_code == 400
        assert answer.json()["error"] == "Spanish to Spanish: there is nothing to translate, and nothing to explain"


def test_memory_that_searches_freed_is_given_back_and_nothing_is_done_while_nothing_is_asked(
    model: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[float] = []
    monkeypatch.setattr("regard.serving.app.TIDY", 0.05)
    monkeypatch.setattr("regard.serving.app.give_back_freed_memory", lambda: given.append(time.monotonic()))
    with client_of(model) as client:
        time.sleep(0.3)
        assert given == []
        for count in (1, 2):
            assert client.post("/translate", json={"q": "one.", "source": "en", "target": "es"}).status_code == 200
            until = time.monotonic() + 20
            while len(given) < count and time.monotonic() < until:
                time.sleep(0.02)
            time.sleep(0.3)
            assert len(given) == count
