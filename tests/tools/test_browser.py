"""The browser tools: commands and addresses without a browser, and one Chromium on a page of this machine."""

from __future__ import annotations

import asyncio
import json
import os
import re
import threading
from collections.abc import Coroutine, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench import extras
from workbench.context.place import Place
from workbench.engine.contracts import ToolResult
from workbench.tools.addresses import NetworkReach
from workbench.tools.browser.commands import EXAMPLES, Command, CommandError, read_command
from workbench.tools.browser.session import BrowserError, allowed, program
from workbench.tools.browser.tools import NOT_ALLOWED, BrowserTools, browser_tools
from workbench.tools.paths import Workspace
from workbench.tools.sandbox import Sandbox
from workbench.tools.toolbox import Toolbox

T = TypeVar("T")

# Commands.


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_command_is_read_as_its_example_shows_it(name: str) -> None:
    assert read_command(EXAMPLES[name]).name == name


NAMES = ["move-mouse", "click", "double-click", "right-click", "middle-click", "drag", "type", "keypress"]
NAMES += ["scroll-wheel-down", "scroll-wheel-up", "wait", "url", "back", "forward", "reload"]


def test_a_command_keeps_its_numbers_and_its_text() -> None:
    assert read_command('[":wait"]') == Command("wait", (1.0,))
    assert read_command('[":drag", ":from", 1, 2.5, ":to", 3, 4]') == Command("drag", (1, 2.5, 3, 4))
    assert read_command('[":type", "a \\"b\\""]') == Command("type", text='a "b"')


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (":click", ":click is not JSON: Expecting value: line 1 column 1 (char 0). Write an array, as {click}"),
        ('{"click": 1}', '{"click": 1} is not an array that begins with a command, as {click}'),
        ("[]", "[] is not an array that begins with a command, as {click}"),
        ('[":jump"]', f"there is no command 'jump'; there are {', '.join(f':{name}' for name in NAMES)}"),
        ('[":click", 3]', ":click takes no arguments; move the mouse first, a click happens where it is, as {click}"),
        ('[":back", 3]', ":back takes no arguments, as {back}"),
        ('[":move-mouse", 3, 4]', ":move-mouse takes :to, x and y, as {move-mouse}"),
        ('[":drag", ":to", 1, 2, ":from", 3, 4]', ":drag takes :from, x, y, :to, x and y, as {drag}"),
        ('[":move-mouse", ":to", "3", 4]', ':move-mouse takes numbers, not "3", as {move-mouse}'),
        ('[":move-mouse", ":to", true, 4]', ":move-mouse takes numbers, not true, as {move-mouse}"),
        ('[":move-mouse", ":to", 1e999, 4]', ":move-mouse takes numbers up to 100000, as {move-mouse}"),
        (
            '[":scroll-wheel-down", 51]',
            ":scroll-wheel-down takes a number of steps from 1 to 50, as {scroll-wheel-down}",
        ),
        ('[":wait", 30.1]', ":wait takes seconds from 0 to 30, as {wait}"),
        ('[":type", 3]', ":type takes one text, as {type}"),
        (f'[":type", "{"x" * 10_001}"]', ":type takes at most 10,000 characters, as {type}"),
    ],
)
def test_a_command_that_cannot_be_read_says_how_it_is_written(text: str, said: str) -> None:
    with pytest.raises(CommandError) as caught:
        read_command(text)
    words = re.sub(r"\{([a-z-]+)\}", lambda name: EXAMPLES[name[1]], said)
    assert str(caught.value) == words


@given(st.text(max_size=30) | st.lists(st.sampled_from([":click", ":to", ":drag", 1, -2.5, None, "x"])).map(str))
def test_no_text_breaks_the_reader(text: str) -> None:
    try:
        read_command(text)
    except CommandError:
        return


@pytest.mark.parametrize(
    "url",
    ["file:///etc/passwd", "javascript:alert(1)", "data:text/html,x", "chrome://version", "ftp://x/y", "http://", ""],
)
def test_only_addresses_of_the_web_are_opened(url: str) -> None:
    with pytest.raises(BrowserError, match="only http and https"):
        allowed(url)


