"""What the page of a derivation costs: how large it is, how long it takes to write, and until it is ready.

A Transformer of two layers of width 64 with words in and words out, on 20 tokens, in the system's Chromium:

    python benchmarks/derivation_page.py
"""

import shutil
import tempfile
import time
from pathlib import Path

import torch
from playwright.sync_api import sync_playwright
from torch import nn

import regard


def model(words: int = 1000, width: int = 64, layers: int = 2) -> nn.Module:
    layer = nn.TransformerEncoderLayer(width, 4, 4 * width, batch_first=True)
    stack = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
    return nn.Sequential(nn.Embedding(words, width), stack, nn.Linear(width, words)).eval()


def main() -> None:
    torch.manual_seed(0)
    with torch.no_grad(), regard.trace() as tape:
        logits = model()(torch.randint(1000, (1, 20)))
    derivation = tape.derivation(logits)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "page.html"
        start = time.perf_counter()
        derivation.save(path)
        print(f"{len(derivation.steps)} steps, {len(derivation.fine)} primitives")
        print(f"written in {time.perf_counter() - start:.2f} s, {path.stat().st_size / 1e6:.2f} MB")
        times = sorted(ready(path) for _ in range(5))
        print(f"ready after {times[2]:.2f} s (of five: {times[0]:.2f} to {times[-1]:.2f})")


def ready(path: Path) -> float:
    """Seconds from asking for the page until its first numbers stand."""
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_context(offline=True).new_page()
        page.goto(path.as_uri())
        page.wait_for_selector(".rg[data-ready] td")
        seconds: float = page.evaluate("performance.now()") / 1000
        browser.close()
    return seconds


if __name__ == "__main__":
    main()
