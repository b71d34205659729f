"""Takes the picture of the app in a browser: a server on a copy of the examples, Chromium, keys, the page as PNG."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Page

KEYS = "nnnn"
WIDTH, HEIGHT = 1180, 660
PATIENCE = 120
"""Looks at the page, half a second apart, until it must have come to rest."""


def take(folder: Path, target: Path) -> None:
    """Serve the tour of ``folder`` on this machine alone, press ``KEYS``, and write the page as PNG.

    Raises RuntimeError where there is no Chromium or the page does not come to rest.
    """
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium")
    if chromium is None:
        raise RuntimeError("the picture of serve needs Chromium: apt-get install chromium")
    own = {"WORKBENCH_CONFIG_DIR": str(folder / "config"), "WORKBENCH_STATE_DIR": str(folder / "state"), "TZ": "UTC"}
    start = "from workbench.cli.main import main; main()"
    words = ("serve", "log_triage.yaml", "--port", "0", "--model", "offline")
    source = str(Path(__file__).resolve().parent.parent)
    process = subprocess.Popen(
        [sys.executable, "-c", start, *words],
        cwd=folder,
        env={**os.environ, **own, "PYTHONPATH": source},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
            page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
            page.goto(address)
            page.wait_for_selector("body.-first-byte")
            shown = _at_rest(page, b"")
            for key in KEYS:
                page.keyboard.press(key)
                shown = _at_rest(page, shown)
            target.write_bytes(shown)
            browser.close()
    finally:
        process.terminate()
        process.wait(20)
        if process.stdout is not None:
            process.stdout.close()


def _at_rest(page: Page, before: bytes) -> bytes:
    """The page as PNG once it is another than before and has been the same for two seconds."""
    same, shown = 0, before
    for _ in range(PATIENCE):
        page.wait_for_timeout(500)
        seen = page.screenshot()
        same, shown = (same + 1, shown) if seen == shown else (0, seen)
        if shown != before and same >= 4:
            return shown
    raise RuntimeError("the page does not come to rest")
