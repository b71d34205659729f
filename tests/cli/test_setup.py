"""``config``, ``doctor``, ``trust``, ``version`` and ``completion``."""

from __future__ import annotations

import os
from pathlib import Path

import jsonschema
import pytest

import workbench
from tests.support.command import Cli
from tests.support.endless import ENDLESS
from workbench.resources import folder

TOOL = '''"""Tools of this workspace."""

from workbench.tools import register_tackle


def shout(text: str) -> str:
    """Say it loudly."""
    return text.upper()


register_tackle("shout", shout)
'''


def test_each_setting_names_its_origin(cli: Cli, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (workspace / "workbench.yaml").write_text("timeout: 30\n")
    monkeypatch.setenv("WORKBENCH_TRIES", "2")
    settings = cli("config", "show", "--json").json
    assert settings.pop("in_force")["model"]
    found = {name: (row["value"], row["origin"]) for name, row in settings.items()}
    assert found["timeout"] == (30.0, str(workspace / "workbench.yaml"))
    assert found["tries"] == (2, "environment WORKBENCH_TRIES")
    assert found["stream"] == (True, "default")
    assert settings["sandbox"]["choices"] == ["auto", "docker", "bwrap", "landlock", "none"]
    assert settings["sandbox"]["workspace"] is False
    assert any(line.split()[:2] == ["timeout", "30.0"] for line in cli("config", "show").out.splitlines())


def test_a_workspace_cannot_loosen_the_sandbox(cli: Cli, workspace: Path) -> None:
    (workspace / "workbench.yaml").write_text("sandbox: none\n")
    for command in (("config", "validate"), ("run", "greet.yaml"), ("config", "show")):
        ended = cli(*command)
        assert (ended.code, ended.out) == (2, "")
        assert "'sandbox' cannot be set by a workspace" in ended.err


def test_a_mistake_in_the_settings_has_its_place(cli: Cli, workspace: Path) -> None:
    assert cli("config", "validate", "--json").json == {"valid": True, "sources": []}
    (workspace / "workbench.yaml").write_text("timeout: [\n")
    ended = cli("config", "validate")
    assert ended.code == 2
    assert ended.err.startswith(f"{workspace / 'workbench.yaml'}:")
    assert "error: not valid YAML" in ended.err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("tackle_dirs: [5]", "'tackle_dirs' must be a list of texts, got [5]"),
        ("keys: {run.over: [c]}", "'keys' must be a mapping of texts, got {'run.over': ['c']}"),
        ("prices: {m: 1}", "'prices' must be a mapping of mappings of numbers, got {'m': 1}"),
        (f"theme: {ENDLESS}", "'theme' must be a text, got [['x', 'x', 'x', 'x', 'x', 'x', ...], [[...], "),
        (f"theme: {'[' * 900}{']' * 900}", "'theme' must be a text, got [[[...]]]"),
        (f"keys: {ENDLESS}", "'keys' must be a mapping of texts, got [['x', 'x', 'x', 'x', 'x', 'x', ...], [[...], "),
        ("prices: {m: {input: x}}", "'prices' must be a mapping of mappings of numbers, got {'m': {'input': 'x'}}"),
    ],
)
def test_what_cannot_be_used_in_a_list_or_a_mapping_is_named_with_its_file(
    cli: Cli, tmp_path: Path, text: str, said: str
) -> None:
    file = tmp_path / "config" / "config.yaml"
    file.parent.mkdir()
    file.write_text(text)
    ended = cli("config", "validate")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith(f"{file}: error: {said}")


