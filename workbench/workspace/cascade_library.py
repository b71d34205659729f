"""The cascades around a run, as the engine's Library: files by path, tackle folders by name, journals for children."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from msgspec.structs import replace

from workbench.engine.contracts import CascadeNotFound, Ports
from workbench.engine.definition import Definition, DefinitionError
from workbench.engine.journal.event import Event
from workbench.engine.journal.journal_writer import Sink
from workbench.tools.toolbox import ChildTools, Toolbox
from workbench.workspace.opened_cascade import included
from workbench.workspace.project import Project
from workbench.workspace.saving import JournalWatch


class CascadeLibrary:
    """Implements ``Library`` over the files of a workspace and its store."""

    def __init__(self, project: Project, folder: Path) -> None:
        self._project = project
        self._folder = folder

    def by_path(self, ref: str, file: str) -> Definition:
        folder = (self._project.root / file).parent if file else self._folder
        reader = self._project.reader(folder)
        path = reader.path(ref)
        text = reader.text(ref)
        if path is None or text is None:
            raise CascadeNotFound(f"cascade file '{ref}' not found")
        return self._definition(text, path)

    def by_name(self, name: str) -> Definition | None:
        entry = self._project.environment.cascades(self._folder).get(name)
        return None if entry is None else self._definition(entry.text, entry.file)

    def names(self) -> Sequence[str]:
        library = self._project.environment.cascades(self._folder)
        return sorted(name for name, entry in library.items() if entry.cascade.inputs_schema)

    @contextmanager
    def child_ports(self, parent: Ports, run_id: str, key: str, *, resumes: bool = False) -> Iterator[Ports]:
        project = self._project
        with (
            (project.store.append_to if resumes else project.store.create_anyway)(run_id) as sink,
            JournalWatch(sink, parent.notify, project.notes.append, project.unsaved),
        ):
            if not isinstance(parent.tools, (Toolbox, ChildTools)):
                yield replace(parent, sink=sink)
                return
            tools = parent.tools.of_child(run_id)
            try:
                yield replace(parent, sink=sink, tools=tools)
            finally:
                tools.leave()

    def _definition(self, text: str, path: Path) -> Definition:
        shown = self._project.shown(path)
        try:
            definition = Definition.of(text, shown)
        except DefinitionError as fault:
            raise CascadeNotFound(f"cascade file '{shown}' cannot run: {fault}") from fault
        if definition.graph.format == "dot" and not self._project.environment.granted(path.parent):
            told = f"the child graph '{shown}' does not run, because this folder is not trusted: "
            refused = CascadeNotFound(f"{told}`workbench trust` shows and allows it")
            refused.needs_trust = True
            raise refused
        texts = included(definition.cascade, self._project.reader(path.parent))
        return replace(definition, includes=texts)


class ReplayLibrary(CascadeLibrary):
    """The cascades of a workspace for replays: a child run leaves no journal; the replay observes its events."""

    @contextmanager
    def child_ports(self, parent: Ports, run_id: str, key: str, *, resumes: bool = False) -> Iterator[Ports]:
        yield replace(parent, sink=_Images(parent.sink))


class _Images:
    """Keeps the images of a child run with those of its parent."""

    def __init__(self, parent: Sink) -> None:
        self._parent = parent

    def append(self, event: Event) -> None:
        """Seen by the observer already."""

    def blob(self, digest: str, data: bytes) -> None:
        self._parent.blob(digest, data)

    def sync(self) -> None:
        """Does nothing: there is no storage."""
