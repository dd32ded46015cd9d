"""The pictures of the documentation, drawn anew into docs/pictures.

    python benchmarks/pictures.py                                     the derivation's page alone
    python benchmarks/pictures.py --vectors glove.txt                 and money bank, river bank; apple, phone, orange
    python benchmarks/pictures.py --model models/en-de [--to de]      and what a trained Transformer looks at
    python benchmarks/pictures.py --model models/translator --to fr --font NotoSansDevanagari-Regular.ttf
        --font NotoSansBengali-Regular.ttf                            and where it looks for Hindi and Bengali
    python benchmarks/pictures.py --models models/plain models/bahdanau --data test.en test.de    and scores by length
    python benchmarks/pictures.py --captioner models/captioner --image strip.png

What is not given is left alone, and each picture stands with the command that draws it. The page needs Chromium and the
package playwright, as the tests of the pages do.
"""

import argparse
import shlex
import shutil
import sys
import tempfile
from pathlib import Path

from regard import cli

PICTURES = Path(__file__).parents[1] / "docs" / "pictures"
BANKS = ("money bank grows", "river bank flows")
APPLES = ("apple launched the phone", "apple and orange juice")
TELESCOPE = "the man saw the astronomer with a telescope"
SENTENCE = "I saw a black cat in the garden."


def regard(*arguments: str) -> None:
    """A command as a person types it; one that fails is told, and the others are drawn all the same."""
    print(f"$ regard {shlex.join(arguments)}", flush=True)
    try:
        cli.main(list(arguments))
    except SystemExit as left:
        if left.code:
            print(f"  (exit status {left.code})", file=sys.stderr)


def into(name: str) -> list[str]:
    return ["-o", str(PICTURES / name)]


def of_vectors(file: str) -> None:
    """Static vectors: where they are, and where attention without weights draws them."""
    given = ["--vectors", file, "--title"]
    for name, sentences in (("bank", BANKS), ("apple", APPLES)):
        regard("plot", "words", *sentences, "--no-attention", *given, "static vectors", *into(f"{name}-static.svg"))
        regard("plot", "words", *sentences, *given, "attention without weights", *into(f"{name}-attention.svg"))


def of_model(folder: str, to: list[str], sentence: str) -> None:
    """A trained Transformer: words before and after its encoder, heads, and the alignment."""
    for name, sentences in (("bank", BANKS), ("apple", APPLES)):
        trained = ["--model", folder, "--title", "a trained encoder"]
        regard("plot", "words", *sentences, *trained, *to, *into(f"{name}-trained.svg"))
    regard("plot", "heads", folder, TELESCOPE, "--word", "telescope", "--layer", "-1", *to, *into("telescope.png"))
    regard("plot", "alignment", folder, sentence, *to, *into("alignment.svg"))
    regard("plot", "alignment", folder, sentence, "--every-head", "--layer", "-1", *to, *into("alignment-heads.png"))
    regard("explain", folder, sentence, *to)


def of_scripts(folder: str, fonts: list[str]) -> None:
    """Alignments with Hindi and Bengali, drawn with these fonts."""
    named = [part for font in fonts for part in ("--font", font)]
    for language, sentence in (("hi", "I want to read this book."), ("bn", "I want to read this book.")):
        regard("plot", "alignment", folder, sentence, "--to", language, *named, *into(f"alignment-{language}.png"))


def of_page() -> None:
    """The derivation's page, one number opened."""
    from playwright.sync_api import sync_playwright

    from regard.worked import read_problem, solve

    page_text = solve(read_problem("self-attention")).derivation.html("Self-attention")
    browser_path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        file = Path(folder) / "page.html"
        file.write_text(page_text, encoding="utf-8")
        browser = driver.chromium.launch(executable_path=browser_path, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1180, "height": 560}, device_scale_factor=1.5)
        page.goto(f"{file.as_uri()}#A[0, 1]")
        page.wait_for_selector(".rg-open")
        page.wait_for_timeout(800)
        page.screenshot(path=PICTURES / "derivation.png")
        browser.close()
    print(PICTURES / "derivation.png")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vectors", help="lines of a word and its numbers (GloVe)")
    parser.add_argument("--model", help="the folder of a trained Transformer")
    parser.add_argument("--to", help="the language, where it knows several")
    parser.add_argument("--font", action="append", default=[], help="a font file for Hindi, Bengali; draws both")
    parser.add_argument("--sentence", default=SENTENCE, help="whose alignment is drawn")
    parser.add_argument("--models", nargs="+", default=[], help="folders whose scores by length are drawn together")
    parser.add_argument("--data", nargs="+", default=[], help="what they are scored on, as for regard compare")
    parser.add_argument("--captioner", help="the folder of a model from images to texts")
    parser.add_argument("--image", help="a PNG file for it")
    parser.add_argument("--no-page", action="store_true", help="without the derivation's page")
    given = parser.parse_args()
    PICTURES.mkdir(parents=True, exist_ok=True)
    to = ["--to", given.to] if given.to else []
    if not given.no_page:
        of_page()
    if given.vectors:
        of_vectors(given.vectors)
    if given.model:
        of_model(given.model, to, given.sentence)
        if given.font:
            of_scripts(given.model, given.font)
    if given.models:
        data = [part for file in given.data for part in ("--data", file)]
        regard("compare", *given.models, *data, *to, "--plot", str(PICTURES / "by-length.svg"))
        regard("plot", "loss", *given.models, *into("loss.svg"))
    if given.captioner:
        regard("plot", "image", given.captioner, given.image, *into("image.png"))


if __name__ == "__main__":
    main()
