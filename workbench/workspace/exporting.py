"""Stored runs in formats that other tools read, as documents, as a file, or as a folder."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.exporters.checkpoint import checkpoint_files
from workbench.exporters.html import run_html
from workbench.exporters.messages import conversations
from workbench.exporters.otel import spans_of_run
from workbench.exporters.translated import CannotTranslate, Translation, as_cascade, as_dot
from workbench.files import replacing, write_whole
from workbench.language.load import Loaded, load
from workbench.store.index.table import write_parquet
from workbench.workspace.recorded_runs import StoredImages

if TYPE_CHECKING:
    from workbench.workspace.project import Project
from workbench.workspace.sql_queries import open_index

ENDINGS = {
    "messages": ".messages.jsonl",
    "otel": ".otel.json",
    "html": ".html",
    "cascade": ".cascade.yaml",
    "dot": ".dot",
    "checkpoint": ".checkpoint",
    "parquet": ".parquet",
}
"""The formats, and what the name of a file of each ends with; a checkpoint is a folder."""
FORMATS = tuple(ENDINGS)

TEXTS = ("messages", "otel", "html", "cascade", "dot")
"""Those that are one text, and may go to standard output."""
DEFINITIONS = ("cascade", "dot")
"""Those that say what ran, not how it went: of a file as well as of a run."""


def documents_of(project: Project, run_id: str, format_name: str, *, details: bool = False) -> Sequence[dict[str, Any]]:
    """A run as ``messages``, one document for each conversation (``details`` as in ``conversations``), or as ``otel``,
    one document in all. Raises UnknownRun, ValueError for another format."""
    store = project.store
    state, images = store.state(run_id), StoredImages(store, run_id)
    if format_name == "messages":
        return list(conversations(state, images, details=details))
    if format_name != "otel":
        raise ValueError(f"there is no format '{format_name}': messages or otel")
    return [spans_of_run(state, list(store.events(run_id)), images)]


def text_of(project: Project, run_id: str, format_name: str, *, details: bool = False) -> str:
    """A run as one text (``TEXTS``); ``details`` is for messages. Raises UnknownRun, ValueError for another format."""
    if format_name == "html":
        return run_html(project.store.state(run_id), StoredImages(project.store, run_id))
    if format_name in DEFINITIONS:
        return definition_of(project, run_id, format_name).text
    documents = documents_of(project, run_id, format_name, details=details)
    return "".join(json.dumps(document, ensure_ascii=True) + "\n" for document in documents)


def translated(loaded: Loaded, format_name: str) -> Translation:
    """A definition as ``cascade`` or ``dot``; one that is of that format already as it is. Raises CannotTranslate."""
    if format_name == "cascade":
        return as_cascade(loaded)
    if loaded.own is not None and loaded.own.format == "dot":
        return Translation(loaded.source.bom + loaded.source.text)
    if loaded.own is not None:
        raise CannotTranslate("a task decomposition waits for all its dependencies; an edge of DOT leads to one node")
    return as_dot(loaded)


def definition_of(project: Project, run_id: str, format_name: str) -> Translation:
    """Returns the definition of a run, as ``cascade`` or ``dot``. Raises UnknownRun, CannotTranslate."""
    state = project.store.state(run_id)
    loaded = load(state.cascade_text, state.cascade_file)
    if format_name == "cascade" and loaded.own is None:
        return Translation(state.cascade_text)
    return translated(loaded, format_name)


def export_file(project: Project, run_id: str, format_name: str, path: Path, *, details: bool = False) -> None:
    """Write a run to a file, or as a checkpoint to a new folder; ``details`` is for messages. Raises OSError,
    UnknownRun, StoreError and CannotTranslate, and ValueError for a format that is none."""
    if format_name not in FORMATS:
        raise ValueError(f"there is no format '{format_name}': {', '.join(FORMATS)}")
    if format_name == "checkpoint":
        _checkpoint(project, run_id, path)
    elif format_name == "parquet":
        _parquet(project, run_id, path)
    else:
        write_whole(path, text_of(project, run_id, format_name, details=details).encode())


def _checkpoint(project: Project, run_id: str, path: Path) -> None:
    """Write the folder whole or not at all. Raises FileExistsError where there is one."""
    state = project.store.state(run_id)
    ending = Path(state.cascade_file).suffix or ".yaml"
    if path.exists():
        raise FileExistsError(17, "there is something of that name already", str(path))
    with tempfile.TemporaryDirectory(prefix=f".{path.name}.", dir=path.resolve().parent) as folder:
        fresh = Path(folder) / "checkpoint"
        for name, text in checkpoint_files(state, ending):
            (fresh / name).parent.mkdir(parents=True, exist_ok=True)
            (fresh / name).write_text(text, "utf-8", errors="replace")
        fresh.rename(path)


def _parquet(project: Project, run_id: str, path: Path) -> None:
    """All rows of the run and of its bodies, as ``all_data`` has them; indexed first. Raises StoreError."""
    project.store.folder(run_id)
    with open_index(project.store) as index:
        index.catch_up()
        rows = index.arrow("SELECT * FROM all_data WHERE run_id = {run:String} ORDER BY seq", None, {"run": run_id})
    with replacing(path) as fresh:
        write_parquet(rows, fresh)
