"""Takes the pictures of the guide: runs the app on the examples, presses keys, exports what stands there as SVG.

``python -m scripts.pictures [NAME]...`` writes ``docs/pictures/NAME.svg``, and ``serve.png``; without names, all.
"""

from __future__ import annotations

import asyncio
import os
import re
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from html import unescape
from pathlib import Path
from urllib.parse import urlsplit

from textual.pilot import Pilot
from textual.screen import ModalScreen
from textual.widgets import Input

from scripts import picture_of_serve
from tests.support.batches import stored_batch
from tests.support.loopback import Loopback
from workbench.attach.providers import addresses
from workbench.tui import early_keys
from workbench.tui.app import WorkbenchApp
from workbench.workspace.attach_serving import LOOPBACK, Served, listen
from workbench.workspace.attached import AttachPlan
from workbench.workspace.attaching import AttachOptions
from workbench.workspace.home import copy_examples
from workbench.workspace.input_file import default_input
from workbench.workspace.permissions import allow
from workbench.workspace.program_output import attached_output
from workbench.workspace.project import Project
from workbench.workspace.session import Session, Workspace

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "pictures"
SAVED = 1_793_628_131
"""When the files were last saved, as the header tells it: 2026-11-02 14:02:11 UTC."""
PATIENCE = 60.0
"""Seconds that the app may take to come to rest."""
_FONTS = re.compile(r"@font-face \{.*?\}", re.DOTALL)


@dataclass(frozen=True)
class Picture:
    """One picture: the example that is open, the keys that are pressed, and how large the terminal is.

    Without an example, the app is opened on the folder. A key ``n*3`` is pressed three times; ``=a_b`` writes
    ``a b`` into the line that is open. After
    ``n``, ``c`` and ``r`` the run comes to rest before the next key.
    """

    name: str
    example: str
    keys: str
    size: tuple[int, int] = (120, 36)
    fault: str = ""
    """A provider that fails in this way answers, instead of the offline model."""
    edit: tuple[str, str] = ("", "")
    """What the key ``~`` replaces in the file, which is saved; the app has noticed it before the next key."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Files by name that the examples do not have."""
    model: str = "offline"
    watched: str = ""
    """A program that is watched instead of an example: its file, with scripted replies beside it."""
    trusted: bool = True
    """Whether what ``files`` could do outside the sandbox is allowed."""
    prepare: Callable[[Path], None] | None = None
    """Puts into the folder what the picture needs besides."""
    shows: tuple[str, ...] = ()
    """What the page beside it speaks of: words that stand in the picture, each in one colour."""


