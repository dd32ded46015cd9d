"""The page as a file: one piece, nothing fetched, small enough, and nothing in it is taken for markup."""

import json
import re
from importlib.resources import files

import pytest
import torch

import regard
from regard.tracing.derivation import Derivation
from regard.tracing.render.html import PARTS, fitting, html, inlined, script, style
from tests.tracing.render.samples import attention


def data(page: str) -> str:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    return found[1]


def test_the_page_holds_the_derivation_itself() -> None:
    assert Derivation.from_json(data(attention().html())) == attention()


def test_nothing_is_fetched() -> None:
    page = attention().html()
    assert "http://" not in page
    assert "https://" not in page
    assert "default-src 'none'" in page


def test_text_that_would_end_the_script_does_not() -> None:
    bad = "</script><script>alert(1)</script><!--"
    derivation = attention().with_axes({"A": ((bad, "b", "c"), None)})
    page = html(derivation, title=bad)
    assert page.count("</script>") == 2
    assert "alert(1)</script><!--" not in page
    assert Derivation.from_json(data(page))["A"].axes[0] == (bad, "b", "c")
    assert json.loads(inlined(json.dumps(bad + "\u2028"))) == bad + "\u2028"


def test_the_viewer_has_every_file_of_its_folder_and_leaves_one_name_behind() -> None:
    names = {each.name for each in (files("regard.tracing.render") / "page").iterdir()}
    assert names == {f"{part}.js" for part in PARTS} | {"viewer.css"}
    assert script().startswith("const mountDerivation = (() => {")
    assert style().count(".rg") > 50


def test_a_trace_of_two_layers_of_width_64_on_20_tokens_is_a_page_under_5_megabytes() -> None:
    layer = torch.nn.TransformerEncoderLayer(64, 4, 256, batch_first=True)
    layers = torch.nn.TransformerEncoder(layer, 2)
    model = torch.nn.Sequential(torch.nn.Embedding(500, 64), layers, torch.nn.Linear(64, 500)).eval()
    with torch.no_grad(), regard.trace() as tape:
        logits = model(torch.arange(20).reshape(1, 20))
    page = tape.derivation(logits).html()
    assert len(page.encode()) < 5_000_000
    assert all(step.has_values for step in Derivation.from_json(data(page)).fine)


def test_numbers_of_large_steps_stay_out_on_request() -> None:
    small = Derivation.from_json(data(attention(20, 20).html(largest=100)))
    assert not small["Q"].has_values
    assert len(attention(20, 20).html(largest=100)) < len(attention(20, 20).html())


def test_a_page_holds_so_many_numbers_and_leaves_out_the_largest_steps_first() -> None:
    derivation = attention(20, 30)
    sizes = sorted(step.size for step in derivation.fine if step.held is not None)
    assert fitting(derivation, sum(sizes)) == max(sizes)
    assert fitting(derivation, sum(sizes) - 1) < max(sizes)
    assert fitting(derivation, 0) == 0
    assert sum(size for size in sizes if size <= fitting(derivation, 3000)) <= 3000


def test_digits_are_checked() -> None:
    with pytest.raises(ValueError, match="digits: expected a whole number from 2 to 6; got 1"):
        attention().html(digits=1)