def test_an_address_without_a_scheme_is_one_of_the_web() -> None:
    assert allowed(" example.org/a ") == "https://example.org/a"


# Who may.


def test_untrusted_folders_and_a_missing_extra_are_refused_with_what_to_do(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    box = Toolbox.of(workspace, Sandbox(workspace.root))
    refused = asyncio.run(box.call("browser_start", {"url": "http://127.0.0.1"}, Place(), 1))
    assert (refused.is_error, refused.needs_trust) == (True, True)
    assert NOT_ALLOWED in refused.text
    monkeypatch.setitem(extras.MODULES, "browser", "no_such_module")
    box = Toolbox.of(workspace, Sandbox(workspace.root), browser=True)
    refused = asyncio.run(box.call("take_screenshot", {"url": "http://127.0.0.1"}, Place(), 1))
    assert refused.text == f"PermissionError: take_screenshot may not run: {extras.missing('browser')}"
    facts = box.facts()
    assert facts["rabbitize_extract"].needs == "the browser extra: pip install 'cascade-workbench[browser]'"


def test_both_families_of_names_are_offered_with_the_same_parameters() -> None:
    tools = {name: describe() for name, describe in browser_tools(BrowserTools(), "").items()}
    for action in ("start", "execute", "extract", "close", "status"):
        one, other = tools[f"browser_{action}"].spec, tools[f"rabbitize_{action}"].spec
        assert one.parameters == other.parameters
    assert [p.name for p in tools["rabbitize_execute"].spec.parameters] == ["command", "include_metadata"]


# In a browser.

PAGE = """<!doctype html><title>Shop</title>
<style>body{margin:0} button{position:absolute;left:100px;top:200px;width:200px;height:60px}
#deep{margin-top:3000px}</style>
<h1>Orders <b>today</b></h1><p>Three are <a href="/next">late</a>.</p>
<input name=q style="position:absolute;left:400px;top:200px;width:200px">
<button onclick="document.title='clicked'; this.textContent='Sent'">Send</button>
<script>console.log("hidden text")</script><p id=deep>Below</p>"""


class _Site(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        text = PAGE if self.path == "/" else "<title>Next</title><h2>Second page</h2>"
        if self.path.startswith("/to/"):
            self.send_response(302)
            self.send_header("Location", self.path.removeprefix("/to/"))
            self.end_headers()
            return
        if self.path.startswith("/parts/"):
            target = self.path.removeprefix("/parts/")
            script = f"fetch('{target}', {{mode: 'no-cors'}}).finally(() => document.title = 'done')"
            text = f"<title>Parts</title><img src='{target}'><iframe src='{target}'></iframe><script>{script}</script>"
        if self.path.startswith("/meta/"):
            text = f"<meta http-equiv=refresh content='0; url={self.path.removeprefix('/meta/')}'>"
        if self.path.startswith("/script/"):
            text = f"<script>location = '{self.path.removeprefix('/script/')}'</script>"
        if self.path == "/stuck":
            text = "<title>Stuck</title><script>setTimeout(() => { while (true) {} }, 300)</script>"
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, format: str, *args: Any) -> None:
        """Quiet."""


@pytest.fixture(scope="module")
def site() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Site)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


class Surfer:
    """A toolbox whose tools may open pages, on a loop that stays."""

    def __init__(self, root: Path, *hosts: str) -> None:
        self._runner = asyncio.Runner()
        self.left = root / "left"
        self.box = Toolbox.of(
            Workspace.of(root),
            Sandbox(root),
            browser=True,
            reach=NetworkReach(hosts),
            artefacts=self.left,
            redact=lambda text: text.replace("hunter2", "[redacted]"),
        )

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._runner.run(work)

    def call(self, name: str, branch: str = "", **arguments: Any) -> ToolResult:
        return self.run(self.box.call(name, arguments, Place(branch, "p", 1, 1, 1, 1), 1))

    def do(self, *command: Any, branch: str = "", **more: Any) -> ToolResult:
        return self.call("rabbitize_execute", branch, command=json.dumps(command), **more)

    def at(self, url: str) -> ToolResult:
        """At a page, in the session that there is, if there is one."""
        if self.call("browser_status").text.startswith("A session is open"):
            return self.do(":url", url)
        return self.call("rabbitize_start", url=url)

    def close(self) -> None:
        self.run(self.box.aclose())
        self._runner.close()