@pytest.mark.parametrize(
    ("command", "keys", "said"),
    [
        ("run.over", "c", "'c' already means 'Continue to the next breakpoint or the end'"),
        ("run.fly", "f", "there is no such command"),
        ("run.ovre", "f9", "there is no such command (did you mean 'run.over'?)"),
        ("run.over", "f9,crtl+r", "there is no key 'crtl+r' (did you mean 'ctrl+r'?)"),
        ("run.over", "'  '", "at least one key"),
    ],
)
def test_a_key_that_cannot_be_used_is_named_with_its_line_and_column(
    cli: Cli, tmp_path: Path, command: str, keys: str, said: str
) -> None:
    file = tmp_path / "config" / "config.yaml"
    file.parent.mkdir()
    file.write_text(f"# mine\nkeys:\n  {command}: {keys}\n")
    ended = cli("config", "validate")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith(f"{file}:3:3: error: keys.{command}: {said}")


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("keys.run.over", "c", "'c' already means 'Continue to the next breakpoint or the end' (run.continue)"),
        ("keys.run.ovre", "f9", "there is no such command (did you mean 'run.over'?)"),
        ("keys.run.over", "f9,crtl+r", "there is no key 'crtl+r' (did you mean 'ctrl+r'?)"),
        ("theme", "workbench-lihgt", "there is no theme 'workbench-lihgt'; there are ansi-dark,"),
    ],
)
def test_what_does_not_fit_is_refused_before_it_is_written(
    cli: Cli, tmp_path: Path, name: str, value: str, said: str
) -> None:
    refused = cli("config", "set", name, value)
    assert refused.code == 2
    assert said in refused.err
    assert not (tmp_path / "config" / "config.yaml").exists()


def test_a_key_that_another_command_was_given_is_refused_but_may_be_given_again(cli: Cli) -> None:
    assert cli("config", "set", "keys.run.over", "f12").code == 0
    assert cli("config", "set", "keys.run.over", "f12").code == 0
    refused = cli("config", "set", "keys.run.continue", "f12")
    assert refused.code == 2
    assert "'f12' already means" in refused.err
    assert "(run.over)" in refused.err


