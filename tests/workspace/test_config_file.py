"""Settings written into files: one value changes, everything else stays, and what may not be set there is refused."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import workbench
from workbench.workspace.config_file import file_of, read_value, set_value, unset_value
from workbench.workspace.project import Project
from workbench.workspace.settings import TABLE, SettingsError, setting_named

OWN = """\
# My settings.
timeout: 12  # seconds

# Keys that I am used to.
keys:
  app.help: f12  # as elsewhere
tackle_dirs: [a, b]
"""


def project(folder: Path, own: str = "", **env: str) -> Project:
    config = folder / "config"
    config.mkdir(exist_ok=True)
    if own:
        (config / "config.yaml").write_text(own)
    (folder / "work").mkdir(exist_ok=True)
    return Project.at(folder / "work", env={"WORKBENCH_CONFIG_DIR": str(config), **env})


def test_a_value_is_changed_in_place_and_comments_stay(tmp_path: Path) -> None:
    it = project(tmp_path, OWN)
    written = set_value(it, "timeout", 30.5)
    assert (written.value, written.origin) == (30.5, str(file_of(it, "user")))
    assert file_of(it, "user").read_text() == OWN.replace("timeout: 12 ", "timeout: 30.5 ")
    assert it.settings.timeout == 30.5


def test_a_new_value_and_a_new_key_are_added(tmp_path: Path) -> None:
    it = project(tmp_path, OWN)
    set_value(it, "theme", "workbench-light")
    set_value(it, "keys", "f9", key="app.quit")
    text = file_of(it, "user").read_text()
    assert text.startswith("# My settings.\ntimeout: 12  # seconds\n")
    assert "  app.help: f12  # as elsewhere\n  app.quit: f9\n" in text
    assert text.endswith("theme: workbench-light\n")


@pytest.mark.parametrize("before", ["", "# nothing yet\n"])
def test_the_first_setting_makes_the_file(tmp_path: Path, before: str) -> None:
    it = project(tmp_path, before)
    set_value(it, "tries", 5)
    assert file_of(it, "user").read_text() == before + "tries: 5\n"


def test_what_is_taken_out_leaves_the_rest(tmp_path: Path) -> None:
    it = project(tmp_path, OWN)
    assert unset_value(it, "timeout").origin == "default"
    unset_value(it, "keys", key="app.help")
    assert file_of(it, "user").read_text() == "# My settings.\n\n# Keys that I am used to.\ntackle_dirs: [a, b]\n"
    with pytest.raises(SettingsError, match="does not set timeout"):
        unset_value(it, "timeout")


SERVER = ["ca_cert", "cluster", "database", "host", "password", "port", "retention_days", "tls", "user"]
OUTSIDE = ["allow_hosts", "base_url", "data_dir", "graph_dir", "machine", "prices", "redact", "sandbox", "user"]
OUTSIDE += ["use_clickhouse_server", *(f"clickhouse_{name}" for name in SERVER)]


@pytest.mark.parametrize("name", OUTSIDE)
def test_what_could_act_outside_is_never_written_into_a_workspace(tmp_path: Path, name: str) -> None:
    it = project(tmp_path)
    with pytest.raises(SettingsError, match="cannot be set by a workspace"):
        set_value(it, name, {} if name == "prices" else "x", "workspace")
    assert not file_of(it, "workspace").exists()


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("sandbox", "jail", "sandbox"),
        ("tries", "many", "tries"),
        ("base_url", "ftp://x", "base_url"),
        ("no", 1, "unknown setting 'no' (known: "),
        ("sandbx", "none", "unknown setting 'sandbx' (did you mean 'sandbox'?)"),
    ],
)
def test_a_value_that_does_not_fit_changes_nothing(tmp_path: Path, name: str, value: object, words: str) -> None:
    it = project(tmp_path, OWN)
    with pytest.raises(SettingsError, match=re.escape(words)):
        set_value(it, name, value)
    assert file_of(it, "user").read_text() == OWN


def test_the_workspace_has_the_word_over_the_user_and_the_environment_over_both(tmp_path: Path) -> None:
    it = project(tmp_path, OWN, WORKBENCH_TRIES="7")
    assert set_value(it, "timeout", 5.0, "workspace").origin == str(file_of(it, "workspace"))
    written = set_value(it, "tries", 2)
    assert (written.value, written.origin) == (7, "environment WORKBENCH_TRIES")


def test_a_flag_stays_when_the_files_are_read_anew(tmp_path: Path) -> None:
    config = tmp_path / "config"
    it = Project.at(tmp_path, env={"WORKBENCH_CONFIG_DIR": str(config)}, flags={"base_url": "http://127.0.0.1:9"})
    set_value(it, "tries", 4)
    assert it.settings.base_url == "http://127.0.0.1:9"
    assert it.settings.origins["base_url"] == "flag"


def test_values_are_read_as_a_person_writes_them() -> None:
    assert read_value(setting_named("tackle_dirs"), "a, b") == ["a", "b"]
    assert read_value(setting_named("stream"), "off") is False
    assert read_value(setting_named("max_cost"), "0.5") == 0.5
    assert read_value(setting_named("prices"), "{m: {input: 1}}") == {"m": {"input": 1}}
    with pytest.raises(SettingsError, match="is a mapping"):
        read_value(setting_named("prices"), "[1")


def test_every_setting_is_used() -> None:
    sources = [file for file in Path(workbench.__path__[0]).rglob("*.py") if file.name != "settings.py"]
    uses = re.compile(r"\bsettings\.(\w+)\b|\bset\(\"(\w+)\"")
    used = {name for file in sources for names in uses.findall(file.read_text("utf-8")) for name in names}
    assert [setting.name for setting in TABLE if setting.name not in used] == [], "nothing reads these settings"
