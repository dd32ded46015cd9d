"""HTML is translated between its tags, and none of them is lost."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.serving.markup import cut_html

CASES = {
    "<p>One <b>two</b> three.</p>": (["One two three."], "<p>ONE <b>TWO</b> THREE.</p>"),
    "<h1>Title</h1>\n<p> Text </p>": (["Title", "Text"], "<h1>TITLE</h1>\n<p> TEXT </p>"),
    "no tags & <br/> A&amp;B": (["no tags &", "A&B"], "NO TAGS &amp; <br/> A&amp;B"),
    "<script>var x = '<p>not me</p>';</script>me": (["me"], "<script>var x = '<p>not me</p>';</script>ME"),
    "<!-- <p>a note</p> -->text": (["text"], "<!-- <p>a note</p> -->TEXT"),
    '<a href="x>y" title="a">link</a>': (["link"], '<a href="x>y" title="a">LINK</a>'),
    "<p title='a > b'>one.</p>": (["one."], "<p title='a > b'>ONE.</p>"),
    '<p title="never closed>one.</p>': (["one."], None),
    "<pre>code stays</pre><p>x</p>": (["x"], "<pre>code stays</pre><p>X</p>"),
    "1 < 2 and 3 > 2": (["1 < 2 and 3 > 2"], "1 &lt; 2 AND 3 &gt; 2"),
    "<p></p>": ([], "<p></p>"),
    "<p><i>all of it</i></p>": (["all of it"], "<p><i>ALL OF IT</i></p>"),
    "one <img src=a> two": (["one  two"], None),
}


@pytest.mark.parametrize(("markup", "expected"), CASES.items(), ids=CASES)
def test_texts_come_out_and_go_back(markup: str, expected: tuple[list[str], str | None]) -> None:
    texts, joined = expected
    cut = cut_html(markup)
    assert cut.texts == texts
    if joined is not None:
        assert cut.joined([text.upper() for text in texts]) == joined


def test_tags_go_to_the_words_as_far_along() -> None:
    cut = cut_html("The <b>black</b> cat <i>sleeps</i>.")
    assert cut.joined(["El gato negro duerme."]) == "El <b>gato</b> negro <i>duerme</i>."


PARTS = ["<p>", "</p>", "<b>", "</b>", "<br>", "word ", "x", " ", "&lt;", "<", "<!--c-->", "<script>", "</script>"]


@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.lists(st.sampled_from(PARTS), max_size=14), st.text("ab ", max_size=8))
def test_every_tag_is_there_once_and_in_its_order(parts: list[str], said: str) -> None:
    markup = "".join(parts)
    cut = cut_html(markup)
    tags = re.compile(r"<!--.*?-->|</?[a-z]+>", re.DOTALL)
    joined = cut.joined([said.strip() or "a"] * len(cut.texts))
    assert tags.findall(joined) == tags.findall(markup)
