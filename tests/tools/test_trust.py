"""What a workspace could do, and which folders a person has allowed to do it."""

from __future__ import annotations

import json
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from workbench.language.load import load
from workbench.language.model.cascade import Cascade
from workbench.tools.capabilities import CapabilityKind, Manifest, manifest
from workbench.tools.python_files import PythonFolder
from workbench.tools.trust import Trust, TrustDamaged

AT = "2026-01-31T09:00:00Z"


@pytest.fixture
def trust(tmp_path: Path) -> Trust:
    return Trust(tmp_path / "state" / "workbench")


@pytest.fixture
def tools(root: Path) -> Path:
    (root / "tools").mkdir()
    (root / "tools" / "a.py").write_text("def a() -> None: ...\n")
    return root / "tools"


def of(tools: Path, **rest: str) -> Manifest:
    return manifest(python=[PythonFolder.read(tools)], **rest)  # type: ignore[arg-type]


def cascade(text: str) -> Cascade:
    loaded = load(text, "c.yaml")
    assert loaded.cascade is not None
    return loaded.cascade


def test_a_folder_is_trusted_once_it_was_allowed(trust: Trust, root: Path, tools: Path) -> None:
    assert not trust.is_trusted(root, of(tools))
    trust.grant(root, of(tools), AT)
    assert trust.is_trusted(root, of(tools))
    assert trust.grants()[str(root)].at == AT
    assert trust.revoke(root)
    assert not trust.is_trusted(root, of(tools))
    assert not trust.revoke(root)


def test_nothing_that_acts_outside_needs_no_trust(trust: Trust, root: Path) -> None:
    assert trust.is_trusted(root, manifest())
    child = cascade(
        "cascade_id: c\nphases: [{name: a, instructions: x, tackle: [linux_shell], sub_cascades: [{ref: b.yaml}]}]"
    )
    listed = manifest(cascades=[child])
    assert [str(capability) for capability in listed.capabilities] == ["cascade: b.yaml"]
    assert trust.is_trusted(root, listed)


def test_adding_or_changing_a_capability_asks_again_and_names_it(trust: Trust, root: Path, tools: Path) -> None:
    trust.grant(root, of(tools), AT)
    (tools / "b.py").write_text("def b() -> None: ...\n")
    assert [str(capability) for capability in trust.missing(root, of(tools))] == [f"python: {tools}/b.py"]
    (tools / "b.py").unlink()
    (tools / "a.py").write_text("import os\n")
    assert not trust.is_trusted(root, of(tools))


def test_a_cascade_that_another_one_runs_is_no_question_of_its_own(trust: Trust, root: Path, tools: Path) -> None:
    parent = cascade("cascade_id: c\nphases: [{name: a, instructions: A., sub_cascades: [{ref: part.yaml}]}]\n")
    both = manifest(python=[PythonFolder.read(tools)], cascades=[parent])
    assert len(trust.missing(root, both)) == 2
    trust.grant(root, of(tools), AT)
    assert trust.is_trusted(root, both)


def test_taking_a_capability_away_and_editing_prompts_keeps_trust(trust: Trust, root: Path, tools: Path) -> None:
    before = cascade("cascade_id: c\nphases: [{name: a, instructions: one}]")
    after = cascade("cascade_id: c\nphases: [{name: a, instructions: two}]")
    folder = PythonFolder.read(tools)
    first = manifest(python=[folder], environment=["A", "B"], cascades=[before])
    trust.grant(root, first, AT)
    assert trust.is_trusted(root, manifest(python=[folder], environment=["B"], cascades=[after]))


def test_a_copied_moved_or_linked_folder_is_a_stranger(trust: Trust, root: Path, tools: Path) -> None:
    trust.grant(root, of(tools), AT)
    link = root.parent / "link"
    link.symlink_to(root)
    assert not trust.is_trusted(link, of(tools))
    with pytest.raises(ValueError, match="is a link"):
        trust.grant(link, of(tools), AT)
    moved = root.rename(root.parent / "moved")
    assert not trust.is_trusted(moved, of(moved / "tools"))


def test_the_manifest_lists_what_reaches_outside() -> None:
    shell = {"tool_id": "s", "type": "shell", "sandbox": False, "command": "ls {{ path }}"}
    http = {
        "tool_id": "h",
        "type": "http",
        "url": "https://api.example.org/v1",
        "headers": {"X-Key": "{{ env.API_KEY }}", "Y": "$OTHER_KEY"},
    }
    python = {"tool_id": "p", "type": "python", "import_path": "os.system"}
    files = {f"{body['tool_id']}.tool.json": json.dumps(body) for body in (shell, http, python)}
    acting = cascade(
        """
cascade_id: c
phases:
  - {name: a, tool: "python:jobs.clean"}
  - {name: b, instructions: x, tackle: [take_screenshot, read_file]}
"""
    )
    listed = manifest(tool_files={**files, "x.tool.json": "{"}, cascades=[acting], environment=["A", "C"])
    shown = [str(capability) for capability in listed.capabilities]
    assert shown == [
        "command: ls {{ path }}",
        "environment: A",
        "environment: API_KEY",
        "environment: C",
        "environment: OTHER_KEY",
        "network: a browser opens pages",
        "network: api.example.org",
        "python: os.system",
        "python: python:jobs.clean",
        "tool file: h.tool.json",
        "tool file: p.tool.json",
        "tool file: s.tool.json",
        "tool file: x.tool.json",
    ]
    assert listed.needs_trust


def test_running_without_a_sandbox_is_a_capability() -> None:
    (capability,) = manifest(sandbox_none=True).capabilities
    assert capability.kind is CapabilityKind.SANDBOX_NONE


def test_the_manifest_does_not_depend_on_the_order_of_its_parts() -> None:
    files = {"a.tool.json": "{}", "b.tool.json": "[]"}
    assert manifest(tool_files=files).sha256 == manifest(tool_files=dict(reversed(files.items()))).sha256


def test_a_damaged_record_trusts_nothing_and_is_never_overwritten(trust: Trust, root: Path, tools: Path) -> None:
    trust.grant(root, of(tools), AT)
    trust.path.write_text('{"format": 1, "folders": {"/x": {"at": 1}}}')
    damaged = trust.path.read_bytes()
    assert not trust.is_trusted(root, of(tools))
    with pytest.raises(TrustDamaged, match="move it away"):
        trust.grant(root, of(tools), AT)
    assert trust.path.read_bytes() == damaged


def test_the_record_is_for_this_user_alone_and_outside_the_workspace(trust: Trust, root: Path, tools: Path) -> None:
    trust.grant(root, of(tools), AT)
    assert stat.S_IMODE(trust.path.stat().st_mode) == 0o600
    assert not trust.path.is_relative_to(root)
    assert [path.name for path in trust.path.parent.iterdir() if path.name.startswith(".")] == []


def test_grants_at_the_same_time_are_all_kept(trust: Trust, tmp_path: Path, tools: Path) -> None:
    folders = [tmp_path / f"f{number}" for number in range(16)]
    for folder in folders:
        folder.mkdir()
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda folder: trust.grant(folder, of(tools), AT), folders))
    assert len(trust.grants()) == 16
