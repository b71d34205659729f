"""A disk that is full, and a folder that cannot be written: real mounts, in a namespace of their own."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.conftest import DEADLINE
from tests.e2e.test_together import prepare
from tests.store.examples import plain_run, save
from tests.support.command import WORKBENCH
from workbench.store.store import Store


def mounted(folder: Path, *mounts: str, script: str) -> subprocess.CompletedProcess[str]:
    """Run a shell script in a mount namespace where ``$W`` is ``workbench``. Skips where none can be made."""
    able = (
        shutil.which("bwrap") is not None
        and not subprocess.run(["bwrap", "--dev-bind", "/", "/", "true"], capture_output=True, check=False).returncode
    )
    if not able:
        reason = "no mount namespace can be made (bubblewrap)"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    wrapper = folder.parent / "w"
    wrapper.write_text(f"#!/bin/sh\nexec {WORKBENCH[0]} -c '{WORKBENCH[2]}' \"$@\"\n")
    wrapper.chmod(0o755)
    return subprocess.run(
        ["bwrap", "--dev-bind", "/", "/", *mounts, "--chdir", str(folder), "sh", "-c", script],
        env={**os.environ, "W": str(wrapper)},
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        check=False,
    )


def one_after_the_other(*commands: str) -> str:
    """A shell command that runs these in one process, up to the first that fails."""
    program = (
        "import sys\nfrom workbench.cli.main import main\n"
        f"for words in {[one.split() for one in commands]}:\n"
        "    try:\n        main(words)\n    except SystemExit as ended:\n        if ended.code: raise\n"
    )
    return shlex.join([sys.executable, "-c", program])


@pytest.mark.fault("F8")
def test_on_a_full_disk_a_run_goes_on_in_memory_and_what_is_missing_lies_elsewhere(folder: Path) -> None:
    prepare(folder)
    (folder / "notes.txt").write_text("one line of the notes\n" * 1_500)
    kept = folder / "kept"
    done = mounted(
        folder,
        *("--size", "65536", "--tmpfs", str(folder / ".workbench")),
        script=f"$W run ledger.yaml --session s --json; code=$?; cp -r .workbench/journal {kept}; exit $code",
    )
    assert done.returncode == 0, done.stderr
    assert "the run is not saved: " in done.stderr
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert told[-1]["data"]["status"] == "success"
    (rescued,) = (folder.parent / "state" / "unsaved").glob("*/*.jsonl")
    assert str(rescued) in done.stderr
    root = folder / "again"
    shutil.copytree(kept, root / "journal")
    run_id = rescued.parent.name
    before = list(Store(root).events(run_id))
    assert 0 < len(before) < len(told)
    shutil.copytree(rescued.parent, root / "journal" / run_id, dirs_exist_ok=True)
    assert [event.to_json() for event in Store(root).events(run_id)] == told


@pytest.mark.fault("F9")
def test_in_a_folder_that_cannot_be_written_everything_works_and_runs_are_kept_elsewhere(folder: Path) -> None:
    prepare(folder)
    script = one_after_the_other("run ledger.yaml --session s", "context s -s snowball", "runs", "check ledger.yaml")
    done = mounted(folder, "--ro-bind", str(folder), str(folder), script=script)
    assert done.returncode == 0, done.stderr
    assert "the workspace cannot be written: runs are kept in " in done.stderr
    assert done.stdout.startswith("Twenty-one.\n")
    assert not (folder / ".workbench").exists()
    (store,) = (folder.parent / "state" / "stores").iterdir()
    assert Store(store).state(Store(store).find("s")).output == "Twenty-one."


@pytest.mark.fault("F9")
def test_in_a_folder_that_cannot_be_written_its_own_runs_are_read(folder: Path) -> None:
    save(Store(folder / ".workbench"), plain_run())
    script = one_after_the_other("runs", "show demo --json")
    done = mounted(folder, "--ro-bind", str(folder), str(folder), script=script)
    listed, _, shown = done.stdout.partition("{")
    assert done.returncode == 0, done.stderr
    assert "demo" in listed
    assert '"status": "success"' in shown
    assert "those in the workspace can be read" in done.stderr
