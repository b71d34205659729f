"""Images of a run have names of their own, beside the blobs that they are."""

from __future__ import annotations

import asyncio
import json
import struct
import zlib
from pathlib import Path

from workbench.workspace.choice import choose_model
from workbench.workspace.live import Attached, Start, new_options, run_new
from workbench.workspace.project import Project

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
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "draw.py").write_text(TOOL, "utf-8")
    (tmp_path / "dot.png").write_bytes(png())
    cascade = {"cascade_id": "c", "phases": [{"name": "a b", "instructions": "Draw.", "tackle": ["draw"]}]}
    (tmp_path / "c.json").write_text(json.dumps(cascade), "utf-8")
    replies = {"replies": {"a b": [{"calls": [{"tool": "draw", "arguments": {}}], "closing": "Done."}]}}
    (tmp_path / "c.replies.yaml").write_text(json.dumps(replies), "utf-8")
    env = {"WORKBENCH_STATE_DIR": str(tmp_path / "state"), "WORKBENCH_CONFIG_DIR": str(tmp_path / "config")}
    project = Project.at(tmp_path, env=env)
    trust(project)
    opened = project.open(tmp_path / "c.json")
    assert opened.definition is not None, opened.problems
    choice = choose_model(project, opened.cascade)
    options = new_options(project, "c", choice, "s1")
    start = Start(opened.definition, tmp_path / "c.json", {}, choice, options)
    outcome = asyncio.run(run_new(project, start, Attached()))
    assert outcome.output == "Done."
    saved = project.store.root / "images" / "s1" / "a-b" / "image_1.png"
    assert saved.read_bytes() == png()


def trust(project: Project) -> None:
    from workbench.tools.trust import Trust

    wanted = project.around.manifest(project.root)
    Trust(project.folders.state).grant(project.root, wanted, "2026-01-01T00:00:00Z")
