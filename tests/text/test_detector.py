"""Telling languages apart, from a few sentences of each."""

import json
from pathlib import Path

import pytest

from regard.support.errors import Misuse
from regard.text.detector import Detector

TEXTS = {
    "en": [
        "The cat is on the mat.",
        "Where are you going this evening?",
        "I think that he is right.",
        "We were there.",
    ],
    "es": ["El gato está en la alfombra.", "¿Adónde vas esta noche?", "Creo que tiene razón.", "Estábamos allí."],
    "de": ["Die Katze ist auf der Matte.", "Wohin gehst du heute Abend?", "Ich denke, er hat recht.", "Wir waren da."],
    "hi": ["बिल्ली चटाई पर है।", "आज शाम तुम कहाँ जा रहे हो?", "मुझे लगता है कि वह सही है।", "हम वहाँ थे।"],
}
DETECTOR = Detector.learn(TEXTS)


@pytest.mark.parametrize(
    ("text", "language"),
    [("This is the evening.", "en"), ("¿Dónde está la gata?", "es"), ("Ich gehe heute.", "de"), ("वह कहाँ है?", "hi")],
)
def test_a_new_sentence_is_told_by_its_words_and_letters(text: str, language: str) -> None:
    guesses = DETECTOR.detect(text)
    assert guesses[0].language == language
    assert {each.language for each in guesses} == set(TEXTS)
    assert sum(each.confidence for each in guesses) == pytest.approx(1)


@pytest.mark.parametrize("text", ["", "12 + 3 = 15", "你好吗"])
def test_where_there_is_nothing_to_go_by_the_confidence_is_0(text: str) -> None:
    assert {each.confidence for each in DETECTOR.detect(text)} == {0.0}


def test_letters_that_no_language_has_are_taken_off_the_confidence() -> None:
    plain, mixed = DETECTOR.detect("the evening")[0], DETECTOR.detect("the evening 晩上好呀你們好嗎")[0]
    assert mixed.language == "en"
    assert mixed.confidence == pytest.approx(plain.confidence * 10 / 18)


def test_more_text_of_a_language_makes_surer() -> None:
    assert DETECTOR.detect("Ich gehe heute Abend zu der Katze")[0].confidence > DETECTOR.detect("gehen")[0].confidence


def test_capital_letters_change_nothing() -> None:
    assert DETECTOR.detect("WHERE ARE YOU") == DETECTOR.detect("where are you")


def test_a_detector_reads_back_as_it_was_written(tmp_path: Path) -> None:
    DETECTOR.save(tmp_path / "detector.json")
    again = Detector.load(tmp_path / "detector.json")
    assert repr(again) == repr(DETECTOR)
    for text in ("la noche", "Katze", "हम"):
        assert again.detect(text) == DETECTOR.detect(text)


@pytest.mark.parametrize("text", ["no JSON", "{}", '{"format": 1, "languages": ["en"], "pieces": ["a"], "table": []}'])
def test_a_file_that_is_no_detector_is_refused_by_name(tmp_path: Path, text: str) -> None:
    (tmp_path / "d.json").write_text(text)
    with pytest.raises(Misuse, match=r"d\.json: no language detector, or a damaged one"):
        Detector.load(tmp_path / "d.json")


def test_a_file_of_another_format_is_refused(tmp_path: Path) -> None:
    DETECTOR.save(tmp_path / "d.json")
    record = json.loads((tmp_path / "d.json").read_text())
    (tmp_path / "d.json").write_text(json.dumps(record | {"format": 9}))
    with pytest.raises(Misuse, match=r"d\.json: written in format 9, this version reads 1"):
        Detector.load(tmp_path / "d.json")


def test_one_language_or_one_without_letters_cannot_be_learned() -> None:
    with pytest.raises(ValueError, match="expected two languages or more to tell apart; got 1"):
        Detector.learn({"en": ["a"]})
    with pytest.raises(ValueError, match="there are no letters in es"):
        Detector.learn({"en": ["a"], "es": ["1, 2"]})
