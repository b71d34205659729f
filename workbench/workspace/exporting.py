"""Stored runs in formats that other tools read, as documents or as a file."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from workbench.workspace.project import Project

FORMATS = ("messages", "otel")


def documents_of(project: Project, run_id: str, format_name: str) -> Sequence[dict[str, Any]]:
    """A run as ``messages``, one document for each conversation, or as ``otel``, one document in all. Raises
    UnknownRun, ValueError for another format."""
    from workbench.exporters.messages import conversations
    from workbench.exporters.otel import spans_of_run
    from workbench.workspace.live import StoredImages

    store = project.store
    state, images = store.state(run_id), StoredImages(store, run_id)
    if format_name == "messages":
        return list(conversations(state, images))
    if format_name != "otel":
        raise ValueError(f"there is no format '{format_name}': {' or '.join(FORMATS)}")
    return [spans_of_run(state, list(store.events(run_id)), images)]


def export_file(project: Project, run_id: str, format_name: str, path: Path) -> None:
    """Write a run to a file, one document a line. Raises OSError, and as ``documents_of``."""
    from workbench.workspace.comparing import replace_file

    documents = documents_of(project, run_id, format_name)
    replace_file(path, "".join(json.dumps(document, ensure_ascii=True) + "\n" for document in documents))
