"""The message viewer: the forms of a message, search with a count, texts of any size, images, what was cut."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from time import thread_time

import pytest
from msgspec.structs import replace
from PIL import Image as Pillow

from tests.store.examples import extend
from tests.ui.bench import Bench, bench, session_at
from tests.ui.snapshot import check_sizes
from tests.ui.support import LOG_TEXT, Story, entry, triage_story
from workbench.context.assembly import Kind
from workbench.context.message import Image, Message, TextPart
from workbench.context.place import Place
from workbench.engine.journal.parts import FullResult
from workbench.tui.screens.message import MessageSheet
from workbench.tui.screens.sheet import Sheet
from workbench.views.context import ContextRows
from workbench.views.filter_result import Tally
from workbench.views.json_tree import JsonRows
from workbench.views.large_text import LargeTextRows
from workbench.views.markdown import rendered
from workbench.views.text import TextLine, TextRows
from workbench.views.viewer import ViewedMessage

TEXT = '[Tool result: look]\n{"name": "Ada", "tags": ["a", "b"], "deep": {"x": [1, 2, {"y": null}]}}'


def viewed(text: str = TEXT, **more: object) -> ViewedMessage:
    message = Message("user", text)
    made = ViewedMessage((("1 user", "title"),), (), message, message)
    return replace(made, **more)


def lines(rows: object, width: int = 60) -> list[str]:
    assert isinstance(rows, TextRows)
    rows.lay_out(width)
    return [rows.row(index, width).text.strip() for index in range(len(rows))]


# Forms.


def test_a_message_names_the_forms_that_it_has_and_why_it_has_no_other() -> None:
    view = viewed()
    assert [form for form in ("sides", "raw", "rendered", "json", "wire") if not view.missing(form)] == [
        *("raw", "rendered", "json")
    ]
    assert view.first == "raw"
    assert viewed("plain").missing("json") == "Not a JSON object or list, or too long to be shown as one."
    assert viewed("x" * 9000).missing("rendered").startswith("9,000 characters are too many to typeset")


def test_json_below_a_header_folds_and_unfolds() -> None:
    rows = viewed().rows("json")
    assert isinstance(rows, JsonRows)
    rows.lay_out(60)
    assert lines(rows)[:4] == ["▾ {", '"name": "Ada",', '▾ "tags": [', '"a",']
    at = rows.fold(3, closed=True)
    assert lines(rows)[at] == '▸ "tags": [ 2 items ],'
    assert rows.fold(at, closed=False) == at
    assert lines(rows)[at + 1] == '"a",'
    rows.fold(0)
    assert lines(rows)[0].startswith('▸ { "name": "Ada", "tags": [ "a", ')
    assert lines(rows)[0].endswith("… }")
    assert rows.find("null", 0) is not None
    assert len(rows) > 10


def test_much_json_begins_folded_below_its_second_level() -> None:
    rows = JsonRows([{"n": {"deep": [number]}} for number in range(60)])
    assert '▸ "n": { "deep": [ 7 ] }' in lines(rows)


DIFF = """\
Corrected:

--- a/invoice/totals.py
+++ b/invoice/totals.py
@@ class Invoice @@
     lines: tuple[Line, ...]

-    - the tax
+    + the shipping
+    shipping: Money

