"""What version 0.1.0 and today's have written opens, shows its numbers, and is still written as it was."""

from __future__ import annotations

import asyncio
import os
import re
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.engine.support import FunctionTools, ScriptedModel, call, ports
from tests.store.examples import read_run
from workbench import __version__
from workbench.engine.definition import Definition, Options
from workbench.engine.journal.state import RunState
from workbench.engine.run.run import Run
from workbench.snapshots.snapshot import Snapshot, parsed
from workbench.store.journal.record import decoded, encoded, link_of
from workbench.store.store import Store
from workbench.workspace.drafts import Draft
from workbench.workspace.project import Project
from workbench.workspace.testing import Snapshots

DATA = Path(__file__).resolve().parent.parent / "data"
VERSIONS = ("0.1.0", "0.2.0")
EACH = pytest.mark.parametrize("version", VERSIONS)
CHECKSUM = re.compile(rb'(,"prev":"[0-9a-f]{8}")?,"crc":"[0-9a-f]{8}"\}$', re.MULTILINE)


def stored(version: str, name: str) -> bytes:
    return (DATA / version / name).read_bytes()


@pytest.fixture
def folder(tmp_path: Path, version: str) -> Path:
    """A workspace as that version left it."""
    journal = stored(version, "journal.jsonl")
    run = tmp_path / ".workbench" / "journal" / decoded(journal.splitlines()[0]).run_id
    run.mkdir(parents=True)
    (run / "000001.jsonl").write_bytes(journal)
    (run / "summary.json").write_bytes(stored(version, "summary.json"))
    (tmp_path / "flow.yaml").write_bytes(stored(version, "flow.yaml"))
    (tmp_path / "snapshots").mkdir()
    (tmp_path / "snapshots" / "kept.json").write_bytes(stored(version, "snapshot.json"))
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "config.yaml").write_bytes(stored(version, "config.yaml"))
    return tmp_path


@pytest.fixture
def project(folder: Path) -> Project:
    own = {"WORKBENCH_CONFIG_DIR": str(folder / "config"), "WORKBENCH_STATE_DIR": str(folder / "state")}
    return Project.at(folder, env={"PATH": os.environ["PATH"], **own})


@EACH
@pytest.mark.parametrize("has_summary", [True, False])
def test_a_stored_run_shows_its_numbers(project: Project, folder: Path, has_summary: bool) -> None:
    if not has_summary:
        next(folder.glob(".workbench/journal/*/summary.json")).unlink()
    (run,) = project.store.runs()
    assert (run.session_id, run.status, run.phases) == ("kept", "success", ("look", "tell"))
    assert (run.calls, run.tools, run.tokens_in, run.tokens_out) == (5, 1, 510, 68)
    assert run.cost == pytest.approx(7.73e-05)


@EACH
def test_a_stored_journal_is_whole_and_folds_to_its_state(project: Project, folder: Path) -> None:
    (run,) = project.store.runs()
    events, health = read_run(project.store.folder(run.run_id))
    assert health.whole
    assert health.finished
    state = RunState.of(events)
    assert state.state == {"shell": "chalk"}
    assert state.output == "A snail’s shell is chalk."


@EACH
def test_a_stored_snapshot_replays(project: Project, folder: Path) -> None:
    file = folder / "snapshots" / "kept.json"
    verdict = Snapshots(project, file.parent).replay(file)
    assert verdict.passed, verdict.fault or verdict.differences
    assert verdict.calls == 5


@EACH
def test_stored_settings_are_in_force(project: Project) -> None:
    assert project.settings.max_visits == 7


@EACH
def test_a_stored_draft_is_read(tmp_path: Path, version: str) -> None:
    draft = Draft(tmp_path / "drafts", tmp_path / "flow.yaml")
    draft.keep("")
    (file,) = (tmp_path / "drafts").iterdir()
    file.write_bytes(stored(version, "draft.json"))
    assert draft.text() == "cascade_id: not saved yet\n"


# -- bytes -----------------------------------------------------------------------------------------------------------


@EACH
def test_a_record_is_written_as_it_was_read(version: str) -> None:
    for line in stored(version, "journal.jsonl").splitlines(keepends=True):
        assert encoded(decoded(line[:-1]), link_of(line)) == line


def test_a_snapshot_is_written_as_it_was_read() -> None:
    text = stored("0.2.0", "snapshot.json").decode("utf-8")
    assert Snapshot.from_json(parsed(text)).to_text() == text


DOCUMENT = """\
cascade_id: fixed
phases:
  - name: look
    instructions: "Look at {{ input.thing }}."
    tackle: [look]
    rules: {max_turns: 3}
    intra_context: {mask_observations_after: 1, min_masked_size: 10}
    handoffs: [tell]
  - name: tell
    instructions: Tell it.
    context: {from: [look]}
"""


def test_a_run_is_written_as_by_the_version_before(tmp_path: Path) -> None:
    """A difference here is a change of the journal's format: give it a reader for the old form, then write the file
    anew with WORKBENCH_UPDATE_SNAPSHOTS=1."""
    model = ScriptedModel([f"One.\n{call('look', x='1')}", f"Two.\n{call('look', x='2')}", "Seen.", "Told."])
    with Store(tmp_path / ".workbench").create("run-1") as journal:
        outside = replace(ports(model, tools=FunctionTools({"look": lambda x="0": f"view {x} " * 20})), sink=journal)
        definition = Definition.of(DOCUMENT, "fixed.yaml")
        run = Run(definition, {"thing": "a snail’s shell"}, Options("fixed", "gpt-4o"), outside, run_id="run-1")
        asyncio.run(run.execute())
    segment = Store(tmp_path / ".workbench").folder("run-1") / "000001.jsonl"
    now = CHECKSUM.sub(b"}", segment.read_bytes()).replace(f'"version":"{__version__}"'.encode(), b'"version":"now"')
    file = DATA / "0.2.0" / "fixed.jsonl"
    if os.environ.get("WORKBENCH_UPDATE_SNAPSHOTS"):
        file.write_bytes(now)
    assert now.decode().splitlines() == file.read_text("ascii").splitlines()
