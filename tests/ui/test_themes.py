"""Themes: the shipped ones can be used, a bad one is named with its key and never reaches the app."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from rich.segment import Segment
from rich.style import Style
from textual.color import Color

from tests.support.endless import ENDLESS
from tests.ui.bench import Bench, bench
from tests.ui.support import triage_story
from workbench.resources import folder
from workbench.themes import ThemeError, find_theme, load_theme, load_themes
from workbench.tui.palette import PAINTS, TONES, Palette
from workbench.tui.screens.form import FormDialog
from workbench.tui.theming import Colourless, Rounded, ThemedApp
from workbench.tui.widgets.choices import Choices, HangingIndent

SHIPPED = folder("themes")

GOOD = """\
name: mine
dark: true
primary: "#4488ff"
secondary: "#8844ff"
warning: "#ffaa00"
error: "#ff4444"
success: "#44ff44"
accent: "#00ffcc"
foreground: "#eeeeee"
background: "#101010"
"""


def write(directory: Path, text: str, name: str = "mine") -> Path:
    directory.mkdir(exist_ok=True)
    file = directory / f"{name}.yaml"
    file.write_text(text)
    return file


def test_the_shipped_themes_are_usable_and_of_every_sort() -> None:
    themes = load_themes([SHIPPED])
    assert themes.problems == ()
    found = themes.by_name.values()
    assert sum(theme.dark and not theme.ansi for theme in found) >= 3
    assert sum(not theme.dark and not theme.ansi for theme in found) >= 1
    assert sum(theme.ansi for theme in found) == 2
    assert "high-contrast" in themes.by_name
    assert find_theme("workbench-dark", [SHIPPED]) is not None


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("#4488ff", "notacolor"), "primary: 'notacolor' is not a colour"),
        (('"#4488ff"', "#4488ff"), "primary: 'None' is not a colour"),
        (("primary", "primaryy"), "primaryy: no such key"),
        (('accent: "#00ffcc"\n', ""), "accent: is missing"),
        (("dark: true", "dark: dusk"), "dark: true or false"),
        (("dark: true", "text_alpha: 7"), "text_alpha: a number from 0 to 1"),
        (("name: mine", "name: '../evil'"), "name: letters, digits and dashes"),
        (("dark: true", "variables: {border: nope}"), "variables.border: 'nope' is not a colour"),
        (("dark: true", "variables: {link-style: blink}"), "variables.link-style: 'blink' is not a text style"),
        (("dark: true", "variables: {text-lift: loud}"), "variables.text-lift: 'loud' is not a share"),
        (("dark: true", "variables: [1]"), "variables: a mapping"),
        (("dark: true", "variables: {tone-cursor: red blue green}"), "variables.tone-cursor: a background"),
        (("dark: true", "dark: ["), ":"),
    ],
)
def test_a_bad_theme_is_refused_with_its_file_and_key(tmp_path: Path, change: tuple[str, str], words: str) -> None:
    file = write(tmp_path, GOOD.replace(*change, 1))
    with pytest.raises(ThemeError) as fault:
        load_theme(file)
    assert re.match(rf"{re.escape(str(file))}:\d+:\d+: ", str(fault.value))
    assert words in str(fault.value)


@pytest.mark.parametrize(
    ("change", "place"),
    [
        (("#ff4444", "notacolor"), "6:1: error: "),
        (("dark: true", "variables:\n  border: nope"), "3:3: variables.border: "),
        (('accent: "#00ffcc"\n', ""), "1:1: accent: "),
        (("dark: true", "dusk: true"), "2:1: dusk: "),
    ],
)
def test_a_bad_theme_is_refused_with_the_line_of_the_key(tmp_path: Path, change: tuple[str, str], place: str) -> None:
    file = write(tmp_path, GOOD.replace(*change, 1))
    with pytest.raises(ThemeError) as fault:
        load_theme(file)
    assert str(fault.value).startswith(f"{file}:{place}")


def test_a_file_that_is_no_theme_at_all_is_refused(tmp_path: Path) -> None:
    for text in ("", "- a", "\x00", "a: &a [*a]"):
        with pytest.raises(ThemeError):
            load_theme(write(tmp_path, text))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("primary: 2026-99-99\n", "odd.yaml: is not YAML"),
        (f"luminosity_spread: {'1' * 5000}\n", "odd.yaml: is not YAML"),
        (GOOD.replace('"#00ffcc"', ENDLESS), "is not a colour"),
        (f"{GOOD}variables: {{border: {ENDLESS}}}\n", "is not text"),
    ],
)
def test_values_that_a_stranger_wrote_end_no_app(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "odd.yaml").write_text(text)
    (problem,) = load_themes([tmp_path]).problems
    assert words in problem
    assert len(problem) < 500


@pytest.mark.parametrize("file", sorted(SHIPPED.glob("*.yaml")), ids=lambda file: file.stem)
def test_every_token_has_a_style_in_every_theme(file: Path) -> None:
    theme = load_theme(file)
    palette = Palette(theme, {**theme.to_color_system().generate(), **theme.variables})
    assert set(palette.styles) == set(PAINTS)
    assert set(palette.tones) == set(TONES)
    assert isinstance(palette["masked"], Style)
    assert palette["masked"] != palette["plain"]
    assert palette.tone("cursor") is not None


@pytest.mark.parametrize("file", sorted(SHIPPED.glob("*.yaml")), ids=lambda file: file.stem)
def test_faint_text_can_still_be_read(file: Path) -> None:
    theme = load_theme(file)
    if theme.ansi:
        return
    palette = Palette(theme, {**theme.to_color_system().generate(), **theme.variables})
    back = Color.parse(theme.background or "")
    least = {"plain": 7.0, "dim": 4.5, "faint": 2.5, "error": 4.0, "warning": 4.0, "masked": 3.0}
    for token, wanted in least.items():
        color = palette[token].color
        assert color is not None
        ratio = _contrast(Color.from_rich_color(color), back)
        assert ratio >= wanted, f"{theme.name}: {token} has a contrast of {ratio:.1f}"


def _contrast(a: Color, b: Color) -> float:
    """By the formula of WCAG 2."""

    def luminance(color: Color) -> float:
        def channel(value: int) -> float:
            share = value / 255
            return share / 12.92 if share <= 0.03928 else float(((share + 0.055) / 1.055) ** 2.4)

        red, green, blue = color.rgb
        return 0.2126 * channel(red) + 0.7152 * channel(green) + 0.0722 * channel(blue)

    high, low = sorted((luminance(a), luminance(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


async def test_a_theme_that_is_not_there_is_told_about_and_another_is_used(tmp_path: Path) -> None:
    async with bench(tmp_path, theme="no-such-theme") as it:
        assert it.app.current_theme.name == it.app.theme
        assert "theme 'no-such-theme' is missing" in it.text()


async def test_switching_themes_redraws_every_line(tmp_path: Path) -> None:
    async with bench(tmp_path, events=triage_story().events) as it:

        def colours() -> set[object]:
            view = it.screen.context_pane
            strips = view.render_lines(view.size.region)
            return {segment.style.color for strip in strips for segment in strip if segment.style}

        before = colours()
        it.app.theme = "workbench-light"
        await it.until(lambda: colours() & before == set() or colours() != before)
        palette = it.app.palette
        assert palette.name == "workbench-light"
        assert palette["cached"].color in colours()
        assert not before & {palette["cached"].color, palette["plain"].color}


async def test_a_saved_theme_shows_at_once_and_a_broken_one_changes_nothing(tmp_path: Path) -> None:
    themes = tmp_path / "themes"
    file = write(themes, GOOD)

    async with bench(tmp_path, theme="mine", themes=(SHIPPED, themes)) as it:
        assert it.app.current_theme.primary == "#4488ff"
        file.write_text(GOOD.replace("#4488ff", "#ff8844"))
        await it.until(lambda: it.app.current_theme.primary == "#ff8844", "the saved theme did not show")
        file.write_text(GOOD.replace('"#4488ff"', '"notacolor"'))
        await it.until(lambda: "notacolor" in it.text(), "the broken theme was not told about")
        assert it.app.current_theme.primary == "#ff8844"


async def test_themes_come_and_go_while_the_app_runs(tmp_path: Path) -> None:
    themes = tmp_path / "themes"

    async with bench(tmp_path, theme="workbench-dark", themes=(SHIPPED, themes)) as it:
        file = write(themes, GOOD)
        await it.until(lambda: "mine" in it.app.available_themes, "the new theme was not noticed")
        await it.until(lambda: "new: theme mine" in it.text())
        it.app.theme = "mine"
        file.unlink()
        await it.until(lambda: file not in {path for path, _ in it.app._seen})
        assert it.app.current_theme.primary == "#4488ff"
        it.app.theme = "workbench-dark"
        other = write(themes, GOOD.replace("name: mine", "name: other"), "other")
        await it.until(lambda: "other" in it.app.available_themes)
        assert "mine" not in it.app.available_themes
        other.unlink()
        await it.until(lambda: "other" not in it.app.available_themes, "the theme that went was not noticed")
        assert it.app.current_theme.name == "workbench-dark"


async def test_without_colour_the_focus_the_cursor_and_the_signs_still_show(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")

    async with bench(tmp_path, events=triage_story().events) as it:
        assert it.app.no_color
        text = it.text()
        assert "━ Context" in text
        assert "─ Cascade" in text
        assert "▌8" in text
        assert "◌" in text
        assert "│" in it.pane("context").splitlines()[2], "the parts of the bar run together"


def test_without_colour_marks_are_reversed_and_attributes_stay() -> None:
    ground = Color.parse("#101010")
    styles = ("bold red", "red on #151515", "red on #d0d0d0", "red on blue", "underline", "on default")
    segments = [Segment("x", Style.parse(style)) for style in styles]
    found = [str(segment.style) for segment in Colourless().apply(segments, ground)]
    assert found == ["bold", "none", "reverse", "reverse", "underline", "none"]


@pytest.mark.parametrize(("value", "colourless"), [("1", True), ("", False)])
def test_only_a_no_color_that_says_something_takes_colours(
    monkeypatch: pytest.MonkeyPatch, value: str, colourless: bool
) -> None:
    monkeypatch.setenv("NO_COLOR", value)
    app = ThemedApp("workbench-dark")
    assert app.no_color is colourless
    assert app.current_theme.ansi is colourless


@pytest.mark.parametrize(
    ("terminal", "theme", "used"),
    [
        ("xterm", "workbench-dark", "ansi-dark"),
        ("screen", "workbench-light", "ansi-light"),
        ("xterm-256color", "workbench-dark", "workbench-dark"),
        ("linux", "ansi-light", "ansi-light"),
    ],
)
def test_a_terminal_of_sixteen_colours_gets_a_theme_of_sixteen(
    monkeypatch: pytest.MonkeyPatch, terminal: str, theme: str, used: str
) -> None:
    monkeypatch.setenv("TERM", terminal)
    monkeypatch.delenv("COLORTERM", raising=False)
    monkeypatch.delenv("NO_COLOR", raising=False)
    app = ThemedApp(theme, adapts=True)
    assert app.theme == used
    app.register_theme(load_theme(SHIPPED / "workbench-ember.yaml"))
    assert app.fitting("workbench-ember") == ("workbench-ember" if "256" in terminal else "ansi-dark")


@pytest.mark.parametrize("name", ["workbench-dark", "workbench-light"])
def test_surfaces_selection_and_kinds_differ_in_256_colours(name: str) -> None:
    theme = load_theme(SHIPPED / f"{name}.yaml")
    palette = Palette(theme, {**theme.to_color_system().generate(), **theme.variables})
    backs = [Style.parse(f"on {theme.background}"), Style.parse(f"on {theme.panel}")]
    backs += [tone for tone in map(palette.tone, ("cursor", "rule-line")) if tone is not None]
    kinds = [palette[token] for token in ("injected", "masked", "error", "ok", "assistant", "plain")]
    for styles in (backs, kinds):
        segments = Rounded().apply([Segment("x", style) for style in styles], Color.parse("black"))
        found = {(str(it.style.color), str(it.style.bgcolor)) for it in segments if it.style}
        assert len(found) == len(styles)
        assert not any("#" in word for pair in found for word in pair)


async def test_the_options_of_an_open_form_take_the_colours_of_another_theme(tmp_path: Path) -> None:
    form = {"sections": [{"type": "select", "id": "how", "label": "How?", "options": ["now", "never"]}]}

    def styles(it: Bench) -> list[str]:
        prompts = [it.app.screen.query_one(Choices).get_option_at_index(at).prompt for at in range(2)]
        return [
            str(span.style) for prompt in prompts if isinstance(prompt, HangingIndent) for span in prompt.content.spans
        ]

    story = triage_story()
    question = {"question": "How?", "context": "", "options": [], "type": "form", "form": form}
    story.emit("human_asked", story.events[-1].place, index=1, **question)
    async with bench(tmp_path, events=story.events) as it:
        await it.until(lambda: isinstance(it.app.screen, FormDialog))
        assert "$primary" in styles(it)
        it.app.theme = "ansi-dark"
        await it.until(lambda: "$primary" not in styles(it), "an option kept a colour that cannot be read")
        it.app.theme = "workbench-light"
        await it.until(lambda: "$primary" in styles(it))
