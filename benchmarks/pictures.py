"""The pictures of the README, from the pages themselves: python benchmarks/pictures.py

Needs Chromium and the package playwright, as the tests of the pages do.
"""

import shutil
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from regard.worked import read_problem, solve

PICTURES = Path(__file__).parents[1] / "docs" / "pictures"


def main() -> None:
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


if __name__ == "__main__":
    main()
