"""The lock, the README's two commands, the CI script and the wheel say the same thing."""

from __future__ import annotations

import re
import subprocess
import tomllib
import zipfile
from pathlib import Path

import pytest
from hatchling.builders.wheel import WheelBuilder

import workbench
from scripts.check_lock import LOCKS, findings, read_lock

ROOT = Path(__file__).resolve().parent.parent
TEXTS = {name: (ROOT / name).read_text("utf-8") for name in LOCKS}
PYPROJECT = (ROOT / "pyproject.toml").read_text("utf-8")
VENV, PROJECT = "python3 -m venv .venv && ", ".venv/bin/pip install -q --no-build-isolation --no-deps -e . && "
DEMO = f"{VENV}.venv/bin/pip install -q --require-hashes -r requirements.lock && {PROJECT}.venv/bin/workbench demo"
TESTS = (
    f"{VENV}.venv/bin/pip install -q uv"
    " && .venv/bin/uv pip install -q -p .venv --require-hashes -r requirements-dev.lock"
    f" && {PROJECT}.venv/bin/python -m pytest -q"
)
"""uv installs what development needs in a fifth of pip's time. Who only uses the project needs nothing but pip."""
each_lock = pytest.mark.parametrize("name", LOCKS)


@each_lock
def test_every_entry_of_a_lock_has_a_hash(name: str) -> None:
    entries = read_lock(TEXTS[name])
    assert len(entries) > 50
    assert [entry.name for entry in entries if not entry.hashes] == []


@each_lock
def test_a_lock_names_no_host(name: str) -> None:
    assert "://" not in TEXTS[name]
    assert not re.search(r"^\s*-", TEXTS[name].replace("\\\n    --hash", " --hash"), re.MULTILINE)


@each_lock
def test_a_lock_meets_the_project_and_holds_nothing_else(name: str) -> None:
    assert findings(PYPROJECT, TEXTS[name], LOCKS[name]) == []


def test_both_locks_have_the_same_versions_and_the_users_one_no_tool_of_development() -> None:
    small, large = ({(entry.name, entry.version) for entry in read_lock(text)} for text in TEXTS.values())
    names = {entry.name for entry in read_lock(TEXTS["requirements.lock"])}

    assert small <= large
    assert not names & {"pytest", "mypy", "ruff", "hypothesis", "import-linter", "textual-dev", "uv"}


@pytest.mark.parametrize(
    ("edit", "finding"),
    [
        (lambda lock: re.sub(r"(?m)^click==\S+", "click==7.0", lock), "click<9,>=8.1.7 (asked by pyproject.toml)"),
        (lambda lock: re.sub(r"(?m)^jinja2==.*\\\n(    --hash.*\n)+", "", lock), "Jinja2<4,>=3.1.6"),
        (lambda lock: re.sub(r"(?m)^markupsafe==.*\\\n(    --hash.*\n)+", "", lock), "asked by jinja2"),
        (lambda lock: lock + "left-pad==1.0\n", "left-pad is locked, but nothing asks for it"),
        (lambda lock: lock + "left-pad==1.0\n", "left-pad==1.0: no hash"),
    ],
)
def test_a_lock_that_drifted_is_found(edit: object, finding: str) -> None:
    assert callable(edit)
    lock = TEXTS["requirements.lock"]
    changed = edit(lock)
    assert changed != lock
    assert any(finding in line for line in findings(PYPROJECT, changed, "examples"))


def test_an_unpinned_entry_is_no_lock() -> None:
    with pytest.raises(ValueError, match="not pinned"):
        read_lock("click>=8 --hash=sha256:" + "0" * 64)


def test_files_that_record_download_hosts_are_ignored() -> None:
    ignored = (ROOT / ".gitignore").read_text("utf-8").splitlines()
    assert {"uv.lock", "pylock.toml"} <= set(ignored)


def test_the_readme_has_the_two_commands_each_complete_in_itself() -> None:
    lines = (ROOT / "README.md").read_text("utf-8").splitlines()
    assert [line for line in lines if line.startswith("python3 -m venv")] == [DEMO, TESTS]


def test_ci_runs_the_readme_line_that_it_finds() -> None:
    script = (ROOT / ".ci" / "run").read_text("utf-8")
    pattern = re.search(r"grep -E '([^']+)' README.md", script)
    assert pattern is not None
    readme = (ROOT / "README.md").read_text("utf-8").splitlines()
    assert [line for line in readme if re.search(pattern[1], line)] == [TESTS]
    subprocess.run(["bash", "-n", ROOT / ".ci" / "run"], check=True)


def test_the_version_is_one() -> None:
    assert tomllib.loads(PYPROJECT)["project"]["version"] == workbench.__version__


def test_a_wheel_carries_the_examples_and_templates_with_their_data(tmp_path: Path) -> None:
    (wheel,) = WheelBuilder(str(ROOT)).build(directory=str(tmp_path), versions=["standard"])
    names = set(zipfile.ZipFile(wheel).namelist())
    shipped = {
        p.relative_to(ROOT).as_posix()
        for folder in ("cascades", "templates")
        for p in (ROOT / folder).rglob("*")
        if p.is_file() and ".workbench" not in p.parts
    }
    assert {"templates/agent/notes.txt", "cascades/router.yaml"} <= shipped
    assert {f"workbench/data/{name}" for name in shipped if "__pycache__" not in name} <= names
    assert "workbench/cli/main.py" in names
    assert not any(name.startswith(("tests/", "scripts/", "bench/")) for name in names)