def test_a_theme_that_is_not_there_is_named_with_where_it_was_asked_for(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "config" / "config.yaml"
    file.parent.mkdir()
    file.write_text("theme: harbour\n")
    ended = cli("config", "validate")
    assert ended.code == 2
    assert ended.err.startswith(f"{file}:1:1: error: there is no theme 'harbour'")
    (file.parent / "themes").mkdir()
    shipped = (folder("themes") / "workbench-dark.yaml").read_text()
    (file.parent / "themes" / "harbour.yaml").write_text(shipped.replace("name: workbench-dark", "name: harbour"))
    assert cli("config", "validate").code == 0


def test_the_schema_of_the_settings_is_a_schema(cli: Cli) -> None:
    schema = cli("config", "schema").json
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["properties"]["sandbox"]["enum"][0] == "auto"
    sound = {"tackle_dirs": ["a"], "keys": {"run.over": "f10"}, "prices": {"m": {"input": 1.5}}}
    jsonschema.validate(sound, schema)
    for name in sound:
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate({name: [5] if name == "tackle_dirs" else {"m": ["x"]}}, schema)


def test_doctor_finds_a_whole_store_whole(cli: Cli) -> None:
    cli("run", "greet.yaml", "--session", "s")
    report = cli("doctor", "--json")
    assert report.code == 0
    assert (report.json["ok"], len(report.json["runs"])) == (True, 1)
    assert report.json["machine"]["model"].startswith("none: no model is named")
    assert "the store is intact" in cli("doctor").err


@pytest.mark.fault("F12")
def test_doctor_names_a_torn_journal_and_mends_it(cli: Cli, workspace: Path) -> None:
    cli("run", "greet.yaml", "--session", "s")
    (segment,) = workspace.glob(".workbench/journal/*/000001.jsonl")
    os.truncate(segment, segment.stat().st_size - 5)
    (segment.parent / "summary.json").unlink()
    assert cli("show", "s", "--json").json["status"] == "interrupted"
    assert "ends in a torn record" in cli("doctor").out
    report = cli("doctor", "--fix")
    assert report.code == 0
    assert "moved to 000001.jsonl.torn" in report.err
    resumed = cli("resume", "s")
    assert (resumed.code, resumed.out) == (0, "Hello, Ada.\n")


def test_a_folder_that_can_do_nothing_needs_no_trust(cli: Cli) -> None:
    ended = cli("trust")
    assert (ended.code, ended.err) == (0, "nothing here needs trust\n")


def test_trust_is_given_shown_and_taken_back(cli: Cli, workspace: Path) -> None:
    (workspace / "tools").mkdir()
    (workspace / "tools" / "shout.py").write_text(TOOL)
    asked = cli("trust")
    assert asked.code == 3
    assert "not allowed" in asked.out
    assert "shout.py" in asked.out
    granted = cli("trust", "--yes")
    assert granted.code == 0
    assert "not allowed" not in granted.out
    trusted = cli("trust", "--json")
    assert (trusted.code, trusted.json["trusted"]) == (0, True)
    assert [capability["allowed"] for capability in trusted.json["capabilities"]] == [True]

    (workspace / "tools" / "shout.py").write_text(TOOL.replace("upper", "lower"))
    assert cli("trust").code == 3, "a changed tool is another one"
    cli("trust", "--yes")
    assert cli("trust", "--revoke").code == 0
    assert cli("trust").code == 3


def test_the_version_is_the_packages(cli: Cli) -> None:
    assert cli("version", "--json").json["workbench"] == workbench.__version__
    assert cli("--version").out == f"workbench {workbench.__version__}\n"
    assert cli("version").out.splitlines()[0] == f"workbench {workbench.__version__}"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_has_a_completion_script(cli: Cli, shell: str) -> None:
    ended = cli("completion", shell)
    assert ended.code == 0
    assert "_WORKBENCH_COMPLETE" in ended.out


def test_completion_follows_the_shell_in_use(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHELL", "/usr/bin/zsh")
    assert cli("completion").out == cli("completion", "zsh").out
    monkeypatch.setenv("SHELL", "/bin/tcsh")
    ended = cli("completion")
    assert (ended.code, ended.err) == (2, "error: no completion for 'tcsh' (name one of bash, zsh, fish)\n")


def completed(cli: Cli, monkeypatch: pytest.MonkeyPatch, line: str) -> list[str]:
    """What bash is given for the end of a command line."""
    with monkeypatch.context() as patch:
        patch.setenv("_WORKBENCH_COMPLETE", "bash_complete")
        patch.setenv("COMP_WORDS", f"workbench {line}")
        patch.setenv("COMP_CWORD", str(line.count(" ") + 1))
        ended = cli()
    assert ended.err == ""
    return [word.removeprefix("plain,") for word in ended.out.split()]


def test_sessions_complete(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    cli("run", "greet.yaml", "--session", "summer")
    cli("run", "greet.yaml", "--session", "winter")
    assert completed(cli, monkeypatch, "show w") == ["winter"]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("config set max_v", ["max_visits"]),
        ("config set --workspace sand", []),
        ("config set sand", ["sandbox"]),
        ("config unset tim", ["timeout"]),
        ("config set keys.app.q", ["keys.app.quit"]),
        ("config set stream ", ["true", "false"]),
        ("config set sandbox l", ["landlock"]),
        ("config set theme workbench-l", ["workbench-light"]),
        ("config set timeout ", []),
    ],
)
def test_settings_and_their_values_complete(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, line: str, words: list[str]
) -> None:
    assert completed(cli, monkeypatch, line) == words


def test_phases_and_places_of_a_run_complete(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    assert completed(cli, monkeypatch, "context --at ") == [], "there is no run yet"
    cli("run", "greet.yaml", "--session", "summer")
    for line, words in {
        "context summer --phase ": ["look", "answer"],
        "context summer -p a": ["answer"],
        "candidates --phase l": ["look"],
        "context --at ": ["look:1", "look:2", "look:3", "answer:1"],
        "fork summer --at a": ["answer:1"],
        "diff summer --at a": ["answer:1"],
        "context absent --at ": [],
    }.items():
        assert completed(cli, monkeypatch, line) == words, line


@pytest.mark.parametrize(
    ("variable", "value", "words"),
    [
        ("WORKBENCH_TRIES", "0", "'tries' must be at least 1, got 0"),
        ("WORKBENCH_TRIES", "many", "'tries' must be a whole number, got 'many'"),
        ("WORKBENCH_TIMEOUT", "nan", "'timeout' must be at least 0.1, got nan"),
        ("WORKBENCH_TIMEOUT", "inf", "'timeout' must be at least 0.1, got inf"),
        ("WORKBENCH_STREAM", "\x1b]0;x\x07", "'stream' must be true or false, got"),
    ],
)
def test_a_value_that_makes_no_sense_is_named_with_its_origin(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, variable: str, value: str, words: str
) -> None:
    monkeypatch.setenv(variable, value)
    refused = cli("config", "show")
    assert refused.code == 2
    assert refused.err.startswith(f"environment {variable}: error: {words}")
    assert "\x1b" not in refused.err


@pytest.mark.parametrize("text", ["timeout: \0", "[" * 5000, "a: &a [*a]", "timeout: \x1b[2J"])
def test_a_file_of_settings_that_is_none_is_one_line(cli: Cli, workspace: Path, text: str) -> None:
    (workspace / "workbench.yaml").write_text(text)
    refused = cli("config", "show")
    assert refused.code == 2
    assert "workbench.yaml:" in refused.err
    assert refused.err.count("\n") == 1
    assert "\x1b" not in refused.err


@pytest.mark.parametrize("form", [(), ("--json",)], ids=["text", "json"])
def test_the_password_of_a_base_url_is_not_shown(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, form: tuple[str, ...]
) -> None:
    monkeypatch.setenv("WORKBENCH_BASE_URL", "https://ada:hunter2@models.example/v1")
    shown = cli("config", "show", *form).out
    assert "https://models.example/v1" in shown
    assert "hunter2" not in shown


def test_doctor_names_variables_that_have_no_effect(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WINDLASS_LOG_DIR", "/x")
    monkeypatch.setenv("AUTO_CONTEXT_LLM_SELECTION_ENABLED", "false")
    monkeypatch.setenv("RABBITIZE_AUTO_START", "true")
    monkeypatch.setenv("WINDLASS_REWRITE_MODEL", "openai/gpt-4.1-mini")
    monkeypatch.setenv("LARS_DEFAULT_MODEL", "gpt-4o")
    monkeypatch.setenv("LARS_LOG_DIR", "/x")
    said = cli("doctor").err
    assert "LARS_DEFAULT_MODEL is set and has no effect: set WORKBENCH_DEFAULT_MODEL" in said
    assert "LARS_LOG_DIR is set and has no effect: journals lie in the store" in said
    assert "WINDLASS_LOG_DIR is set and has no effect: journals lie in the store" in said
    assert "AUTO_CONTEXT_LLM_SELECTION_ENABLED is set and has no effect: write selection" in said
    assert "RABBITIZE_AUTO_START is set and has no effect: the first browser tool starts the browser" in said
    assert "REWRITE_MODEL" not in said
    assert set(cli("doctor", "--json").json["not_honoured"]) == {
        "AUTO_CONTEXT_LLM_SELECTION_ENABLED",
        "LARS_DEFAULT_MODEL",
        "LARS_LOG_DIR",
        "RABBITIZE_AUTO_START",
        "WINDLASS_LOG_DIR",
    }
    monkeypatch.setenv("WINDLASS_ROOT", "absent")
    assert "WINDLASS_ROOT names 'absent', which is not a folder" in cli("doctor").err


def test_variables_of_the_original_name_the_model_that_rewrites_and_the_folders_of_tools(
    cli: Cli, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WINDLASS_REWRITE_MODEL", "openai/gpt-4.1-mini")
    monkeypatch.setenv("WINDLASS_TACKLE_DIR", "gear")
    shown = cli("config", "show", "--json").json
    assert shown["rewrite_model"]["value"] == "openai/gpt-4.1-mini"
    assert shown["tackle_dirs"]["value"] == ["gear", "cascades", "examples"]
    (workspace / "gear").mkdir()
    (workspace / "gear" / "help.yaml").write_text(
        "cascade_id: helper\ninputs_schema: {x: y}\nphases: [{name: a, instructions: '{{ input.x }}'}]\n"
    )
    (workspace / "c.yaml").write_text("cascade_id: c\nphases: [{name: a, instructions: x, tackle: [helper]}]\n")
    assert "not known" not in cli("check", "c.yaml").out