MASKED_SOONER = ("mask_observations_after: 3", "mask_observations_after: 2")
CLOCK = {
    "clock.yaml": """\
cascade_id: clock
mcp:
  time: mcp-server-time --local-timezone=Europe/Paris
phases:
  - name: plan
    instructions: The call is at noon in New York. What time is that in Paris?
    tackle: ["time__*"]
    rules: {max_turns: 3}
""",
    "clock.replies.yaml": """\
replies:
  plan:
    - say: I ask the server for the time.
      calls:
        - tool: time__convert_time
          arguments: {source_timezone: America/New_York, time: "12:00", target_timezone: Europe/Paris}
    - text: The call is at six in the evening.
""",
}
REPORT = {
    "report.yaml": """\
cascade_id: report
temperature: 0.2                  # for every phase
max_tokens: 2000
phases:
  - name: collect
    instructions: Collect the numbers of {{ input.month }}.
    temperature: 0                # wins over the cascade's
    seed: 7
    stop: ["END"]
    parameters: {top_k: 40, repetition_penalty: 1.1}
    output_schema:
      type: object
      properties: {total: {type: number}}
      required: [total]
      additionalProperties: false
    enforce: provider             # provider, prompt, or both
""",
    "report.replies.yaml": """\
replies:
  collect:
    - text: '{"total": 42}'
""",
    "report.input.json": '{"month": "May"}',
}
CHECKED = {
    "answer.yaml": """\
cascade_id: answer
description: Sums up a text for one reader.
inputs_schema:
  text: the text to sum up
  reader: who will read the summary

validators:
  three_sentences:
    python: |
      found = content.count(".")
      result = {"valid": found == 3, "reason": f"{found} sentences; three are wanted"}

phases:
  - name: summarize
    instructions: |
      Sum up the text below for {{ input.reader }}: three sentences, no names of
      programs, and the last sentence says what to do.

      {{ input.text }}
    context: {include_input: false}
    wards:
      post:
        - {validator: three_sentences, mode: retry, max_attempts: 2}
""",
    "answer.replies.yaml": """\
replies:
  summarize:
    - text: The nightly copy failed because the disk was full. Order a larger disk this week.
    - attempt: 2
      text: The nightly copy failed because the disk was full. Nothing is lost. Order a larger disk this week.
""",
    "answer.input.json": (
        '{"text": "The backup of the shop database failed on Monday and on Tuesday with'
        ' \'no space left on device\'. The copy of Sunday was verified.", "reader": "the shop manager"}'
    ),
}
PICTURES = (
    Picture(
        "held",
        "log_triage.yaml",
        "n",
        shows=(
            "PAUSED before intake:1",
            "instructions",
        ),
    ),
    Picture(
        "masked",
        "log_triage.yaml",
        "n*7",
        shows=(
            "PAUSED before triage:5",
            "age 4 > 2",
            "age 3 > 2",
        ),
    ),
    Picture(
        "cost",
        "debug_agent.yaml",
        "n*12",
        shows=(
            "PAUSED before investigate:12",
            "cache breaks here: turn 8's result was full in the previous call",
        ),
    ),
    Picture(
        "selected",
        "firmware_brief.yaml",
        "n*8",
        (120, 40),
        shows=(
            "PAUSED before brief:1",
            "3 dropped",
        ),
    ),
    Picture(
        "failed",
        "log_triage.yaml",
        "r",
        fault="ctx",
        shows=(
            "The request is longer than the model's context.",
            "What to do",
        ),
    ),
    Picture(
        "chart",
        "refund_charts.yaml",
        "n*3",
        (120, 40),
        shows=(
            "turn 3/6",
            "images of the tool",
        ),
    ),
    Picture("chart-viewer", "refund_charts.yaml", "n*3 enter", (100, 34), shows=("[image/png",)),
    Picture(
        "candidates",
        "slogans.yaml",
        "r C",
        shows=(
            "soundings · 5 candidates",
            "reforge step 1",
        ),
    ),
    Picture("candidates-diff", "slogans.yaml", "r C k d", (120, 20), shows=("r1.0 and s4",)),
    Picture(
        "compare",
        "debug_agent.yaml",
        "r D =everything_vs_masked enter",
        shows=(
            "first difference",
            "investigate:14",
        ),
    ),
    Picture(
        "compare-plot",
        "debug_agent.yaml",
        "r D =everything_vs_masked enter P",
        shows=(
            "tokens sent",
            "US dollars for the input",
        ),
    ),
    Picture("freeze", "debug_agent.yaml", "r t", shows=("Freeze the run as a test",)),
    Picture(
        "review",
        "debug_agent.yaml",
        "r t enter*3 ~ T tab j*5",
        edit=MASKED_SOONER,
        shows=(
            "message 8 (turn 3's result) was sent in full, is now masked",
            "debug_agent.yaml:41",
        ),
    ),
    Picture("rerun", "debug_agent.yaml", "r ~ R", edit=MASKED_SOONER, shows=("First changed request",)),
    Picture("runs", "log_triage.yaml", "n*4 x r L F =triage:3 enter c L", (120, 30), shows=("1 stopped",)),
    Picture(
        "runs-found",
        "log_triage.yaml",
        "n*4 x r L f =text:timeout_calls>5",
        (120, 30),
        shows=(
            "1 of 2 runs",
            "timeout",
        ),
    ),
    Picture(
        "home",
        "",
        "j*5 enter r H",
        (120, 24),
        shows=(
            "Cascades",
            "Runs",
        ),
    ),
    Picture("form", "product_page.yaml", "r", (120, 32), shows=("400 lumens at 92 grams",)),
    Picture("form-refused", "product_page.yaml", "r 1 ctrl+s ctrl+s", (120, 36), shows=("an answer is needed",)),
    Picture("feedback", "product_page.yaml", "n S =Say_what_it_does_not_stand.", (120, 28), shows=("Say to draft",)),
    Picture(
        "editor",
        "log_triage.yaml",
        "e end enter m o",
        (120, 32),
        shows=(
            "model",
            "a ':' must follow this key",
        ),
    ),
    Picture(
        "sql",
        "log_triage.yaml",
        "r Q f5",
        (120, 32),
        shows=(
            "Catalogue",
            "Result",
        ),
    ),
    Picture(
        "settings",
        "log_triage.yaml",
        "comma j*3",
        (120, 36),
        shows=(
            "Settings",
            "Seconds that one try of a model call may take.",
        ),
    ),
    Picture("small", "log_triage.yaml", "n", (80, 24), shows=("PAUSED before intake:1",)),
    Picture("mcp", "clock.yaml", "n*2", (120, 30), files=CLOCK, shows=("time__convert_time",)),
    Picture("check", "answer.yaml", "n*2", (120, 36), files=CHECKED, shows=("three_sentences: 2 sentences",)),
    Picture("parameters", "report.yaml", "", (120, 30), files=REPORT, shows=("output schema (enforced: provider)",)),
    Picture(
        "data-phases",
        "nightly.yaml",
        "r tab*3 g j",
        (120, 36),
        shows=(
            "shell:queries/refund_alarm.sh",
            "It made no model call.",
            '"alarm"',
        ),
    ),
    Picture(
        "decomposition",
        "ticket_answers.json",
        "r [",
        (120, 40),
        shows=(
            "wave 3",
            "entities: 5 parts",
        ),
    ),
    Picture(
        "flow",
        "status_note.dot",
        "n*5 v",
        (120, 44),
        shows=(
            "seen conditional",
            "look parallel",
        ),
    ),
    Picture(
        "status-gate",
        "status_note.dot",
        "n*7",
        (120, 40),
        shows=(
            "sign_off asks",
            "May this note go online?",
        ),
    ),
    Picture(
        "status-edge",
        "status_note.dot",
        "n*7 1 shift+tab k k W",
        (120, 40),
        shows=(
            "Why this edge",
            "status_note.dot:47",
        ),
    ),
    Picture(
        "shipping-thread",
        "shipping_change.dot",
        "n*5",
        (120, 40),
        shows=(
            "PAUSED before mend:1",
            "cache breaks here",
        ),
    ),
    Picture(
        "shipping-compare",
        "shipping_change.dot",
        "r D w =fidelity:full_vs_fidelity:compact enter",
        (120, 36),
        shows=("fidelity:compact",),
    ),
    Picture("attach", "", "i n i", (120, 34), watched="examples/agent.py", shows=("PAUSED after agent:2",)),
    Picture(
        "batch",
        "",
        "L M right",
        prepare=stored_batch,
        shows=(
            "model=x/b",
            "exact 0",
        ),
    ),
    Picture(
        "no-key",
        "log_triage.yaml",
        "r",
        (120, 30),
        model="openai/gpt-4.1-mini",
        shows=("The provider wants another key.",),
    ),
)
_RUNS = ("n", "c", "r", "i", "o", "R", "ctrl+s")
_TAGS = re.compile(r"<style>.*?</style>|<[^>]*>", re.DOTALL)


