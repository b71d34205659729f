"""Images of a run have names of their own, beside the blobs that they are."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import struct
import zlib
from collections.abc import Mapping
from pathlib import Path

import pytest

from workbench.engine.past.recording import Recording
from workbench.store.faults import StoreError
from workbench.workspace.exporting import text_of
from workbench.workspace.model_choice import choose_model
from workbench.workspace.project import Project
from workbench.workspace.recorded_runs import StoredImages
from workbench.workspace.run_builder import RunAttachments, Start, new_options, run_new
from workbench.workspace.run_files import path_of

TOOL = '''
from workbench import register_tackle

def draw() -> dict:
    """Draws a dot."""
    return {"content": "drawn", "images": ["dot.png"]}

register_tackle("draw", draw)
'''


def png() -> bytes:
    """The smallest picture there is."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    header = struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"\0\0")) + chunk(b"IEND", b"")


def test_a_tools_image_is_saved_under_session_and_phase(tmp_path: Path) -> None:
    turns = [{"calls": [{"tool": "draw", "arguments": {}}], "closing": "Done."}]
    text = "cascade_id: c\nphases: [{name: a b, instructions: Draw., tackle: [draw]}]\n"
    project = ran(tmp_path, text, {"replies": {"a b": turns}})
    saved = project.store.root / "images" / "s1" / "a-b" / "image_0.png"
    assert saved.read_bytes() == png()


CANDIDATES = """
cascade_id: parent
phases:
  - name: a
    instructions: Draw.
    tackle: [draw]
    rules: {max_turns: 2}
    soundings: {factor: 2, max_parallel: 1, evaluator_instructions: Any}
  - name: b
    instructions: Draw again.
    sub_cascades: [{ref: child.yaml}]
"""
CHILD = "cascade_id: child\nphases: [{name: inner, tool: draw, inputs: {}}]\n"


def test_candidates_and_nested_runs_name_their_images_after_themselves(tmp_path: Path) -> None:
    turns = [{"calls": [{"tool": "draw", "arguments": {}}], "closing": "Done."}]
    replies = {"replies": {"a": turns, "b": [{"text": "ok"}]}}
    (tmp_path / "child.yaml").write_text(CHILD, "utf-8")
    project = ran(tmp_path, CANDIDATES, replies)
    images = project.store.root / "images"
    assert sorted(path.relative_to(images).as_posix() for path in images.rglob("*.png")) == [
        "s1/a/sounding_0_image_0.png",
        "s1/a/sounding_1_image_0.png",
        "s1_sub_0/inner/image_0.png",
    ]


def test_an_image_is_found_by_its_digest_under_the_name_that_people_know(tmp_path: Path) -> None:
    project = ran(tmp_path, CHILD, {"replies": {}})
    digest = hashlib.sha256(png()).hexdigest()
    run_id = project.store.find("s1")
    named = project.store.root / "images" / "s1" / "inner" / "image_0.png"
    assert path_of(project.store, run_id, "s1", digest) == named
    named.unlink()
    assert path_of(project.store, run_id, "s1", digest) == project.store.image_path(run_id, digest)


def test_an_image_that_somebody_wrote_into_a_message_is_saved_as_well(tmp_path: Path) -> None:
    url = f"data:image/png;base64,{base64.b64encode(png()).decode()}"
    text = f"cascade_id: c\nphases: [{{name: a, instructions: 'See {url} and data:image/png;base64,AAAA end.'}}]\n"
    project = ran(tmp_path, text, {"replies": {"a": [{"text": "seen"}]}})
    (saved,) = (project.store.root / "images" / "s1" / "a").iterdir()
    assert (saved.name, saved.read_bytes()) == ("image_0.png", png())


def test_a_run_whose_image_is_lost_is_replayed_and_shown_without_it(tmp_path: Path) -> None:
    project = ran(tmp_path, CHILD, {"replies": {}})
    run_id = project.store.find("s1")
    digest = hashlib.sha256(png()).hexdigest()
    project.store.image_path(run_id, digest).unlink()
    images = StoredImages(project.store, run_id)
    recording = Recording(project.store.events(run_id), images)
    ((place, index),) = recording.started
    found = recording.result(place, index)
    assert found is not None
    result = found[2]
    assert (result.text, result.images[0].data) == ("drawn", b"")
    assert "its bytes are gone" in text_of(project, run_id, "html")
    with pytest.raises(StoreError, match=f"image '{digest[:12]}' of run"):
        images[digest]


def test_a_run_that_is_removed_takes_the_names_of_its_images_along(tmp_path: Path) -> None:
    project = ran(tmp_path, CHILD, {"replies": {}})
    images = project.store.root / "images"
    (images / "s1" / "inner" / "own.png").write_bytes(png())
    project.store.remove(project.store.find("s1"))
    assert [path.name for path in images.rglob("*.png")] == ["own.png"]


def ran(folder: Path, text: str, replies: Mapping[str, object]) -> Project:
    """A run s1 of a cascade with scripted replies and a tool that draws."""
    (folder / "tools").mkdir()
    (folder / "tools" / "draw.py").write_text(TOOL, "utf-8")
    (folder / "dot.png").write_bytes(png())
    (folder / "c.yaml").write_text(text, "utf-8")
    (folder / "c.replies.yaml").write_text(json.dumps(replies), "utf-8")
    env = {"WORKBENCH_STATE_DIR": str(folder / "state"), "WORKBENCH_CONFIG_DIR": str(folder / "config")}
    env["WORKBENCH_UNSCRIPTED"] = "ok"
    project = Project.at(folder, env=env)
    trust(project)
    opened = project.open(folder / "c.yaml")
    assert opened.definition is not None, opened.problems
    choice = choose_model(project, opened.cascade, opened.file)
    start = Start(opened.definition, folder / "c.yaml", {}, choice, new_options(project, "c", choice, "s1"))
    outcome = asyncio.run(run_new(project, start, RunAttachments()))
    assert outcome.status == "success", outcome.reason
    return project


def trust(project: Project) -> None:
    from workbench.tools.trust import Trust

    wanted = project.environment.manifest(project.root)
    Trust(project.folders.state).grant(project.root, wanted, "2026-01-01T00:00:00Z")


def test_how_many_images_are_sent_is_read_from_the_environment_under_both_names(tmp_path: Path) -> None:
    for name in ("WORKBENCH_KEEP_RECENT_IMAGES", "WINDLASS_KEEP_RECENT_IMAGES"):
        project = Project.at(tmp_path, env={name: "2", "WORKBENCH_CONFIG_DIR": str(tmp_path / "config")})
        assert new_options(project, "c", choose_model(project, None, None), "s1").keep_recent_images == 2
