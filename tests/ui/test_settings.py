"""The settings screen: values with their origin, changes into files, keys and their clashes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from textual.widgets import Input

from tests.ui.bench import Bench, bench, screen_text, session_at
from tests.ui.snapshot import check_sizes
from workbench.tui.screens.settings import SettingsScreen
from workbench.workspace.settings import TABLE

OWN = "# mine\ntimeout: 12  # short\n"


@asynccontextmanager
async def settings(folder: Path, size: tuple[int, int] = (120, 40), own: str = OWN) -> AsyncIterator[Bench]:
    config = folder / "config"
    config.mkdir()
    (config / "config.yaml").write_text(own)
    async with bench(folder, size=size, session=session_at(folder)) as it:
        await it.press("comma")
        await it.until(lambda: isinstance(it.app.screen, SettingsScreen), "the screen did not open")
        assert isinstance(it.app.screen, SettingsScreen)
        await it.pilot.pause()
        yield it


def own(folder: Path) -> str:
    return (folder / "config" / "config.yaml").read_text()


async def go_to(it: Bench, name: str) -> None:
    await it.press("slash", *name, "enter")


async def search_for(it: Bench, name: str) -> None:
    """The same where another text was searched for before."""
    await it.press("slash", *["backspace"] * 20, *name, "enter")


async def test_settings_are_listed_with_their_values_origins_and_keys_at_every_size(tmp_path: Path) -> None:
    async with settings(tmp_path, (120, 60)) as it:
        await every_setting_is_listed_with_its_value_and_where_it_is_from(it)
        await what_is_in_force_is_what_the_bench_says(it)
        await a_description_is_readable_in_a_narrow_terminal(it)
        await keys_are_listed_as_they_stand_on_the_keyboard(it, tmp_path)


async def every_setting_is_listed_with_its_value_and_where_it_is_from(it: Bench) -> None:
    shown = screen_text(it.app)
    for setting in TABLE:
        assert setting.name in shown
    line = next(line for line in shown.split("\n") if "timeout " in line and "user file" in line)
    assert "12" in line
    await go_to(it, "sandbox")
    assert "not allowed: this setting acts outside the workspace" in screen_text(it.app)
    assert "one of auto, docker, bwrap, landlock, none" in screen_text(it.app)


async def what_is_in_force_is_what_the_bench_says(it: Bench) -> None:
    await search_for(it, "default_model")
    model = it.session.header.model
    assert f"in force: {model}, from default" in screen_text(it.app)
    await search_for(it, "max_cost")
    assert "in force: no limit, from default" in screen_text(it.app)


async def a_description_is_readable_in_a_narrow_terminal(it: Bench) -> None:
    await it.pilot.resize_terminal(80, 24)
    await search_for(it, "backoff")
    await it.press("escape")
    shown = screen_text(it.app).splitlines()
    row = next(number for number, line in enumerate(shown) if "backoff" in line)
    assert "what it is" in shown[2]
    assert "Seconds before the second" in shown[row]
    assert "try of a call" in shown[row + 1]
    await search_for(it, "max_c")
    words = " ".join(screen_text(it.app).split())
    assert "US dollars of a run before it is stopped." in words, "of few rows none is cut"


async def keys_are_listed_as_they_stand_on_the_keyboard(it: Bench, tmp_path: Path) -> None:
    await it.pilot.resize_terminal(120, 50)
    await it.press("tab")
    await go_to(it, "view.next")
    shown = screen_text(it.app)
    assert "left_square_bracket" not in shown
    assert "right_square_bracket" not in shown
    await it.press("enter", *["backspace"] * 4, *"f12", "enter")
    assert "view.next: f12" in own(tmp_path)


async def test_a_change_goes_into_the_users_file_and_a_bad_one_is_objected_to(tmp_path: Path) -> None:
    async with settings(tmp_path) as it:
        await go_to(it, "seconds that one try")
        await it.press("enter")
        assert it.app.screen.query_one("#prompt-input", Input).value == "12.0", "the value in force can be changed"
        await it.press(*["backspace"] * 8, *"soon", "enter")
        assert "✗ 'timeout' must be" in screen_text(it.app)
        assert own(tmp_path) == OWN
        await it.press(*["backspace"] * 8, *"45.5", "enter")
        assert own(tmp_path) == OWN.replace("12 ", "45.5 ")
        assert it.session.project.settings.timeout == 45.5
        await it.press("x")
        assert own(tmp_path) == "# mine\n"
        await it.press("w", *["backspace"] * 8, *"9", "enter")
        assert (tmp_path / "workbench.yaml").read_text() == "timeout: 9.0\n"
        assert "workspace file" in screen_text(it.app)


async def test_a_password_in_an_address_is_not_shown_and_not_lost(tmp_path: Path) -> None:
    address = "https://me:secret@models.test/v1"
    async with settings(tmp_path, own=f"base_url: {address}\n") as it:
        assert "secret" not in screen_text(it.app)
        await go_to(it, "base_url")
        await it.press("enter")
        assert it.app.screen.query_one("#prompt-input", Input).value == "", "what is shown would be written back"
        await it.press("escape")
        assert own(tmp_path) == f"base_url: {address}\n"


async def test_what_a_workspace_may_not_set_is_refused_and_a_theme_counts_at_once(tmp_path: Path) -> None:
    async with settings(tmp_path) as it:
        await go_to(it, "sandbox")
        await it.press("w")
        assert "may not set sandbox" in screen_text(it.app)
        assert not (tmp_path / "workbench.yaml").exists()
        await it.press("slash", *["backspace"] * 10, *"colour theme", "enter")
        await it.press("enter", *["backspace"] * 20, *"workbench-light", "enter")
        assert it.app.current_theme.name == "workbench-light"
        assert "theme: workbench-light" in own(tmp_path)


async def test_a_key_is_rebound_at_once_and_a_clash_is_named(tmp_path: Path) -> None:
    async with settings(tmp_path) as it:
        await it.press("tab")
        await go_to(it, "run.over")
        await it.press("enter", "backspace", "c", "enter")
        assert "(run.continue)" in screen_text(it.app)
        assert "keys" not in own(tmp_path)
        await it.press("backspace", *"f10", "enter")
        assert own(tmp_path) == OWN + "keys:\n  run.over: f10\n"
        assert "● run.over" in screen_text(it.app)
        await it.press("escape", "escape")
        assert "f10 next turn" in it.text() or any(key.keys == "f10" for key in it.app.keys)
        await it.press("f10")
        await it.until(lambda: it.session.stepper.held is not None, "the new key did not act")


async def test_the_footer_of_the_keys_offers_what_keys_can_do(tmp_path: Path) -> None:
    """It named the tab that was open, and a key for the workspace's file, which wrote into the user's own."""
    async with settings(tmp_path) as it:
        footer = screen_text(it.app).splitlines()[-1]
        assert "tab keys" in footer
        assert "w in workspace" in footer
        await it.press("tab")
        footer = screen_text(it.app).splitlines()[-1]
        assert "tab settings" in footer
        assert "in workspace" not in footer
        await it.press("w")
        assert "A workspace may not set keys" in screen_text(it.app)
        assert "keys of run" not in screen_text(it.app)


async def test_a_file_that_is_broken_meanwhile_is_named_and_the_old_values_stay(tmp_path: Path) -> None:
    async with settings(tmp_path) as it:
        await it.press("escape")
        (tmp_path / "config" / "config.yaml").write_text("timeout: [\n")
        await it.press("comma")
        await it.pilot.pause()
        assert "config.yaml:2:1: error: not valid YAML" in screen_text(it.app)
        assert it.session.project.settings.timeout == 12.0


async def test_the_settings_as_they_stand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "night").mkdir()
    async with settings(tmp_path / "night") as it:
        await check_sizes(it, "settings", picture=True)
        await it.press("tab")
        await check_sizes(it, "settings-keys")
