"""The command line as a whole: its help, its errors, and what it does not import."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import click
import pytest

from tests.support.command import Cli
from workbench.cli.main import COMMANDS, main

NAMES = [(name, text) for group in COMMANDS.values() for name, text in group.items()]
HEAVY = ("textual", "litellm", "chdb", "pyarrow", "matplotlib")


@pytest.mark.parametrize(("name", "text"), NAMES)
def test_the_table_of_commands_says_what_each_says_of_itself(name: str, text: str) -> None:
    command = import_module(f"workbench.cli.commands.{name}").command
    assert command.get_short_help_str(200) == text


@pytest.mark.parametrize(("name", "text"), NAMES)
def test_every_command_has_help_with_an_example_that_fits_80_columns(
    cli: Cli, name: str, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    command = main.get_command(click.Context(main, **main.context_settings), name)
    names = [(name,)] if not isinstance(command, click.Group) else [(name, sub) for sub in command.commands]
    for each in names:
        ended = cli(*each, "--help")
        assert ended.code == 0
        assert f"workbench {' '.join(each)}" in ended.out.partition("Example")[2]
        assert not [line for line in ended.out.splitlines() if len(line) > 80]


def test_every_module_of_a_command_is_in_the_table() -> None:
    folder = Path(import_module("workbench.cli.commands").__file__ or "").parent
    assert sorted(p.stem for p in folder.glob("*.py") if p.stem != "__init__") == sorted(name for name, _ in NAMES)


def test_without_a_command_the_help_is_shown(cli: Cli) -> None:
    ended = cli()
    assert (ended.code, ended.out) == (2, "")
    assert "Usage: workbench" in ended.err


def test_an_unknown_command_is_one_line(cli: Cli) -> None:
    ended = cli("opne")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err == "error: no such command 'opne'. Did you mean 'open'? (see workbench --help)\n"
    assert cli("\x1bzzz").err == "error: no such command '␛zzz' (see workbench --help)\n"


def test_a_file_in_the_place_of_a_command_is_told_what_runs_it(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "flow.json").write_text("{}")
    ended = cli("flow.json", "--input", "{}")
    assert (ended.code, ended.err) == (
        2,
        "error: no such command 'flow.json', but a file: 'workbench run flow.json' runs it, 'workbench open flow.json' "
        "shows it (see workbench --help)\n",
    )
    assert cli("x" * 5_000).code == 2


def modules_after(code: str, folder: Path) -> set[str]:
    """The names in ``sys.modules`` after a piece of code ran in a fresh interpreter."""
    script = f"import sys\n{code}\nprint(chr(10).join(sys.modules))"
    ended = subprocess.run([sys.executable, "-c", script], cwd=folder, capture_output=True, text=True, check=True)
    return set(ended.stdout.splitlines())


def call(*arguments: str) -> str:
    return (
        "from click.testing import CliRunner\nfrom workbench.cli.main import main\n"
        f"result = CliRunner().invoke(main, {list(arguments)!r})\nassert result.exit_code == 0, result.output"
    )


def test_the_help_imports_next_to_nothing(workspace: Path) -> None:
    modules = modules_after(call("--help"), workspace)
    assert not [name for name in HEAVY if name in modules]
    assert not {
        name
        for name in modules
        if name.startswith(("workbench.engine", "workbench.store", "pydantic", "yaml", "asyncio"))
    }


def test_headless_commands_import_no_screen_no_database_and_no_provider(workspace: Path) -> None:
    commands = (("schema",), ("runs",), ("check", "greet.yaml"), ("run", "greet.yaml", "--quiet"))
    unused = "from workbench.engine.forms.spec import Form\nassert not Form.__pydantic_complete__"
    modules = modules_after("\n".join([*(call(*one) for one in commands), unused]), workspace)
    assert "workbench.cli.main" in modules
    assert not [name for name in HEAVY if name in modules]


def test_what_stands_before_the_first_frame_is_light(workspace: Path) -> None:
    modules = modules_after("import workbench.cli.commands.open, workbench.cli.app", workspace)
    heavy = (
        "textual",
        "pydantic",
        "jinja2",
        "rich",
        "workbench.engine",
        "workbench.store.store",
        "workbench.language.model.cascade",
    )
    assert not [name for name in heavy if name in modules]


def test_a_journal_is_read_and_a_run_opened_without_the_language(workspace: Path, cli: Cli) -> None:
    cli("run", "greet.yaml", "--session", "s", "-q")
    commands = (("runs",), ("show", "s"), ("context", "s"), ("tree", "s"))
    unused = 'assert "asyncio" not in sys.modules\nCliRunner().invoke(main, ["open", "s"])'
    modules = modules_after("\n".join([*(call(*one) for one in commands), unused]), workspace)
    assert {"workbench.engine.journal.state", "workbench.tui.app"} <= modules
    heavy = ("pydantic", "jinja2", "httpx", "workbench.language.model.cascade", "workbench.engine.contracts")
    assert not [name for name in heavy if name in modules]
