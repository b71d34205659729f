"""Workspaces of tests: a folder of its own, as the current one, with the files that a test wants."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

CASCADE = """\
cascade_id: greet
inputs_schema: {name: who is greeted}
phases:
  - name: look
    instructions: "Read notes.txt for {{ input.name }}."
    tackle: [read_file]
    rules: {max_turns: 3}
    intra_context: {mask_observations_after: 1, min_masked_size: 10}
    handoffs: [{target: answer, description: when all is read}, {target: refuse, description: otherwise}]
  - name: answer
    instructions: Greet them.
    context: {from: [look]}
    handoffs: []
  - name: refuse
    instructions: Refuse.
    handoffs: []
"""
REPLIES = """\
replies:
  look:
    - say: I read it.
      calls: [{tool: read_file, arguments: {path: notes.txt}}]
    - calls: [{tool: read_file, arguments: {path: absent.txt}}]
    - say: All is read.
      calls: [{tool: route_to, arguments: {target: answer}}]
  answer:
    - text: "Hello, Ada."
"""
NOTES = "Ada likes short greetings.\n" * 4
GREETING: Mapping[str, Any] = {
    "greet.yaml": CASCADE,
    "greet.replies.yaml": REPLIES,
    "greet.input.json": {"name": "Ada"},
    "notes.txt": NOTES,
}
"""The files of a workspace where ``greet.yaml`` can run."""


_PREFIXES = ("WORKBENCH_", "WINDLASS_", "OTEL_")
"""Of variables that a test sets itself."""


def alone(patch: pytest.MonkeyPatch, home: Path, folder: Path) -> None:
    """Make a folder the current one; no key, no setting and no store of the machine is seen from it."""
    for name in list(os.environ):
        if name.startswith(_PREFIXES) or name.endswith(("_API_KEY", "_API_BASE", "_BASE_URL")):
            patch.delenv(name)
    patch.setenv("WORKBENCH_CONFIG_DIR", str(home / "config"))
    patch.setenv("WORKBENCH_STATE_DIR", str(home / "state"))
    folder.mkdir(parents=True, exist_ok=True)
    patch.chdir(folder)


def filled(folder: Path, files: Mapping[str, Any]) -> Path:
    """Write files into the folder, by their paths: texts and bytes as they are, other values as JSON; the folder."""
    for name, body in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(body, bytes):
            file.write_bytes(body)
        else:
            file.write_text(body if isinstance(body, str) else json.dumps(body), "utf-8")
    return folder
