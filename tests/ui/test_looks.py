"""What stands on a screen keeps its meaning at every width: nothing is cut or wrapped that says something else then."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from rich.cells import cell_len
from textual.color import Color

from tests.ui.bench import Bench, bench, screen_strips, screen_text
from tests.ui.stored import stored_runs
from tests.ui.support import triage_story
from tests.ui.test_candidates import JUDGING, REPLIES
from tests.ui.test_snapshots import HELD
from workbench.resources import folder
from workbench.themes import load_themes
from workbench.tui.palette import contrast
from workbench.tui.screens.candidates import CandidatesScreen
from workbench.views.cells import crop, fit, fit_ends, whole_parts
from workbench.views.form import markdown_pieces
from workbench.views.settings import order_words
from workbench.views.text import DrawnRows, TextLine, explained

# The colours that a terminal gives the first eight, where nobody chose others.
SIXTEEN = {
    **{"red": "#cd0000", "green": "#00cd00", "yellow": "#cdcd00", "blue": "#0000ee", "magenta": "#cd00cd"},
    **{"cyan": "#00cdcd", "bright_black": "#7f7f7f", "bright_blue": "#5c5cff", "bright_red": "#ff0000"},
}


@pytest.mark.parametrize(
    ("width", "shown"), [(40, "8 tokens · 18 chars · 15b4"), (20, "8 tokens · 18 chars"), (6, "8 tok…")]
)
def test_the_facts_of_a_title_go_one_by_one(width: int, shown: str) -> None:
    assert "".join(text for text, _ in whole_parts([("8 tokens · 18 chars · 15b4", "dim")], width)) == shown


@pytest.mark.parametrize(
    ("width", "shown"), [(19, "a minimum of 2,048"), (17, "a minimum of …"), (15, "a minimum of …"), (10, "a minimum…")]
)
def test_a_number_is_never_cut_to_another_one(width: int, shown: str) -> None:
    cut = "".join(text for text, _ in crop([("a minimum of 2,048", "dim")], width))
    assert cut.rstrip() == fit("a minimum of 2,048", width).rstrip() == shown
    assert len(fit("a minimum of 2,048", width)) == width


@pytest.mark.parametrize("width", range(8, 26))
def test_what_is_drawn_as_one_is_never_cut_in_two(width: int) -> None:
    parts = ("👩\u200d👩\u200d👧\u200d👦", "🇩🇪", "🇫🇷", "👍🏽", "1\ufe0f\u20e3", "e\u0301\u0301")
    text = "a " + "".join(parts) + " " + " ".join(reversed(parts)) + " z"
    for shown in (fit(text, width), fit_ends(text, width)):
        left = shown.replace("\u2026", "")
        for part in sorted(parts, key=len, reverse=True):
            left = left.replace(part, "")
        assert not left.strip("az "), left
        assert cell_len(shown) == width


def test_names_with_digits_are_cut_like_any_text() -> None:
    assert fit("0190c6f2-7f3a", 11) == "0190c6f2-7…"
    assert fit("0190c6f21-7f3a", 9) == "0190c6f2…"


def test_a_sign_never_stands_without_its_word() -> None:
    legend = [("★", "ok"), (" won  ", "dim"), ("●", "ok"), (" frontier", "dim")]
    assert whole_parts(legend, 17) == tuple(legend)
    assert whole_parts(legend, 12) == (("★", "ok"), (" won", "dim"))


def test_what_an_empty_list_says_is_wrapped_and_hangs_under_its_text() -> None:
    assert explained(("No row.", "", "d  opens the tour of it"), 14) == ("No row.", "", "d  opens the", "   tour of it")


def test_a_drawing_is_made_anew_for_another_width() -> None:
    rows = DrawnRows(lambda room: [TextLine("-" * room)], ())
    for width in (120, 60, 90):
        rows.lay_out(width)
        assert len(rows) == 1
        assert len(rows.row(0, width).text) <= width


@pytest.mark.parametrize("room", [10, 56, 60, 68, 120])
def test_the_order_of_settings_is_said_whole_or_not_at_all(room: int) -> None:
    words = order_words(room)
    assert len(words) <= room
    assert not words or words.endswith(("default", "wins"))


def test_markdown_of_a_form_shows_no_marks() -> None:
    text = "".join(text for text, _ in markdown_pieces("# Top\n- a **strong** `word`\n> said"))
    assert text == "Top\n• a strong word\n▌ said"


@pytest.mark.parametrize("name", ["ansi-dark", "ansi-light"])
def test_sixteen_colours_can_be_read_on_their_ground(name: str) -> None:
    theme = load_themes([folder("themes")]).by_name[name]
    ground = Color.parse("#000000" if theme.dark else "#ffffff")
    for value in (theme.primary, theme.secondary, theme.accent, theme.warning, theme.error, theme.success):
        color = str(value).removeprefix("ansi_")
        assert color == "default" or contrast(Color.parse(SIXTEEN[color]), ground) >= 4.4, color


@pytest.mark.parametrize("theme", ["ansi-dark", "ansi-light"])
async def test_the_cursor_of_a_prompt_shows_in_sixteen_colours(tmp_path: Path, theme: str) -> None:
    async with bench(tmp_path, size=(80, 24), theme=theme, given={}) as it:
        await it.press("slash", "c")
        cells = list(screen_strips(it.app)[23])
        cursor = next(cell.style for cell in cells if cell.text == " " and cell.style and cell.style.reverse)
        assert cursor.color is not None
        assert cursor.color.is_default, "reversed, it is the text's colour on any ground"


async def test_a_zoomed_pane_says_how_to_come_back(tmp_path: Path) -> None:
    async with bench(tmp_path, size=(80, 24), events=triage_story().events, notices=[HELD]) as it:
        await it.press("z")
        assert it.text().splitlines()[-1].startswith(" z all panes  n step")
        await it.press("z")
        assert "all panes" not in it.text()


def shows(it: Bench, text: str) -> bool:
    return text in screen_text(it.app)


async def test_the_smallest_terminal_has_room_for_a_list_and_the_footer(tmp_path: Path) -> None:
    async with bench(tmp_path, size=(40, 12), given={}) as it:
        for key, row in (("comma", "▌  default_model"), ("H", "log_triage.yaml")):
            await it.press(key)
            await it.until(partial(shows, it, row), f"{row} does not show")
            assert "? help" in screen_text(it.app).splitlines()[11]
            await it.press("escape")


async def test_the_footer_of_the_smallest_terminal_has_a_key_of_what_goes_on_and_the_help(tmp_path: Path) -> None:
    async with bench(tmp_path, size=(40, 12), events=triage_story().events, notices=[HELD]) as it:
        footer = it.text().splitlines()[-1]
        assert footer.startswith(" n step ")
        assert footer.rstrip().endswith("? help  q quit")
        x = footer.index("? help")
        await it.pilot.click("#footer", offset=(x, 0))
        await it.until(partial(shows, it, "Help"), "a click on the help that is left does not open it")


async def test_the_footer_of_the_runs_names_what_q_does_there(tmp_path: Path) -> None:
    stored_runs(tmp_path)
    async with bench(tmp_path, size=(80, 24)) as it:
        await it.press("escape", "L")
        await it.until(lambda: "Runs" in screen_text(it.app).splitlines()[0])
        footer = it.text().splitlines()[-1]
        assert "esc back" in footer
        assert "quit" not in footer


async def test_a_candidate_that_is_held_does_not_show_as_running(tmp_path: Path) -> None:
    text = JUDGING.replace("max_parallel: 2", "max_parallel: 1")
    async with bench(tmp_path, text=text, replies=REPLIES, given={"topic": "hits"}) as it:
        await it.press("n")
        await it.until(lambda: it.presenter.state.held is not None, "the run was not held")
        await it.press("C")
        await it.until(lambda: isinstance(it.app.screen, CandidatesScreen), "the screen did not open")
        shown = screen_text(it.app)
        assert "4 candidates · 1 paused · 3 queued" in shown
        assert "▌‖" in shown
        await it.until(
            lambda: any(line.startswith(" paused") for line in screen_text(it.app).split("\n")),
            "the document of the candidate does not say that it is paused",
        )
        await it.press("escape", "x")
        await it.until(lambda: not it.session.running)