@pytest.fixture(scope="module")
def surfer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Surfer]:
    if not extras.is_installed("browser") or program() is None:
        if os.environ.get("CI"):
            pytest.fail("CI must have Playwright and a Chromium")
        pytest.skip("there is no Playwright or no Chromium here")
    surfer = Surfer(tmp_path_factory.mktemp("surf"), "127.0.0.1")
    yield surfer
    surfer.close()


def children() -> int:
    """Chromium processes below this one."""
    count = 0
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            count += b"--headless" in (folder / "cmdline").read_bytes() and _below(int(folder.name))
        except OSError:
            continue
    return count


def _below(pid: int) -> bool:
    while pid > 1:
        if pid == os.getpid():
            return True
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return False


def test_a_session_shows_the_page_acts_on_it_and_leaves_its_commands_pictures_pages_and_figures(
    surfer: Surfer, site: str
) -> None:
    started = surfer.call("rabbitize_start", url=site, session_name="shop")
    assert (started.is_error, [image.media_type for image in started.images]) == (False, ["image/jpeg"]), started.text
    assert started.text.endswith("/ · Shop")
    surfer.do(":move-mouse", ":to", 200, 230)
    clicked = surfer.do(":click")
    assert (clicked.text.split(" · ")[-1], len(clicked.images)) == ("clicked", 2)
    assert clicked.images[0].data != clicked.images[1].data
    surfer.do(":move-mouse", ":to", 500, 210)
    surfer.do(":click")
    typed = surfer.do(":type", "hunter2", include_metadata=True)
    assert "[text q = hunter2]" in typed.text
    assert "button:submit 'Sent' at 200, 230" in typed.text
    assert surfer.call("browser_status").text.startswith("A session is open after 5 actions, at http://127.0.0.1")
    surfer.do(":url", "file:///etc/passwd")
    closed = surfer.call("rabbitize_close").text
    assert re.fullmatch(r"The session is closed after 6 actions: 1 page in [0-9.]+ s, 1 failed\.", closed)
    (folder,) = surfer.left.glob("run/shop")
    commands = json.loads((folder / "commands.json").read_text())
    names = [":move-mouse", ":click", ":move-mouse", ":click", ":type", ":url"]
    assert [command["command"][0] for command in commands] == names
    assert [command["success"] for command in commands] == [True] * 5 + [False]
    assert commands[4]["command"][1] == "[redacted]"
    assert "only http and https" in commands[5]["error"]
    figures = json.loads((folder / "metrics.json").read_text())
    assert (figures["commands"], figures["failed"], figures["pages"]) == (6, 1, [f"{site}/"])
    assert figures["ended"] >= figures["started"]
    shots = {path.name for path in (folder / "screenshots").iterdir()}
    assert {"start-000.jpg", "before-click-002.jpg", "after-click-002.jpg", "before-url-006.jpg"} <= shots
    assert "Orders" in (folder / "dom_snapshots" / "snapshot-000.md").read_text()
    assert "[redacted]" in (folder / "dom_snapshots" / "snapshot-005.md").read_text()
    assert "hunter2" not in "".join(path.read_text() for path in folder.rglob("*.[jm][sd]*"))
    assert "'Send' at 200, 230" in json.loads((folder / "dom_coords" / "coords-000.json").read_text())[-1]
    assert not (folder / "recording").exists()


def test_extract_reads_the_page_as_markdown_without_what_is_hidden(surfer: Surfer, site: str) -> None:
    surfer.at(site)
    read = surfer.call("browser_extract")
    assert "# Orders **today**" in read.text
    assert "Three are [late](/next)." in read.text
    assert "hidden text" not in read.text
    assert len(read.images) == 1


def test_navigating_goes_on_in_the_session_and_nowhere_but_the_web(surfer: Surfer, site: str) -> None:
    surfer.at(site)
    assert surfer.do(":url", f"{site}/next").text.endswith("Next")
    assert surfer.do(":back").text.endswith("Shop")
    refused = surfer.do(":url", "file:///etc/passwd")
    assert (refused.is_error, refused.text) == (
        True,
        "BrowserError: 'file:///etc/passwd' cannot be opened: only http and https addresses can",
    )
    gone = surfer.do(":url", "http://127.0.0.1:9")
    assert (gone.is_error, "ERR_UNSAFE_PORT" in gone.text or "ERR_CONNECTION_REFUSED" in gone.text) == (True, True)


