"""A form in the app: what it shows, how it is filled in, and what becomes of the answer."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from textual import events
from textual.widgets import TextArea

from tests.ui.bench import Bench, bench, screen_text
from tests.ui.snapshot import check_at_rest, check_sizes
from tests.ui.support import triage_story
from workbench.engine.journal.event import Event
from workbench.tui.screens.form import FormDialog
from workbench.tui.widgets.choices import Choices
from workbench.tui.widgets.entry import LineInput

OPTIONS = [
    {"id": "wait", "title": "Wait a day", "description": "Ship on Monday.", "pros": ["safe"], "cons": ["slow"]},
    {"id": "ship", "title": "Ship now", "description": "Ship with a flag.", "pros": ["fast"], "cons": ["risky"]},
]
REVIEW: dict[str, Any] = {
    "title": "How shall the release go out?",
    "layout": "sidebar-left",
    "sections": [
        {"type": "markdown", "text": "## What changed\n- the parser\n- the store"},
        {"type": "image", "path": "charts/errors.png", "media_type": "image/png", "width": 640, "height": 400},
        {"type": "code", "text": "retries = 3\n", "before": "retries = 1\n", "language": "python"},
        {"type": "comparison", "id": "plan", "label": "Plan", "options": OPTIONS, "required": True},
        {
            "type": "data_table",
            "id": "tasks",
            "label": "Tasks that block it",
            "columns": ["Task", "Open"],
            "rows": [["parse", "3"], ["store", "0"]],
        },
        {"type": "multi_select", "id": "teams", "label": "Who is told?", "options": ["blue", "green", "red"]},
        {"type": "rating", "id": "risk", "label": "Risk", "max": 3},
        {"type": "input", "id": "days", "label": "Days", "kind": "integer", "min": 1},
    ],
}
PARTS: dict[str, Any] = {
    "sections": [
        {
            "type": "tabs",
            "panels": [
                {"title": "Yes or no", "sections": [{"type": "confirmation", "id": "sure", "label": "Sure?"}]},
                {"title": "Words", "sections": [{"type": "input", "id": "why", "kind": "multiline", "required": True}]},
            ],
        },
        {"type": "accordion", "panels": [{"title": "Details", "content": "Nobody reads this."}]},
    ]
}


@asynccontextmanager
async def asked(
    folder: Path, form: dict[str, Any], size: tuple[int, int] = (120, 40), **more: Any
) -> AsyncIterator[Bench]:
    story = triage_story()
    question = {"question": form.get("title", "What now?"), "context": "", "options": [], "type": "form", "form": form}
    story.emit("human_asked", story.events[-1].place, index=1, **{**question, **more})
    async with bench(folder, size=size, events=story.events) as it:
        await it.until(lambda: isinstance(it.app.screen, FormDialog), "no form came up")
        yield it


def listens(it: Bench) -> list[str]:
    """What the run is answered from now on: nobody runs behind this bench."""
    given: list[str] = []

    def answer(question: Event, text: str) -> bool:
        given.append(text)
        return True

    it.session.answer = answer  # type: ignore[method-assign]
    return given


async def sent(it: Bench) -> dict[str, Any]:
    """The answer that the app gives when the form is sent."""
    given = listens(it)
    await it.press("ctrl+s")
    await it.until(lambda: given, "the form was not sent")
    found: dict[str, Any] = json.loads(given[0])
    return found


async def test_a_form_fits_every_terminal(tmp_path: Path) -> None:
    async with asked(tmp_path, REVIEW, timeout=90) as it:
        await check_sizes(it, "form", picture=True)


async def test_a_form_is_filled_in_by_keys_alone(tmp_path: Path) -> None:
    async with asked(tmp_path, REVIEW) as it:
        await it.press("down", "space", "tab", "1", "tab", "1", "3", "tab", "2", "tab")
        await it.type("4")
        await it.press("tab")
        await it.type("go")
        answer = await sent(it)
        assert answer == {
            "values": {
                "plan": "ship",
                "tasks": [{"Task": "parse", "Open": "3"}],
                "teams": ["blue", "red"],
                "risk": 2,
                "days": 4,
            },
            "comment": "go",
        }
        assert it.app.screen is it.screen


async def test_what_does_not_fit_is_said_at_its_place_and_goes_when_it_is_mended(tmp_path: Path) -> None:
    async with asked(tmp_path, REVIEW) as it:
        await it.press("tab", "tab", "tab", "tab")
        await it.type("0")
        await it.press("ctrl+s")
        text = screen_text(it.app)
        assert "✗ an answer is needed" in text
        assert "✗ at least 1" in text
        assert "✗ 2 to fix: Plan, Days" in text
        await it.press("1")
        assert "✗ an answer is needed" not in screen_text(it.app)
        assert isinstance(it.app.screen, FormDialog), "the form waits until it fits"


@pytest.mark.parametrize("keys", [("2",), ("down", "space"), ("down", "enter")], ids=" ".join)
async def test_one_choice_and_enter_are_an_answer(tmp_path: Path, keys: tuple[str, ...]) -> None:
    form = {"sections": [{"type": "confirmation", "id": "answer", "required": True}]}
    async with asked(tmp_path, form) as it:
        given = listens(it)
        await it.press(*keys)
        await it.press("enter")
        await it.until(lambda: given)
        assert json.loads(given[0]) == {"values": {"answer": False}, "comment": None}


@pytest.mark.parametrize("comment", ["none", "optional"])
@pytest.mark.parametrize(
    "kinds", [("select",), ("rating", "select", "multi_select"), ("confirmation", "input")], ids=" ".join
)
async def test_a_digit_chooses_in_the_question_with_the_focus_and_stays_there(
    tmp_path: Path, kinds: tuple[str, ...], comment: str
) -> None:
    options = {"options": ["x", "y", "z"]}
    sections = [
        {"type": kind, "id": f"q{at}", "label": f"Q{at}", **(options if "select" in kind else {})}
        for at, kind in enumerate(kinds)
    ]
    async with asked(tmp_path, {"sections": sections, "comment": comment}) as it:
        lists = list(it.app.screen.query(Choices))
        assert "or 1-9 choose" in screen_text(it.app)
        await it.press("1")
        assert it.app.focused is lists[0]
        await it.press("2")
        assert it.app.focused is lists[0]
        assert [len(one.chosen) for one in lists] == [1] + [0] * (len(lists) - 1)


@pytest.mark.parametrize("kind", ["confirmation", "select", "rating"])
async def test_the_same_number_again_keeps_the_only_choice_and_space_takes_it_back(tmp_path: Path, kind: str) -> None:
    form = {"sections": [{"type": kind, "id": "a", **({"options": ["x", "y"]} if kind == "select" else {})}]}
    async with asked(tmp_path, form) as it:
        (choices,) = it.app.screen.query(Choices)
        await it.press("2", "2")
        assert len(choices.chosen) == 1, "the second press took the choice back without a word"
        await it.press("space")
        assert choices.chosen == []


async def test_enter_on_the_choice_that_is_made_goes_on_and_keeps_it(tmp_path: Path) -> None:
    one = {"type": "select", "id": "a", "options": [{"id": "x", "label": "X"}, {"id": "y", "label": "Y"}]}
    async with asked(tmp_path, {"sections": [one, {"type": "input", "id": "b"}]}) as it:
        given = listens(it)
        await it.press("down", "enter", "enter")
        await it.type("z")
        await it.press("ctrl+s")
        await it.until(lambda: given)
        assert json.loads(given[0])["values"] == {"a": "y", "b": "z"}


async def test_an_option_of_several_lines_goes_on_below_its_own_words(tmp_path: Path) -> None:
    option = {"id": "a", "title": "Alpha " * 20, "description": "Because " * 20}
    other = {"id": "b", "title": "Beta"}
    form = {"sections": [{"type": "card_grid", "id": "plan", "options": [option, other]}]}

    async with asked(tmp_path, form, size=(80, 24)) as it:
        lines = screen_text(it.app).splitlines()
        starts = {word: [line.index(word) for line in lines if word in line] for word in ("Alpha", "Because")}
        assert [len(set(found)) for found in starts.values()] == [1, 1]
        assert all(len(found) > 1 for found in starts.values())
        await it.pilot.resize_terminal(40, 12)
        await it.until(lambda: "Beta" not in screen_text(it.app), "there is room for all")
        await it.press("down")
        await it.until(lambda: "Beta" in screen_text(it.app), "the option with the cursor is out of sight")


async def test_enter_on_a_line_that_is_refused_stays_there(tmp_path: Path) -> None:
    fields = [{"type": "input", "id": "days", "kind": "integer"}, {"type": "input", "id": "why"}]

    async with asked(tmp_path, {"sections": fields}) as it:
        await it.type("soon")
        await it.press("enter")
        assert "✗" in screen_text(it.app)
        assert it.app.screen.focused is it.app.screen.query(LineInput).first()
        await it.press("ctrl+u", "4", "enter")
        assert "✗" not in screen_text(it.app)
        assert it.app.screen.focused is not it.app.screen.query(LineInput).first()
        await it.press("enter")
        assert it.app.screen.focused is not it.app.screen.query(LineInput)[1], "an empty line is left"


async def test_the_mouse_chooses_and_opens_panels(tmp_path: Path) -> None:
    async with asked(tmp_path, PARTS) as it:
        assert "Nobody reads this." not in screen_text(it.app)
        names = list(it.app.screen.query(".panel-name"))
        await it.pilot.click(names[2])
        await it.pilot.pause()
        assert "Nobody reads this." in screen_text(it.app)
        await it.pilot.click(".choices", offset=(2, 0))
        assert "space or 1-9 choose" in screen_text(it.app)
        it.app.screen.query_one("#comment").focus()
        await it.pilot.pause()
        assert "1-9 choose" not in screen_text(it.app), "in the comment it writes a blank"
        await it.press("ctrl+s")
        await it.pilot.pause()
        assert "✗ an answer is needed" in screen_text(it.app), "the tab with the mistake is opened"
        await check_at_rest(it, "form-panels-120x40")


async def test_escape_leaves_the_run_waiting_and_the_key_of_answers_asks_again(tmp_path: Path) -> None:
    async with asked(tmp_path, REVIEW) as it:
        await it.press("escape")
        assert it.app.screen is it.screen
        assert it.presenter.situation() == "asked"
        await it.press("a")
        await it.until(lambda: isinstance(it.app.screen, FormDialog), "the screen did not open")
        assert isinstance(it.app.screen, FormDialog)


async def test_a_run_that_was_stopped_at_a_question_asks_it_again_when_it_goes_on(tmp_path: Path) -> None:
    text = "cascade_id: c\nphases:\n  - {name: sure, instructions: Say it., human_input: true}\n"

    async with bench(tmp_path, text=text, replies="replies: {sure: [{text: Done.}]}", given={}) as it:
        await it.press("c")
        await it.until(lambda: isinstance(it.app.screen, FormDialog), "no form came up")
        await it.press("escape", "x")
        await it.until(lambda: it.presenter.state.run.status == "stopped" and not it.session.running)
        await it.press("c")
        await it.until(lambda: isinstance(it.app.screen, FormDialog), "the question did not come back")
        await it.press("1", "enter")
        await it.until(lambda: it.presenter.state.run.status == "success")


async def test_a_form_that_was_left_comes_back_as_it_was(tmp_path: Path) -> None:
    async with asked(tmp_path, REVIEW) as it:
        await it.press("2", "tab", "1", "tab", "space", "tab", "3", "tab", "0", "tab")
        await it.type("not yet")
        await it.press("escape")
        await it.until(lambda: it.app.screen is it.app.bench)
        await it.press("a")
        await it.until(lambda: isinstance(it.app.screen, FormDialog) and it.app.screen.query("#comment"))
        given = listens(it)
        await it.press("ctrl+s")
        assert "✗ at least 1" in it.text()
        it.app.screen.query_one("FieldBox LineInput", LineInput).value = "4"
        await it.press("ctrl+s")
        await it.until(lambda: given)
        tasks = [{"Task": "parse", "Open": "3"}]
        values = {"plan": "ship", "tasks": tasks, "teams": ["blue"], "risk": 3, "days": 4}
        assert json.loads(given[0]) == {"values": values, "comment": "not yet"}


async def test_what_is_mended_is_no_longer_told_and_what_is_wrong_is_in_view(tmp_path: Path) -> None:
    lines = {"type": "input", "id": "story", "label": "Story", "kind": "multiline", "required": True}
    options = ["one", {"id": "other", "comment": True}]
    which = {"type": "select", "id": "which", "label": "Which", "required": True, "options": options}

    async with asked(tmp_path, {"sections": [lines, which]}, size=(80, 20)) as it:
        await it.press("ctrl+s")
        assert "✗ 2 to fix: Story, Which" in it.text()
        await it.press("x")
        await it.until(lambda: "✗ 1 to fix: Which" in it.text())
        assert "✗ an answer is needed" not in it.text().split("Which")[0]
        for key in ("y", "tab", "2"):  # Faster than the app takes them.
            it.app.post_message(events.Key(key, key if len(key) == 1 else None))
        await it.until(lambda: "to fix" not in it.text())
        assert it.app.screen.query_one(TextArea).text == "xy"
        await it.press("ctrl+s")
        await it.until(lambda: "✗ 'other' needs a comment" in it.text(), it.text())
        await it.press("y")
        await it.until(lambda: "needs a comment" not in it.text().split("Comment")[1])


async def test_a_form_says_all_that_there_is_to_know_and_takes_the_last_of_two_answers(tmp_path: Path) -> None:
    remark = "a remark that needs more than the thirty cells of a line"
    sections = [
        {"type": "data_table", "columns": ["Name", "Remark"], "rows": [["a", remark]], "selectable": "none"},
        {"type": "data_table", "id": "row", "columns": ["Name", "Remark"], "rows": [["b", remark]]},
        {"type": "input", "id": "days", "kind": "integer", "default": 3},
        {"type": "multi_select", "id": "teams", "label": "Teams", "options": ["x", "y", "z"], "min": 1, "max": 2},
        {"type": "select", "id": "colour", "options": ["red", "green"], "other": True},
    ]

    async with asked(tmp_path, {"sections": sections}, size=(80, 40)) as it:
        text = it.text()
        assert text.count(remark) == 2
        assert " 3 " in text
        assert "3.0" not in text
        assert "Teams · choose 1 to 2" in text
        box = it.app.screen.query("FieldBox").last()
        box.query_one(Choices).focus()
        await it.press("1", "tab")
        await it.type("teal")
        assert box.query_one(Choices).chosen == []
        await it.press("shift+tab", "2")
        await it.until(lambda: box.query_one(LineInput).value == "")
        given = listens(it)
        await it.press("ctrl+s")
        await it.until(lambda: given)
        assert json.loads(given[0])["values"] == {"days": 3, "colour": "green"}


async def test_columns_are_stacked_when_the_terminal_becomes_narrow_and_nothing_typed_is_lost(tmp_path: Path) -> None:
    async with asked(tmp_path, REVIEW) as it:
        await it.press("2", "tab", "tab", "tab", "tab")
        await it.type("7")
        await it.pilot.resize_terminal(80, 24)
        await it.until(lambda: len(it.app.screen.query(".column")) == 1)
        answer = await sent(it)
        assert answer["values"] == {"plan": "ship", "days": 7}


async def test_a_form_laid_out_anew_keeps_its_open_panels_its_objections_and_the_focus(tmp_path: Path) -> None:
    fields = [{"type": "rating", "id": "risk", "label": "Risk", "max": 3, "required": True}]
    form = {**PARTS, "layout": "two-column", "sections": [*fields, *PARTS["sections"]]}
    async with asked(tmp_path, form) as it:
        details, _, words = it.app.screen.query(".panel-name")
        await it.pilot.click(words)
        await it.pilot.click(details)
        await it.press("ctrl+s")
        await it.press("1")
        await it.pilot.click(".lines")
        await it.pilot.resize_terminal(80, 40)
        await it.until(lambda: len(it.app.screen.query(".column")) == 1)
        await it.pilot.pause()
        text = screen_text(it.app)
        assert "▾ Details" in text
        assert text.count("✗ an answer is needed") == 1, "of the two, one is given by now"
        assert "✗ 1 to fix: why" in text
        await it.press("x")
        answer = await sent(it)
        assert answer["values"] == {"risk": 1, "why": "x"}


HOSTILE = "[b]x[/] [@click=app.quit]y[/] \x1b]0;owned\x07 \u202e [/"


def hostile(value: Any) -> Any:
    """The same form with such text wherever text may stand."""
    if isinstance(value, dict):
        kept = ("type", "id", "kind", "layout", "columns", "rows")
        return {key: inner if key in kept else hostile(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [hostile(inner) for inner in value]
    return HOSTILE if isinstance(value, str) else value


@pytest.mark.parametrize("form", [REVIEW, PARTS], ids=["review", "panels"])
async def test_hostile_text_is_shown_and_does_nothing(tmp_path: Path, form: dict[str, Any]) -> None:
    async with asked(tmp_path, hostile(form), question=HOSTILE, context=HOSTILE, to=HOSTILE) as it:
        text = screen_text(it.app)
        assert "[@click=app.quit]" in text
        assert "\x1b" not in text
        assert "\u202e" not in text
        await it.press("ctrl+s")
        await it.until(lambda: isinstance(it.app.screen, FormDialog), "the screen did not open")
        assert isinstance(it.app.screen, FormDialog)


async def test_a_form_of_a_newer_version_is_asked_as_text(tmp_path: Path) -> None:
    story = triage_story()
    body = {"question": "What now?", "context": "", "options": [], "type": "form", "form": {"sections": []}}
    story.emit("human_asked", story.events[-1].place, index=1, **body)
    async with bench(tmp_path, events=story.events) as it:
        await it.until(lambda: it.app.screen is not it.screen)
        assert not isinstance(it.app.screen, FormDialog)
        assert "What now?" in screen_text(it.app)
        await it.type("half")
        await it.press("escape", "a")
        await it.until(lambda: it.app.screen is not it.screen and "half" in screen_text(it.app), "it was lost")


async def test_an_image_is_drawn_where_the_terminal_can_show_it_and_one_that_cannot_be_read_says_why(
    tmp_path: Path,
) -> None:
    from PIL import Image

    Image.new("RGB", (64, 32), "red").save(tmp_path / "chart.png")
    form = {
        "sections": [
            {"type": "image", "path": "chart.png"},
            {"type": "image", "path": "../secret.png"},
            {"type": "input", "id": "x"},
        ]
    }

    story = triage_story()
    async with bench(tmp_path, events=story.events) as it:
        it.presenter.gallery.enabled = True
        body = {"question": "Fine?", "context": "", "options": [], "type": "form", "form": form}
        story.emit("human_asked", story.events[-1].place, index=1, **body)
        await it.feed(story.events[-1:])
        await it.until(lambda: "▀" in screen_text(it.app), "no picture came")
        why = "not shown: '../secret.png' does not exist in the workspace"
        await it.until(lambda: why in screen_text(it.app), "nothing says why")
        drawn = [line for line in screen_text(it.app).splitlines() if "▀▀" in line]
        assert len(drawn) == 13, "a third of the height: what is asked of it stands below"


async def test_a_question_that_a_re_run_answers_from_its_recording_leaves_the_screen_without_a_word(
    tmp_path: Path,
) -> None:
    story = triage_story()
    place = story.events[-1].place
    story.events[0] = replace(story.events[0], at="2100-01-01T00:00:00.000000Z")
    story.emit("human_asked", place, index=1, question="Fine?", context="", options=[], type="form", form=PARTS)
    async with bench(tmp_path, events=story.events) as it:
        await it.until(lambda: isinstance(it.app.screen, FormDialog))
        story.emit("human_answered", place, index=1, answer="yes")
        await it.feed(story.events[-1:])
        await it.until(lambda: it.app.screen is it.screen)
        assert "Too late" not in screen_text(it.app)


async def test_a_question_whose_time_is_over_leaves_the_screen(tmp_path: Path) -> None:
    story = triage_story()
    place = story.events[-1].place
    body = {"question": "Fine?", "context": "", "options": [], "type": "form", "form": PARTS, "timeout": 5}
    story.emit("human_asked", place, index=1, **body)
    async with bench(tmp_path, events=story.events) as it:
        await it.until(lambda: isinstance(it.app.screen, FormDialog))
        story.emit("human_answered", place, index=1, answer=None, timed_out=True)
        await it.feed(story.events[-1:])
        await it.until(lambda: it.app.screen is it.screen)
        assert "Too late: the question was closed." in screen_text(it.app)
        assert "no answer in time" in it.pane("dock")


WIDE_TABLE: dict[str, Any] = {
    "type": "data_table",
    "id": "tasks",
    "columns": ["Task", "Owner", "State of the work"],
    "rows": [["write the parser of lists", "blue team", "open since Monday"], ["store", "green", "done"]],
}


async def test_the_rows_of_a_table_stay_one_line_each_where_there_is_little_room(tmp_path: Path) -> None:
    async with asked(tmp_path, {"sections": [WIDE_TABLE]}, size=(40, 24)) as it:
        (choices,) = it.app.screen.query(Choices)
        await it.until(lambda: choices.size.height)
        assert choices.size.height == 2
        rows = [line.partition("☐")[2] for line in screen_text(it.app).splitlines() if "☐" in line]
        assert [len(row.rstrip(" │").split("  ")) > 1 for row in rows] == [True, True]
        assert "write" in rows[0]
        assert "open" in rows[0], "every column has some room"


async def test_a_form_that_is_higher_than_the_terminal_begins_at_its_beginning(tmp_path: Path) -> None:
    """Also where its first answer is below the edge, and when the terminal changes before a key is pressed."""
    options = ["online", "later"]
    verdict = {"type": "select", "id": "verdict", "label": "Your verdict", "options": options}
    rating = {"type": "rating", "id": "sure", "label": "How sure are you?", "max": 5}
    context = "\n".join(f"fact {n}" for n in range(4))
    async with asked(tmp_path, {"sections": [verdict, rating]}, size=(80, 12), context=context) as it:
        for size in ((80, 12), (80, 14), (78, 13)):
            await it.pilot.resize_terminal(*size)
            await it.until(lambda: "fact 0" in screen_text(it.app), "its beginning is above the edge")
        await it.press("down")
        await it.until(lambda: "later" in screen_text(it.app), "the cursor is not in view")
