"""Takes every screen and pane at three sizes in three themes, and lays the pictures on sheets to look at.

``python -m scripts.contact_sheets OUT [NAME]...`` writes ``OUT/NAME-WIDTHxHEIGHT-THEME.svg`` and, with Chromium and the
extra ``browser`` are installed, sheets as PNG: ``OUT/sheet-WIDTHxHEIGHT-THEME-N.png``. Without names, all scenes.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path

from scripts.pictures import CLOCK, MASKED_SOONER, Picture, drawn, examples, played
from tests.support.batches import stored_batch
from tests.support.loopback import Loopback

SIZES = ((80, 24), (120, 40), (200, 50))
THEMES = ("workbench-dark", "workbench-light", "ansi-dark")
ON_A_SHEET = {80: (3, 2), 120: (2, 2), 200: (1, 2)}
"""Columns and rows of pictures on a sheet, by the cells in a line."""
SHEET = 1800
"""Pixels of a sheet from left to right."""
TRIAGE, AGENT = "log_triage.yaml", "debug_agent.yaml"
ENTERED = "=everything_vs_masked"
SCENES = (
    Picture("not-run", TRIAGE, ""),
    Picture("paused", AGENT, "n*9"),
    Picture("why", TRIAGE, "n*7 p"),
    Picture("wire", TRIAGE, "n*7 w"),
    Picture("wire-raw", TRIAGE, "n*7 w w"),
    Picture("marked", TRIAGE, "n*7 d"),
    Picture("done", AGENT, "r"),
    Picture("last-call", AGENT, "r left_square_bracket"),
    Picture("problems", TRIAGE, "r 2", fault="ctx"),
    Picture("state", AGENT, "r 3"),
    Picture("output", AGENT, "r 4"),
    Picture("events", AGENT, "r 5"),
    Picture("timeline", "postmortem.yaml", "r 6"),
    Picture("failed", TRIAGE, "r", fault="ctx"),
    Picture("message", TRIAGE, "n*7 tab enter"),
    Picture("image", "refund_charts.yaml", "n*3"),
    Picture("flow", "router.yaml", "r v"),
    Picture("edit", TRIAGE, "n*7 E"),
    Picture("playground", TRIAGE, "n*7 P"),
    Picture("breakpoints", TRIAGE, "n f9 s"),
    Picture("inputs", TRIAGE, "I"),
    Picture("freeze", TRIAGE, "r t"),
    Picture("quit", TRIAGE, "n q"),
    Picture("run-again", TRIAGE, "r n"),
    Picture("fork", TRIAGE, "n*4 x F"),
    Picture("changed", AGENT, "r ~ R", edit=MASKED_SOONER),
    Picture("sides", AGENT, "r D"),
    Picture("compare", AGENT, "r D enter"),
    Picture("compare-plot", AGENT, "r D enter P"),
    Picture("sweep", AGENT, "r D enter S enter"),
    Picture("candidates", "slogans.yaml", "r C"),
    Picture("candidates-plot", "slogans.yaml", "r C P"),
    Picture("candidates-diff", "slogans.yaml", "r C k d"),
    Picture("form", "product_page.yaml", "r"),
    Picture("feedback", "product_page.yaml", "n S"),
    Picture("home", "", "r*0"),
    Picture("runs", TRIAGE, "n*4 x r L"),
    Picture("runs-filter", TRIAGE, "n*4 x r L f =calls>5"),
    Picture("note", TRIAGE, "r quotation_mark"),
    Picture("tag", TRIAGE, "r number_sign"),
    Picture("sql", TRIAGE, "r Q f5"),
    Picture("snapshots", AGENT, "r t enter*3 ~ T", edit=MASKED_SOONER),
    Picture("editor", TRIAGE, "e"),
    Picture("settings", TRIAGE, "comma"),
    Picture("help", TRIAGE, "question_mark"),
    Picture("palette", TRIAGE, "ctrl+p"),
    Picture("jump", TRIAGE, "n ctrl+o"),
    Picture("trust", "clock.yaml", "r", files=CLOCK, trusted=False),
    Picture("node-paused", "status_note.dot", "n*5"),
    Picture("node-why", "status_note.dot", "n*5 W"),
    Picture("node-flow", "status_note.dot", "n*5 v"),
    Picture("node-outline", "status_note.dot", "n*5 v v"),
    Picture("node-done", "shipping_change.dot", "r"),
    Picture("node-editor", "status_note.dot", "e"),
    Picture("tasks-paused", "ticket_answers.json", "n*4"),
    Picture("tasks-done", "ticket_answers.json", "r"),
    Picture("tasks-call", "ticket_answers.json", "r left_square_bracket"),
    Picture("tasks-flow", "ticket_answers.json", "r v"),
    Picture("attach", "", "i n i", watched="examples/agent.py"),
    Picture("attach-answer", "", "i n i i", watched="examples/agent.py"),
    Picture("attach-wire", "", "i n i w", watched="examples/agent.py"),
    Picture("batch", "", "L M", prepare=stored_batch),
    Picture("batch-diff", "", "L M right down space left D", prepare=stored_batch),
    Picture("batches-none", "", "L M"),
    Picture("new", "", "n"),
    Picture("edit-review", TRIAGE, "n*7 E d ctrl+s"),
    Picture("edit-model", TRIAGE, "n*7 E m"),
    Picture("playground-models", TRIAGE, "n*7 P m"),
    Picture("playground-sent", TRIAGE, "n*7 P r"),
    Picture("sides-open", AGENT, "n*5 D"),
    Picture("sweep-plot", AGENT, "r D enter S enter P"),
    Picture("export", TRIAGE, "r L X"),
    Picture("delete", TRIAGE, "r L delete"),
    Picture("settings-keys", TRIAGE, "comma tab"),
    Picture("nested", "postmortem.yaml", "i*9"),
    Picture("sql-catalogue", TRIAGE, "r Q f6 j*8"),
)


AGAIN = {"palette": ("escape", "ctrl+p")}
"""Keys after a change of theme, where what is open would keep the colours of the one before."""


async def take(scene: Picture, folder: Path, provider: str, out: Path) -> None:
    """All pictures of a scene: played once, then drawn at each size in each theme."""
    async with played(scene, folder, provider) as (app, pilot):
        for width, height in SIZES:
            await pilot.resize_terminal(width, height)
            for theme in THEMES:
                app.theme = theme
                await pilot.pause()
                for key in AGAIN.get(scene.name, ()):
                    await pilot.press(key)
                await app.workers.wait_for_complete()
                await pilot.pause(0.1)
                picture = drawn(app, folder, provider)
                (out / f"{scene.name}-{width}x{height}-{theme}.svg").write_text(picture, "utf-8")


def sheets(out: Path, names: Sequence[str]) -> Iterator[tuple[Path, str]]:
    """Each sheet: the file that it becomes, and the page that shows its pictures."""
    for width, height in SIZES:
        columns, rows = ON_A_SHEET[width]
        each = columns * rows
        for theme in THEMES:
            parts = [names[at : at + each] for at in range(0, len(names), each)]
            for number, part in enumerate(parts, 1):
                figures = "".join(
                    f"<figure><figcaption>{escape(name)}</figcaption>"
                    f'<img src="{(out / f"{name}-{width}x{height}-{theme}.svg").resolve().as_uri()}"></figure>'
                    for name in part
                )
                style = (
                    (
                        f"body {{ display: grid; grid-template-columns: repeat({columns}, 1fr); gap: 4px; margin: 0; "
                        "background: #888; font: 14px sans-serif }} figure {{ margin: 0 }} img {{ width: 100% }}"
                    )
                    .replace("}}", "}")
                    .replace("{{", "{")
                )
                page = f"<!doctype html><meta charset=utf-8><style>{style}</style>{figures}"
                yield out / f"sheet-{width}x{height}-{theme}-{number}.png", page


def lay_out(out: Path, names: Sequence[str]) -> None:
    """Write the sheets as PNG. Raises RuntimeError without Chromium."""
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium")
    if chromium is None:
        raise RuntimeError("sheets need Chromium: apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        tab = browser.new_page(viewport={"width": SHEET, "height": 600})
        for target, page in sheets(out, names):
            source = target.with_suffix(".html")
            source.write_text(page, "utf-8")
            tab.goto(source.resolve().as_uri())
            tab.screenshot(path=str(target), full_page=True)
            source.unlink()
            print(target)
        browser.close()


def main(words: Sequence[str]) -> int:
    if not words:
        print(__doc__, file=sys.stderr)
        return 2
    os.environ["TZ"] = "UTC"
    os.environ["PATH"] = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))  # MCP servers
    time.tzset()
    out, wanted = Path(words[0]), words[1:]
    out.mkdir(parents=True, exist_ok=True)
    names = []
    for scene in SCENES:
        if wanted and scene.name not in wanted:
            continue
        with tempfile.TemporaryDirectory() as folder, Loopback() as provider:
            try:
                asyncio.run(take(scene, examples(Path(folder)), provider.url, out))
            except (AssertionError, OSError, TimeoutError) as fault:
                print(f"{scene.name}: {type(fault).__name__}: {fault}", file=sys.stderr)
                continue
        names.append(scene.name)
        print(scene.name)
    lay_out(out, names)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