So **that** is it.
- one
- two"""


@pytest.mark.parametrize("fence", ["", "```", "```diff"])
def test_a_diff_is_shown_as_it_is_written_in_red_and_green(fence: str) -> None:
    """Without a fence, its lines were drawn as points of a list, without their signs; in one, all were green."""
    before, after = (f"{fence}\n", "\n```\n") if fence else ("", "")
    text = DIFF.replace("--- a", before + "--- a").replace("Money\n", f"Money{after}\n")
    rows = rendered(text, 80)
    shown = {"".join(part for part, _ in row).rstrip(): [token for part, token in row if part.strip()] for row in rows}
    for line in DIFF.split("\n")[2:10]:
        assert line.rstrip() in shown, line
    assert shown["-    - the tax"] == ["gone"]
    assert shown["+    + the shipping"] == shown["+    shipping: Money"] == ["added"]
    assert shown["@@ class Invoice @@"] == ["accent"]
    assert "bold" in shown["So that is it."]
    assert " • one" in shown


def test_markdown_is_typeset_without_links_to_click_and_without_escapes() -> None:
    rows = rendered("# Top\n\n- *one* [here](vscode:x)\n\n```\ncode\n```\n\x1b]0;title\x07 end", 60)
    tokens = {text.strip(): token for row in rows for text, token in row}
    assert (tokens["Top"], tokens["one"], tokens["code"]) == ("title-focus", "accent", "code-string")
    assert any("vscode:x" in text for row in rows for text, _ in row)
    assert not any("\x1b" in text or "\x07" in text for row in rows for text, _ in row)


# Search.


def finish(step: Callable[[], object], is_over: Callable[[], bool]) -> None:
    """Take steps until the work is over."""
    for _ in range(100_000):
        if is_over():
            return
        step()
    raise AssertionError("the work does not end")


def test_a_search_says_which_of_how_many_it_shows() -> None:
    rows = TextRows([TextLine(f"line {number}") for number in range(500)])
    rows.lay_out(40)
    tally = Tally(rows, "7")
    finish(lambda: tally.go_on(0.001), lambda: tally.done)
    assert tally.words(7) == "line 1 of 95"
    assert tally.words(8) == "on 95 lines"
    assert Tally(rows, "none of it").words(0) == "searching"


async def test_the_context_find_shows_its_count_in_the_title(tmp_path: Path) -> None:
    async with bench(tmp_path, events=triage_story().events) as it:
        await it.press("g", "slash")
        await it.type("read_log")
        await it.press("enter")
        assert "'read_log' line 1 of 3" in it.pane("context").split("\n")[0]
        await it.press("n")
        assert "'read_log' line 2 of 3" in it.pane("context").split("\n")[0]


# Texts of any size.


@pytest.mark.proof
@pytest.mark.parametrize(
    "made",
    [
        lambda: "".join(f"line {number:07} of a long log\n" for number in range(360_000)),
        lambda: "x" * 10_000_000,
        lambda: "\n" * 3_000_000,
    ],
    ids=["lines", "one line", "empty lines"],
)
def test_ten_megabytes_are_laid_out_and_searched_in_small_slices(made: Callable[[], str]) -> None:
    text = made()
    rows = LargeTextRows(text)
    longest = 0.0

    def timed(work: object) -> object:
        nonlocal longest
        assert callable(work)
        began = thread_time()
        result = work()
        longest = max(longest, thread_time() - began)
        return result

    timed(lambda: rows.lay_out(120))
    first = len(rows)
    assert first > 0
    timed(lambda: rows.row(first - 1, 120))
    timed(lambda: rows.find("needle in the hay", 0))
    finish(lambda: timed(lambda: rows.go_on(0.008)), lambda: not rows.growing)
    assert longest < 0.1
    assert len(rows) >= len(text) // 118


def test_a_match_far_down_a_huge_text_is_found_by_the_count_and_backwards() -> None:
    rows = LargeTextRows("hay\n" * 400_000 + "Needle\n" + "hay\n" * 10)
    rows.lay_out(80)
    tally = Tally(rows, "needle")
    finish(lambda: (rows.go_on(0.008), tally.go_on(0.008)), lambda: tally.done)  # type: ignore[func-returns-value]
    assert tally.hits == [400_000]
    assert rows.row(400_000, 80).text.strip() == "Needle"
    assert rows.find("needle", 400_005, -1) == 400_000


# On the screen.


def picture() -> bytes:
    buffer = io.BytesIO()
    Pillow.linear_gradient("L").convert("RGB").save(buffer, "PNG")
    return buffer.getvalue()


DIGEST = hashlib.sha256(picture()).hexdigest()
WHOLE = "first line\n" + "middle " * 20_000 + "\nlast line"
WHOLE_DIGEST = hashlib.sha256(WHOLE.encode()).hexdigest()


def pictured() -> Story:
    """A run whose second call sees an image and a result that was cut."""
    story = Story().start()
    phase = story.phase("draw", max_turns=2)
    turn = [phase._replace(attempt=1, turn=n, call=1) for n in (1, 2)]
    task = entry(Message("user", "Draw it."), Kind.TASK, turn[0], reason=("task",))
    image = Message("user", (TextPart("[Images from pen]:"), Image(DIGEST, "image/png", len(picture()), 256, 256)))
    shown = entry(image, Kind.IMAGES, turn[0], tool="pen")
    story.context(turn[0], [task])
    answer = story.answer(turn[0], "drawn")
    result = story.tool(turn[0], "dump", "{}", "first line\n[… cut …]\nlast line")
    story.events[-1].data["whole"] = {"digest": WHOLE_DIGEST, "chars": len(WHOLE)}  # type: ignore[index]
    said = entry(answer.message, Kind.ANSWER, turn[0], reason=("calls", "dump"))
    story.context(turn[1], [task, said, entry(result.message, Kind.RESULT, turn[0], tool="dump"), shown])
    last = story.answer(turn[1], "A gradient.")
    story.end_phase(phase, last.message.text)
    story.finish(last.message.text)
    return story


def shown(folder: Path, size: tuple[int, int] = (120, 40)) -> AbstractAsyncContextManager[Bench]:
    """The bench over the stored run, with its blobs in the store."""
    story = pictured()
    session = session_at(folder)
    with session.project.store.create(story.run_id) as journal:
        for data in (picture(), WHOLE.encode()):
            journal.blob(hashlib.sha256(data).hexdigest(), data)
        extend(journal, story.events)
    named = session.project.store.root / "images" / "log_triage-7f3a" / "draw"
    named.mkdir(parents=True)
    (named / "image_0.png").write_bytes(picture())
    return bench(folder, session=session, size=size, events=story.events)


async def coloured(it: Bench) -> None:
    """A terminal with colours, whatever the tests run in; all that is to be drawn is drawn."""
    it.presenter.gallery.enabled = True
    it.screen.panes.forget_detail()
    it.screen.panes.show_detail(it.presenter)
    await drawn(it)


def leave_summary(it: Bench) -> None:
    """Show the last call of a run that is over, in the place of its summary."""
    if it.presenter.state.summary:
        it.presenter.state.move(-1)
        it.screen.redraw()


async def look_at(it: Bench, entry: int) -> None:
    """Put the cursor on an entry of the context."""
    leave_summary(it)
    rows = it.screen.context_pane.rows
    assert isinstance(rows, ContextRows)
    it.screen.context_pane.move_to(
        next(i for i, ref in enumerate(rows.refs) if (ref.kind, ref.index) == ("entry", entry))
    )
    await it.pilot.pause()


async def drawn(it: Bench) -> None:
    await it.pilot.pause()
    await it.until(lambda: it.presenter.gallery.next() is None)
    await it.app.workers.wait_for_complete()
    await it.pilot.pause()


async def test_an_image_is_drawn_in_the_detail_and_larger_in_the_viewer(tmp_path: Path) -> None:
    async with shown(tmp_path) as it:
        await look_at(it, 3)
        assert "▀" not in it.pane("detail")
        assert f"[image/png 256×256 {len(picture()):,} bytes {DIGEST[:8]}]" in it.pane("detail")
        await coloured(it)
        small = it.pane("detail").count("▀")
        assert small > 50
        await it.press("enter")
        await drawn(it)
        assert isinstance(it.app.screen, MessageSheet)
        assert it.text().count("▀") > 4 * small


async def test_y_copies_the_path_of_an_image_and_capital_s_saves_it(tmp_path: Path) -> None:
    async with shown(tmp_path) as it:
        copied: list[str] = []
        it.app.copy = lambda text, what: copied.append(text)  # type: ignore[method-assign]
        await look_at(it, 3)
        await it.press("enter", "y")
        await it.app.workers.wait_for_complete()
        await it.until(lambda: copied)
        assert copied[0].endswith("images/log_triage-7f3a/draw/image_0.png")
        await it.press("S")
        assert "message.png" in it.text(), "a name is proposed"
        await it.press("ctrl+u")
        await it.type("copy.png")
        await it.press("enter")
        assert (tmp_path / "copy.png").read_bytes() == picture()
        await it.press("S")
        await it.press("ctrl+u")
        await it.type("copy.png")
        await it.press("enter")
        await it.until(lambda: "File exists" in it.text())


async def test_all_of_a_result_that_was_cut_opens_from_the_store(tmp_path: Path) -> None:
    async with shown(tmp_path) as it:
        await look_at(it, 2)
        await it.press("enter")
        assert f"The tool gave {len(WHOLE):,} characters; o opens all of them." in it.text()
        assert "middle" not in it.text()
        await it.press("o")
        await it.until(lambda: not isinstance(it.app.screen, MessageSheet))
        assert type(it.app.screen) is Sheet
        await it.until(lambda: "middle middle" in it.text())
        await it.press("slash")
        await it.type("last")
        await it.press("enter")
        await it.until(lambda: "'last' line 1 of 1" in it.text())


async def test_keys_change_the_form_and_say_why_there_is_none(tmp_path: Path) -> None:
    async with bench(tmp_path, events=triage_story().events) as it:
        await it.press("k", "k", "enter")
        sheet = it.app.screen
        assert isinstance(sheet, MessageSheet)
        assert sheet.form == "sides"
        await it.press("r")
        assert LOG_TEXT.split("\n")[0] in it.text()
        await it.press("w")
        assert '"tool_call_id": "call_1"' in it.text()
        await check_sizes(it, "message-wire")
        await it.press("h", "g")
        assert '▸ { "role": "tool", "content": ' in it.text().split("\n")[1]
        await it.press("s")
        await it.until(lambda: "Not a JSON object" in it.text())
        await it.press("tab")
        assert sheet.form == "sides"
        here = it.screen.context_pane.cursor
        await it.press("[")
        await it.until(lambda: LOG_TEXT.split("\n")[0] not in it.text(), "it shows the message before")
        assert it.screen.context_pane.cursor < here, "the context goes along"
        await it.press("]")
        await it.until(lambda: it.screen.context_pane.cursor == here, "it goes back")
        await it.press("escape")
        assert it.app.screen is it.screen


async def test_the_wire_form_is_the_message_as_it_was_sent(tmp_path: Path) -> None:
    async with bench(tmp_path, events=triage_story(finished=True).events) as it:
        call = it.presenter.state.run.calls[-1]
        leave_summary(it)
        view = it.presenter.viewed(0)
        assert view is not None
        assert view.wire is not None
        assert call.wire is not None
        assert json.loads(view.wire()) == json.loads(it.presenter.state.run.wire_bodies[call.wire.messages[0]])


def test_a_result_knows_where_all_of_it_lies() -> None:
    story = pictured()
    from workbench.engine.journal.state import RunState

    run = RunState.of(story.events)
    message = next(e.item.message for e in run.calls[1].entries if e.item.tool == "dump")
    assert run.wholes[message.body_hash] == FullResult(WHOLE_DIGEST, len(WHOLE))
    assert run.call_at(Place("", "draw", 1, 1, 1, 1)) is run.calls[0]