@pytest.fixture
def inner() -> Iterator[tuple[str, list[str]]]:
    """A server that pages must not reach, and what it was asked for."""
    asked: list[str] = []

    class Inner(_Site):
        def do_GET(self) -> None:
            asked.append(self.path)
            super().do_GET()

    server = ThreadingHTTPServer(("127.0.0.2", 0), Inner)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.2:{server.server_port}", asked
    server.shutdown()
    server.server_close()
    thread.join()


def test_no_hop_and_no_part_of_a_page_leads_to_an_address_that_nobody_opened(
    surfer: Surfer, site: str, inner: tuple[str, list[str]]
) -> None:
    url, asked = inner
    surfer.at(site)
    hops = (
        f"{site}/to/{url}/hop",
        f"{site}/to/{site}/to/{url}/twice",
        f"{site}/meta/{url}/x",
        f"{site}/script/{url}/x",
    )
    for to in (f"{url}/direct", *hops):
        refused = surfer.do(":url", to)
        assert "'127.0.0.2' is 127.0.0.2, which is not in the public network; the setting 'allow_hosts'" in refused.text
    for target in (f"{url}/part", "http://169.254.169.254/latest/meta-data/"):
        assert not surfer.do(":url", f"{site}/parts/{target}").is_error
    assert asked == []
    refused = surfer.call("take_screenshot", url="http://169.254.169.254/latest/meta-data/")
    assert "where a cloud hands out the keys of the machine" in refused.text


def test_a_candidate_goes_on_in_a_browser_of_its_own_and_the_run_where_the_winner_stands(
    surfer: Surfer, site: str
) -> None:
    surfer.call("browser_close")  # A page that could not be loaded may still be on its way into an older one.
    surfer.at(site)
    moved = surfer.do(":url", f"{site}/next", branch="s0")
    assert moved.text.endswith("Next"), moved.text
    assert surfer.call("browser_status").text.endswith("Shop")
    before = children()
    surfer.run(surfer.box.settled("", "s0"))
    assert 0 < children() < before, "the run's own browser is ended"
    assert surfer.call("browser_status").text.startswith("A session is open after 1 actions")
    assert surfer.call("browser_status").text.endswith("Next")
    assert surfer.call("browser_status", "s0").text == "No browser session is open."


@pytest.mark.proof
def test_a_candidate_goes_on_from_an_empty_page_where_the_page_of_the_run_did_not_load(
    surfer: Surfer, site: str
) -> None:
    surfer.at(site)
    assert surfer.do(":url", "http://127.0.0.1:9").is_error
    surfer.do(":wait", 0.5)  # In which the browser puts its own page of the error there.
    moved = surfer.do(":url", f"{site}/next", branch="s0")
    assert moved.text.endswith("Next"), moved.text
    surfer.run(surfer.box.settled("", "s0"))


def test_the_end_of_the_run_leaves_nothing_running_and_a_single_look_neither(surfer: Surfer, site: str) -> None:
    surfer.at(site)
    assert children() > 0
    surfer.run(surfer.box.aclose())
    assert children() == 0
    assert surfer.call("browser_extract").text == "BrowserError: no browser session is open; start one first"
    assert surfer.call("browser_status").text == "No browser session is open."
    shot = surfer.call("take_screenshot", url=f"{site}/next")
    assert (shot.text, len(shot.images)) == (f"Screenshot of {site}/next · Next", 1)
    assert children() == 0


def test_a_page_that_hangs_ends_its_session_and_not_the_run(
    surfer: Surfer, site: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workbench.tools.browser.session.STEP_S", 0.5)
    surfer.call("browser_start", url=f"{site}/stuck")
    stuck = surfer.call("browser_extract")
    assert stuck.is_error
    assert "the session was ended" in stuck.text or "no browser session" in stuck.text
    assert surfer.call("browser_status").text == "No browser session is open."
