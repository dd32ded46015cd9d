"""A real Chromium with the network cut, for the tests of pages. They skip, and say so, where there is none."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def chromium() -> str | None:
    """Where the system's browser is."""
    return next((path for path in map(shutil.which, NAMES) if path), None)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A Chromium of the module's own: its event loop ends with the module, and others may run theirs."""
    path = chromium()
    if path is None:
        pytest.skip("no Chromium on this machine (Debian has it as the package chromium)")
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield started
        started.close()


class Watched:
    """A page whose every complaint is kept: errors, warnings, and requests that would leave the machine."""

    def __init__(self, context: Any) -> None:
        self.page = context.new_page()
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda message: self._said(message))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))

    def _said(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.complaints.append(message.text)


def opened(browser: Any, url: str | Path, *, offline: bool = True, **options: Any) -> Watched:
    """A page in a context of its own; `options` are Playwright's (color_scheme, viewport, …)."""
    context = browser.new_context(offline=offline, **({"viewport": {"width": 1280, "height": 900}} | options))
    context.set_default_timeout(20_000)
    watched = Watched(context)
    watched.page.goto(url.as_uri() if isinstance(url, Path) else url)
    return watched
