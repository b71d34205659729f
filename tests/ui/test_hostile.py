"""Text from outside is data: in every pane, title, dialog, toast and tooltip it styles, links and moves nothing."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest
from textual import events
from textual.content import Content
from textual.markup import MarkupError
from textual.widgets import Input

from tests.ui.bench import Bench, bench, screen_strips, screen_text
from tests.ui.support import TRIAGE, Story, entry
from workbench.context.assembly import Kind
from workbench.context.cache import Forecast
from workbench.context.message import Message, ToolCall
from workbench.context.place import Place
from workbench.engine.contracts import Notice
from workbench.engine.journal.event import Event
from workbench.language.model.cascade import Audibles
from workbench.tui.bench.presenter import Detail
from workbench.tui.bench.tabs import TABS
from workbench.tui.screens.dialog import ChoiceDialog
from workbench.tui.screens.feedback import FeedbackDialog
from workbench.tui.screens.inputs import InputForm
from workbench.tui.screens.question import QuestionDialog
from workbench.tui.text import plain
from workbench.views.summary import SummaryRows
from workbench.workspace.input_file import as_line

BREAKING = ("[/]", "[/x]", "[link='x]", "[link=http://example.invalid]here[/link]", "[bold][/italic]")
"""What Textual refuses as markup."""
MARKUP = (
    "[@click=app.quit]x[/]",
    "[b]bold[/b]",
    "[red]red",
    "items[i]",
    "[[nested]]",
    "\\[escaped]",
    "[!]",
    "[$primary]x[/]",
    "[#zz]x",
    ":warning:",
    "[on red]x[/on red",
)
"""What it takes as markup, also one after the other."""
ESCAPES = (
    "\x1b]52;c;aGVsbG8=\x07",
    "\x1b]0;title\x07",
    "\x1b[2J\x1b[H",
    "\x9b31m",
    "\x1bP+q544e\x1b\\",
    "\x07\x08\x0b\x0c\r",
    "\x7f",
    "\u202egnp.exe",
    "\u2066hidden\u2069",
    "\ud800",
    "\x00",
    "\x1b[?1049l",
    "\x1b]8;;http://example.invalid\x1b\\link\x1b]8;;\x1b\\",
)
ALL = (*BREAKING, *MARKUP, *(" ".join(ESCAPES[i::4]) for i in range(4)))
TOGETHER = tuple(" ".join(payloads) for payloads in (BREAKING, MARKUP, ESCAPES))
"""All of them in three texts: each text does what its parts do."""
MODES: tuple[Detail, ...] = ("why", "wire", "wire")
STEERING = re.compile(r"[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def hostile_story(payload: str, text: str = TRIAGE) -> Story:
    """A run of a file in which every text that can come from outside is the payload."""
    story = Story().start(text, {payload: payload})
    triage = story.phase(payload, max_turns=3, tools=[payload])
    place = triage._replace(attempt=1, turn=1, call=1)
    call = ToolCall("c1", payload, payload)
    base = [
        entry(Message("user", payload), Kind.TASK, place, reason=("task",), rule=(payload, 3)),
        entry(Message("user", payload), Kind.INJECTED, place, reason=("source", payload), source=payload),
        entry(Message("assistant", payload, (call,)), Kind.ANSWER, place, reason=("calls", payload)),
        entry(Message("tool", payload, tool_call_id="c1"), Kind.RESULT, place, reason=("x" + payload,), tool=payload),
    ]
    forecast = Forecast(10, 5, 0, 0.1, 1, payload)
    story.context(place, base, strategy=payload, forecast=forecast, problems=[(1, payload, 2)], notes=[payload])
    error = {"kind": payload, "message": payload, "status": payload, "body": payload}
    story.emit("call_failed", place, digest="", error=error, retry_in=1.0, wire=None, purpose="turn", **{"try": 1})
    story.answer(place, payload, [call])
    story.tool(place, payload, payload, payload, error=True)
    story.emit("state_set", triage, key=payload, value=payload, by=payload)
    story.emit("check_finished", place, check=payload, name=payload, mode="retry", valid=False, reason=payload)
    story.emit("warning", place, code=payload, message=payload, file=payload, line=3, column=1)
    story.emit("human_asked", place, index=1, question=payload, context=payload, options=[payload])
    story.emit("human_answered", place, index=1, answer=payload)
    story.emit("callout", place, name=payload, target=payload)
    story.emit("edited", place, what=payload, before=payload, after=payload)
    story.emit(payload, place, text=payload)
    story.context(place._replace(turn=2), base, strategy=payload, forecast=forecast)
    story.end_phase(triage, payload, to=payload, reason=payload)
    story.finish(payload, reason=payload)
    return story


def assert_harmless(it: Bench, *about: object) -> None:
    """Nothing on the screen moves a cursor, links or reacts, and what is drawn fits; a failure says ``about`` what."""
    strips = screen_strips(it.app)
    text = "".join(strip.text for strip in strips)
    assert not STEERING.search(text), (*about, STEERING.findall(text))
    for strip in strips:
        for _, style, control in strip:
            assert control is None, about
            assert style is None or (style.link is None and "@click" not in style.meta), about


@pytest.mark.fault("F28", "F29")
async def test_no_pane_and_no_sheet_lets_a_payload_through(tmp_path: Path) -> None:
    async with bench(tmp_path, size=(100, 30)) as it:
        for payload in TOGETHER:
            await show_everywhere(it, payload)


@pytest.mark.proof
async def test_no_pane_and_no_sheet_lets_a_payload_through_that_stands_alone(tmp_path: Path) -> None:
    async with bench(tmp_path, size=(100, 30)) as it:
        for payload in ALL:
            await show_everywhere(it, payload)


def test_all_payloads_together_would_do_what_each_of_them_does() -> None:
    breaking, markup, escapes = TOGETHER
    with pytest.raises(MarkupError):
        Content.from_markup(breaking)
    assert any("@click" in str(span.style) for span in Content.from_markup(markup).spans)
    assert all(escape in escapes for escape in ESCAPES)


async def show_everywhere(it: Bench, payload: str) -> None:
    """Look at the panes and the sheet of a run in which every text is the payload."""
    screen = it.screen
    events = hostile_story(payload).events
    await it.feed(events[:-1])
    for name, _ in TABS:
        screen.action_tab(name)
        assert_harmless(it, payload, name)
    for mode in MODES:
        screen.action_detail(mode)
        screen.context_pane.action_up()
        await it.pilot.pause()
        assert_harmless(it, payload, mode)
    screen.context_pane.action_open()
    await it.pilot.pause()
    assert it.app.screen is not screen
    assert_harmless(it, payload, "sheet")
    await it.press("escape")
    place = it.presenter.state.run.calls[-1].place
    notices = [
        Notice("waiting", place, {"try": 2}),
        Notice("text", place, {"text": payload}),
        Notice("held", place, {"stop": payload, "why": payload, "tool": payload}),
    ]
    await it.feed(notices=notices)
    assert_harmless(it, payload, "held")
    assert it.presenter.state.waiting
    await it.feed(notices=[Notice("released", place), Notice("failed", place, {"message": payload})])
    assert_harmless(it, payload, "failed")
    await it.feed(events[-1:])
    assert_harmless(it, payload, "finished")
    it.presenter.state.summary = True
    screen.redraw()
    await it.pilot.pause()
    assert isinstance(screen.context_pane.rows, SummaryRows)
    assert_harmless(it, payload, "summary")


@pytest.mark.fault("F28", "F29")
async def test_no_dialog_no_toast_and_no_tooltip_lets_a_payload_through(tmp_path: Path) -> None:
    async with bench(tmp_path, size=(100, 40)) as it:
        for part in range(4):
            await ask_everywhere(it, ALL[part::4])


async def ask_everywhere(it: Bench, payloads: tuple[str, ...]) -> None:
    """Look at toasts, dialogs and a tooltip with all the payloads."""
    text = "\n".join(payloads)
    data = {"index": 1, "question": text, "context": text, "options": list(payloads)}
    event = Event(1, "", "r", "human_asked", Place("", text, 1, 1, 1, 1), data)
    for payload in payloads:
        it.app.say(payload, "error")
    for screen in (
        QuestionDialog(event),
        FeedbackDialog(text, Audibles(enabled=True), 1),
        InputForm({payload: payload for payload in payloads}, dict.fromkeys(payloads, text)),
        ChoiceDialog(text, text, [(str(number), "a", payload) for number, payload in enumerate(payloads)]),
    ):
        await it.app.push_screen(screen)
        await it.pilot.pause()
        assert_harmless(it, payloads, screen)
        await it.press("escape")
    it.app.notices.clear()
    it.screen.context_pane.tooltip = plain(text)
    await it.pilot.hover("#context", offset=(5, 3))
    await it.until(lambda: payloads[0][:2] in screen_text(it.app) or "�" in screen_text(it.app))
    assert_harmless(it, payloads, "tooltip")
    await it.pilot.hover("#header")


async def test_what_is_pasted_or_prefilled_into_a_line_is_clean_and_comes_back_as_it_was(tmp_path: Path) -> None:
    async with bench(tmp_path) as it:
        taken: list[object] = []
        form = InputForm({"log": "Path"}, {"log": "a\x1b[31m\nb"})
        it.app.push_screen(form, taken.append)
        await it.pilot.pause()
        assert_harmless(it)
        form.query_one(Input).post_message(events.Paste("\x1b]0;x\x07"))
        await it.pilot.pause()
        assert_harmless(it)
        form.query_one(Input).value = as_line("a\x1b[31m\nb")
        await it.press("enter")
        assert taken == [{"log": "a\x1b[31m\nb"}]


@pytest.mark.parametrize("payload", ["[/]\\e]0;x\\x07", "[@click=app.quit]x[/]a[b]c"])
async def test_a_hostile_file_is_shown_as_it_is(tmp_path: Path, payload: str) -> None:
    text = f'cascade_id: "{payload}"\nphases:\n  - name: "{payload}"\n    instructions: "{payload}"\n'

    async with bench(tmp_path, size=(100, 30), text=text) as it:
        assert_harmless(it)
        for key in ("2", "p", "m", "ctrl+o", "escape", "question_mark"):
            await it.press(key)
            assert_harmless(it)


@pytest.mark.fault("F29")
async def test_markup_in_a_reply_is_shown_literally_and_is_clickable_nowhere(tmp_path: Path) -> None:
    payload = "[@click=app.quit]x[/] and [b]bold[/b]"

    async with bench(tmp_path, events=hostile_story(payload).events) as it:
        await it.press("4")
        assert payload in it.pane("dock")
        await it.pilot.click("#dock", offset=(3, 3))
        assert it.app.is_running


@pytest.mark.fault("F27")
@pytest.mark.proof
async def test_megabytes_of_an_answer_do_not_stop_the_screen(tmp_path: Path) -> None:
    """A machine may be slow; the screen's work must not depend on how long an answer is. So an answer of 10 MB is
    compared with one of 200 kB, which is cut for the screen as well: the frame in which it arrives, and each key."""

    def told(words: int) -> Story:
        story = Story().start()
        place = story.phase("triage", max_turns=3)._replace(attempt=1, turn=1, call=1)
        story.context(place, [entry(Message("user", "go"), Kind.TASK, place, reason=("task",))])
        story.answer(place, "word " * words)
        return story

    async def costs(words: int) -> tuple[float, float]:
        """CPU seconds of the answer's arrival, and of the cheapest round of keys."""
        events = told(words).events
        async with bench(tmp_path) as it:
            start = time.process_time()
            await it.feed(events)
            arrival, keys = time.process_time() - start, []
            for _ in range(3):
                start = time.process_time()
                await it.press("down", "up", "G", "home")
                keys.append(time.process_time() - start)
            await it.press("G")
            assert "characters left out here" in "".join(line.text for line in it.screen.detail_pane.rows.lines)  # type: ignore[attr-defined]
            return arrival, min(keys)

    (small, small_keys), (large, large_keys) = await costs(40_000), await costs(2_000_000)
    assert large_keys < 2.5 * small_keys, "an answer that is 50 times as long makes keys slower"
    assert large < 4 * small, "an answer that is 50 times as long holds the screen up when it comes"
