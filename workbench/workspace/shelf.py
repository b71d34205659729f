"""The cascades around a run, as the engine's Library: files by path, tackle folders by name, journals for children."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from workbench.engine.definition import Definition, DefinitionError
from workbench.engine.library import CascadeNotFound
from workbench.engine.ports import Ports
from workbench.tools.toolbox import ChildTools, Toolbox
from workbench.workspace.opened import Reader, included
from workbench.workspace.project import Project


class Shelf:
    """Implements ``Library`` over the files of a workspace and its store."""

    def __init__(self, project: Project, folder: Path) -> None:
        self._project = project
        self._folder = folder

    def by_path(self, ref: str, file: str) -> Definition:
        folder = (self._project.root / file).parent if file else self._folder
        reader = Reader(folder, self._project.root)
        path = reader.path(ref)
        text = reader.text(ref)
        if path is None or text is None:
            raise CascadeNotFound(f"cascade file '{ref}' not found")
        return self._definition(text, path)

    def by_name(self, name: str) -> Definition | None:
        shelved = self._project.around.cascades(self._folder).get(name)
        return None if shelved is None else self._definition(shelved.text, shelved.file)

    def names(self) -> Sequence[str]:
        shelf = self._project.around.cascades(self._folder)
        return sorted(name for name, shelved in shelf.items() if shelved.cascade.inputs_schema)

    @contextmanager
    def child_ports(self, parent: Ports, run_id: str, key: str) -> Iterator[Ports]:
        from workbench.workspace.saving import Saving

        project = self._project
        with (
            project.store.create_anyway(run_id) as sink,
            Saving(sink, parent.notify, project.notes.append, project.unsaved),
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
        texts = included(definition.cascade, Reader(path.parent, self._project.root))
        return replace(definition, includes=texts)