def missing(picture: Picture, svg: str) -> list[str]:
    """What a picture does not show, of that which the page beside it speaks of."""
    text = unescape(_TAGS.sub("\n", svg)).replace("\N{NO-BREAK SPACE}", " ")
    return [words for words in picture.shows if words not in text]


async def take(picture: Picture, folder: Path, provider: str) -> str:
    """The picture as SVG, without fonts from elsewhere. ``provider``: the base URL of the one that fails."""
    async with played(picture, folder, provider) as (app, pilot):
        await pilot.pause(0.2)
        return drawn(app, folder, provider)


def drawn(app: WorkbenchApp, folder: Path, provider: str) -> str:
    """What stands on the screen as SVG, without fonts from elsewhere and without names of this machine."""
    svg = _FONTS.sub("", app.export_screenshot(title="", simplify=True))
    svg = svg.replace(str(folder), "~/cascades".ljust(len(str(folder)), "\N{NO-BREAK SPACE}"))
    svg = svg.replace(folder.name, "cascades".ljust(len(folder.name), "\N{NO-BREAK SPACE}"))
    return svg.replace(urlsplit(provider).netloc, "localhost:40000")


@asynccontextmanager
async def played(picture: Picture, folder: Path, provider: str) -> AsyncIterator[tuple[WorkbenchApp, Pilot[int]]]:
    """The app on the example of a picture, once its keys were pressed and everything rests."""
    file = folder / picture.example
    for name, text in picture.files.items():
        (folder / name).write_text(text, "utf-8")
        os.utime(folder / name, (SAVED, SAVED))
    if picture.prepare is not None:
        picture.prepare(folder)
    env = {"WORKBENCH_BASE_URL": provider} if picture.fault else {}
    env |= {"WORKBENCH_CONFIG_DIR": str(folder / "config"), "WORKBENCH_STATE_DIR": str(folder / "state")}

    def make() -> Session | Workspace:
        project = Project.at(folder, env=env)
        if picture.watched:
            return _watched(project, Path(picture.watched))
        if not picture.example:
            return Workspace(project, "offline")
        if picture.files and picture.trusted:
            allow(project, [file])
        return Session(project, file, model=picture.fault or picture.model, session=f"{file.stem}-7f3a")

    app = WorkbenchApp(make, given=default_input(file) if picture.example else {})
    app.animation_level = "none"
    early_keys.REACTION = 0.0  # nobody has to see what opens by itself
    async with app.run_test(size=picture.size) as pilot:
        await _until(
            pilot,
            lambda: (
                app.workspace is not None
                and (app.bench.presenter is not None or not (picture.example or picture.watched))
            ),
        )
        if (presenter := app.bench.presenter) is not None:
            presenter.gallery.enabled = True
        if picture.watched:
            await _until(pilot, lambda: _rests(app))
            app.clear_notifications()
        for key, times in _keys(picture.keys):
            for _ in range(times):
                if key == "~":
                    await _save(pilot, app, picture.edit)
                    continue
                await _press(pilot, app, key)
                if key in _RUNS:
                    await _until(pilot, lambda: _rests(app))
        await app.workers.wait_for_complete()
        yield app, pilot


def _watched(project: Project, program: Path) -> Session:
    """A session of attach, paused before the first request of the program."""
    options = AttachOptions(
        f"python {program}", "python-7f3a", offline=True, replies=program.with_name("agent.replies.yaml").resolve()
    )
    served = Served(listen(LOOPBACK, 0), addresses({}), (sys.executable, str(program)))
    output = attached_output(project.folders, options.session)
    plan = AttachPlan(options, served, Path.cwd(), output, pause=True)
    return Workspace(project).attach(plan)


async def _press(pilot: Pilot[int], app: WorkbenchApp, key: str) -> None:
    """A key, or what is to stand in the line that is open; whatever is worked out behind it is waited for."""
    entry = app.focused
    if key.startswith("=") and isinstance(entry, Input):
        entry.value = key.removeprefix("=").replace("_", " ")
    else:
        await pilot.press(key)
    await pilot.pause()
    await app.workers.wait_for_complete()


async def _save(pilot: Pilot[int], app: WorkbenchApp, edit: tuple[str, str]) -> None:
    """Change the file, and wait until the app has taken it over."""
    session, presenter = app.session, app.bench.presenter
    assert session is not None
    assert presenter is not None
    text = session.file.read_text("utf-8")
    assert edit[0] in text
    session.file.write_text(text.replace(*edit), "utf-8")
    await _until(pilot, lambda: presenter.state.changed)
    app.clear_notifications()


def _keys(text: str) -> list[tuple[str, int]]:
    return [(key, int(times or 1)) for key, _, times in (word.partition("*") for word in text.split())]


def _rests(app: WorkbenchApp) -> bool:
    """The run is held or over, or waits for an answer, and all it said has been drawn; without one, a dialog is
    open."""
    session = app.session
    if session is None or session.events or session.notices:
        return session is None and isinstance(app.screen, ModalScreen)
    presenter = app.bench.presenter
    asks = presenter is not None and presenter.state.current_question() is not None and app.screen is not app.bench
    return session.stepper.held is not None or not session.running or asks


async def _until(pilot: Pilot[int], rests: object) -> None:
    assert callable(rests)
    give_up = time.monotonic() + PATIENCE
    await pilot.pause(0.05)
    while not rests():
        if time.monotonic() > give_up:
            raise TimeoutError("the app did not come to rest")
        await pilot.pause(0.02)
    await pilot.pause(0.1)


def main(names: Sequence[str]) -> int:
    os.environ["TZ"] = "UTC"
    os.environ["PATH"] = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))  # MCP servers
    time.tzset()
    FOLDER.mkdir(parents=True, exist_ok=True)
    for picture in PICTURES:
        if names and picture.name not in names:
            continue
        with tempfile.TemporaryDirectory() as folder, Loopback() as provider:
            svg = asyncio.run(take(picture, examples(Path(folder)), provider.url))
        if lacks := missing(picture, svg):
            print(f"{picture.name} does not show {', '.join(map(repr, lacks))}", file=sys.stderr)
        (FOLDER / f"{picture.name}.svg").write_text(svg, "utf-8")
        print(f"docs/pictures/{picture.name}.svg")
    if not names or "serve" in names:
        with tempfile.TemporaryDirectory() as folder:
            picture_of_serve.take(examples(Path(folder)), FOLDER / "serve.png")
        print("docs/pictures/serve.png")
    return 0


def examples(folder: Path) -> Path:
    """A copy of the examples that answers at once and was saved when the header says."""
    copy = copy_examples(folder)
    for file in (each for each in copy.iterdir() if each.is_file()):
        if file.name.endswith(".replies.yaml"):
            file.write_text(re.sub(r"latency: [0-9.]+", "latency: 0", file.read_text("utf-8")), "utf-8")
        os.utime(file, (SAVED, SAVED))
    return copy


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
