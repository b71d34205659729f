"""The environment of the cascades of a workspace: tools, validators, other cascades, and whether it is trusted."""

from __future__ import annotations

import asyncio
import functools
import json
from collections.abc import Callable, Coroutine, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar, cast

from msgspec import Struct
from msgspec.structs import replace

from workbench import resources
from workbench.context.strategy import SpecError, parse, strategy_facts
from workbench.engine.contracts import Render
from workbench.language.lint.environment import LintEnvironment, ToolFacts, ValidatorFacts
from workbench.language.load import load
from workbench.language.model.cascade import CASCADE_SUFFIXES, Cascade
from workbench.language.model.mcp import McpServer
from workbench.language.read.reading import MAX_DOT_BYTES
from workbench.language.read.text import read_source
from workbench.language.templates.template import Renderer
from workbench.models.env import load as load_env
from workbench.models.prices import PriceTable
from workbench.tools.addresses import NetworkReach
from workbench.tools.capabilities import BROWSER, Manifest, function_named, manifest, mcp_capabilities
from workbench.tools.mcp_servers import McpServers
from workbench.tools.paths import PathRefused, Workspace
from workbench.tools.python_files import FOLDER, PythonFolder, python_folders
from workbench.tools.python_tools import outline
from workbench.tools.rag.folder import folder_of
from workbench.tools.sandbox import Sandbox
from workbench.tools.templates.worker import apart
from workbench.tools.toolbox import Toolbox
from workbench.tools.trust import Trust
from workbench.workspace.opened_cascade import FileReader

if TYPE_CHECKING:
    from workbench.engine.journal.redact import Redactor
    from workbench.workspace.folders import Folders
    from workbench.workspace.settings import Settings

T = TypeVar("T")

_MOST = 500
"""Files of the tackle folders that are looked at: a folder with more holds something else."""


class LibraryCascade(Struct, frozen=True):
    """A cascade of a tackle folder."""

    file: Path
    text: str
    cascade: Cascade


class UnsandboxedCode(Struct, frozen=True):
    """Parts of a workspace that could act outside the sandbox, as read at one moment."""

    python: tuple[PythonFolder, ...]
    tool_files: Mapping[str, str]
    """Texts of ``.tool.json`` files by path."""
    environment: tuple[str, ...]
    """The variables that ``.env`` would set."""


class Folder(Protocol):
    """The workspace as its environment needs it (``Project``)."""

    root: Path
    settings: Settings
    folders: Folders

    @property
    def store_folder(self) -> Path: ...

    def variables(self, *, trusted: bool) -> Mapping[str, str]: ...

    def redactor(self) -> Redactor: ...

    def shown(self, file: Path) -> str: ...


class Environment:
    """Looks at the folders around a cascade when it is asked, and remembers."""

    def __init__(self, project: Folder) -> None:
        self._project = project
        self._libraries: dict[Path, dict[str, LibraryCascade]] = {}

    @functools.cached_property
    def prices(self) -> PriceTable:
        """The prices of calls, with the workspace's own prices."""
        return PriceTable(self._project.settings.prices)

    # -- trust -------------------------------------------------------------------------------------------------------

    def code(self, folder: Path) -> UnsandboxedCode:
        """The files of a workspace that could act outside the sandbox, read once, so that the checked content is what
        runs.
        """
        tool_files = [
            path for d in self._tackle_folders(folder) for path in sorted(d.glob("*.tool.json")) if path.is_file()
        ]
        return UnsandboxedCode(
            tuple(PythonFolder.read(path) for path in python_folders(folder, self._project.root)),
            {str(path): path.read_text("utf-8", "replace") for path in tool_files},
            tuple(load_env(self._project.root / ".env").values),
        )

    def manifest(
        self, folder: Path, *cascades: Cascade, sandbox: str = "", code: UnsandboxedCode | None = None
    ) -> Manifest:
        """Returns the abilities of the workspace outside the sandbox, with those that these cascades add."""
        code = code or self.code(folder)
        return manifest(
            python=code.python,
            tool_files=code.tool_files,
            cascades=cascades,
            environment=code.environment,
            servers=self.servers,
            root=self._project.root,
            sandbox_none=sandbox == "none",
            elsewhere=self._elsewhere(folder),
        )

    def trusted(self, folder: Path, *, code: UnsandboxedCode | None = None) -> bool:
        """Returns whether a person has allowed all that the workspace could do. What its cascades add by themselves
        (pages, functions of installed modules) is asked for one by one, where it is used."""
        return self._allowed(self.manifest(folder, code=code))

    def _elsewhere(self, folder: Path) -> Path | None:
        """The real folder of a cascade outside the workspace; None inside it."""
        real = folder.resolve()
        return None if real.is_relative_to(self._project.root) else real

    def _allowed(self, wanted: Manifest) -> bool:
        return Trust(self._project.folders.state).is_trusted(self._project.root, wanted)

    def renderer(self, folder: Path, *, code: UnsandboxedCode | None = None) -> Render:
        """Renders the templates of a cascade in ``folder``: this process if a person trusts the folder as it is, else a
        worker.
        """
        return Renderer() if self.granted(folder, code=code) else apart()

    def granted(self, folder: Path, *, code: UnsandboxedCode | None = None) -> bool:
        """Returns whether a person has trusted a folder as it is; one with nothing to allow is not trusted by that
        alone."""
        root = self._project.root
        granted = Trust(self._project.folders.state).has_grant(root) and folder.resolve().is_relative_to(root)
        return granted and self.trusted(folder, code=code)

    # -- tools -------------------------------------------------------------------------------------------------------

    def workspace(self, folder: Path) -> Workspace:
        """The folders that tools may read."""
        return Workspace.of(self._project.root, folder, store=self._project.store_folder)

    def toolbox(self, folder: Path) -> Toolbox:
        """The tools for a cascade in ``folder``. Python tools are imported only if the folder is trusted."""
        return self.toolboxes(folder)()

    def toolboxes(
        self, folder: Path, *, sandbox: str = "", code: UnsandboxedCode | None = None
    ) -> Callable[[], Toolbox]:
        """Makes such toolboxes, one for each of many runs, from the files and the trust of this moment."""
        project = self._project
        level = cast('Literal["auto"]', sandbox or project.settings.sandbox)
        workspace, elsewhere = self.workspace(folder), self._elsewhere(folder)
        redactor = cache(project.redactor)
        code = code or self.code(folder)
        reach = NetworkReach(tuple(project.settings.allow_hosts))
        trusted = self.trusted(folder, code=code)
        browser, commands = self._allowed(Manifest((BROWSER,))), self.granted(folder, code=code)
        variables, store = project.variables(trusted=trusted), project.store_folder
        walls = Sandbox(workspace.root, level=level, also_hidden=(store,))

        def made() -> Toolbox:
            return Toolbox.of(
                workspace,
                walls,
                code.python,
                trusted=trusted,
                beside=folder,
                tool_files=code.tool_files,
                browser=browser,
                artefacts=store / "browser",
                redact=lambda text: redactor()(text)[0],
                reach=reach,
                allowed=lambda name: self._allowed(Manifest((function_named(name, elsewhere),))),
                servers=McpServers(
                    workspace,
                    self.servers,
                    lambda name, one: self._allowed(Manifest(mcp_capabilities(name, one, project.root, elsewhere))),
                    variables,
                    reach,
                ),
                timeout_s=project.settings.tool_timeout,
                commands=commands,
            )

        return made

    @functools.cached_property
    def servers(self) -> Mapping[str, McpServer]:
        """The MCP servers of the settings, by name."""
        return {name: McpServer.model_validate(one) for name, one in self._project.settings.mcp.items()}

    # -- other cascades ----------------------------------------------------------------------------------------------

    def cascades(self, folder: Path) -> Mapping[str, LibraryCascade]:
        """The cascades of the tackle folders by ``cascade_id``; the first one found wins."""
        if folder not in self._libraries:
            library: dict[str, LibraryCascade] = {}
            for directory in self._tackle_folders(folder):
                for file in sorted(p for p in directory.iterdir() if _may_be_cascade(p))[:_MOST]:
                    if (found := _library_cascade(file)) is not None:
                        library.setdefault(found.cascade.cascade_id, found)
            self._libraries[folder] = library
        return self._libraries[folder]

    def unusable(self, folder: Path, name: str) -> str:
        """Why a file of the tackle folders does not offer this name: a cascade with errors, or a Python file that lies
        beside the folder that is read; empty if no file would offer it.
        """
        for directory in self._tackle_folders(folder):
            files = sorted(directory.iterdir())
            for file in [p for p in files if _may_be_cascade(p)][:_MOST]:
                if _library_cascade(file) is None and name in (text := _text(file) or ""):
                    data = read_source(text, file.name)[0].data
                    if isinstance(data, dict) and data.get("cascade_id") == name:
                        return f"it would be the cascade {self._project.shown(file)}, which has errors"
            for file in [p for p in files if p.suffix == ".py"][:_MOST]:
                if name in (text := _text(file) or ""):
                    found, _ = outline(text.encode(), str(file))
                    if any(tool == name for tool, _, _ in found):
                        shown = self._project.shown(file)
                        return f"{shown} defines it, but functions are read from the folder {FOLDER}/: move it there"
        return ""

    def forget(self) -> None:
        """Look again: files may have changed."""
        self._libraries.clear()
        _cascade_at.cache_clear()

    def _tackle_folders(self, folder: Path) -> list[Path]:
        """The tackle folders beside a cascade, those of the workspace, the folder itself, and the built-in one."""
        names = self._project.settings.tackle_dirs
        found = [base / name for base in (folder, self._project.root) for name in names]
        found += [folder, resources.folder("cascades") / "tackle"]
        return [path for path in dict.fromkeys(path.resolve() for path in found) if path.is_dir()]

    def reached(self, file: Path, cascade: Cascade) -> Iterator[Cascade]:
        """A cascade and all that it may start: files that it names, and cascades of the tackle folders."""
        library = self.cascades(file.resolve().parent)
        seen, waiting = {file.resolve()}, [(file.resolve(), cascade)]
        while waiting:
            path, each = waiting.pop()
            yield each
            said, reader = each.model_dump_json(), self._reader(path.parent)
            chosen = any(phase.manifest for phase in each.phases)
            found = [entry for name, entry in library.items() if chosen or json.dumps(name) in said]
            found += filter(None, map(_library_cascade, filter(None, map(reader.path, _refs(each)))))
            for entry in found:
                if entry.file not in seen:
                    seen.add(entry.file)
                    waiting.append((entry.file, entry.cascade))

    def _reader(self, folder: Path) -> FileReader:
        return FileReader(folder, self._project.root, self._project.settings.tackle_dirs)

    # -- checks ------------------------------------------------------------------------------------------------------

    def lint_environment(self, file: Path) -> LintEnvironment:
        """Returns the facts about the outside of one file that the pure checks need."""
        folder = file.parent
        toolbox = self.toolbox(folder)
        tools, validators = toolbox.facts(), toolbox.validator_facts()
        no_sandbox = cache(lambda: _run(toolbox.no_sandbox()))
        for name, text in toolbox.registry.not_offered.items():
            tools.setdefault(name, ToolFacts("declarative", text=text))
        own = file.resolve()
        for name, entry in self.cascades(folder).items():
            if entry.file == own:
                continue
            if entry.cascade.inputs_schema:
                tools.setdefault(
                    name,
                    ToolFacts(
                        "cascade",
                        text=entry.text,
                        description=entry.cascade.description or "",
                        parameters=tuple(entry.cascade.inputs_schema),
                        file=str(entry.file),
                        line=1,
                    ),
                )
            description = entry.cascade.description or ""
            if (function := validators.get(name)) is None:
                validators[name] = ValidatorFacts("cascade", description, entry.text, file=str(entry.file), line=1)
            else:
                validators[name] = replace(function, hides=self._project.shown(entry.file))
        return LintEnvironment(
            tools,
            validators,
            self._reader(folder).text,
            self.prices.supports_tools,
            self.prices.known,
            _bad_strategy,
            lambda directory: self._bad_folder(folder, directory),
            toolbox.refused_schemes(no_sandbox),
            toolbox.schemes.absent,
            lambda name: self.unusable(folder, name),
            strategy_facts,
            self.prices.cached_from,
            servers=tuple(self.servers),
            no_sandbox=no_sandbox,
        )

    def _bad_folder(self, folder: Path, directory: str) -> str:
        """Returns why a cascade in ``folder`` cannot search that directory."""
        try:
            folder_of(self.workspace(folder), directory, str(folder / "cascade"))
        except PathRefused as fault:
            return str(fault)
        return ""


def _refs(cascade: Cascade) -> Iterator[str]:
    for phase in cascade.phases:
        yield from (ref for _, ref in phase.refs)


def _bad_strategy(spec: str) -> tuple[str, int] | None:
    """Describes the fault of a strategy spec, and its column."""
    try:
        parse(spec)
    except SpecError as fault:
        return fault.message, fault.column
    return None


def _run(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that asks the operating system, from wherever a check is wanted."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, work).result()


def _text(path: Path) -> str | None:
    """The text of a file that may be a cascade: None for one that is too large, or cannot be read."""
    try:
        return path.read_text("utf-8") if path.stat().st_size <= MAX_DOT_BYTES else None
    except (OSError, UnicodeDecodeError):
        return None


def _may_be_cascade(path: Path) -> bool:
    return (
        path.suffix in CASCADE_SUFFIXES and path.is_file() and not path.name.endswith((".tool.json", ".replies.yaml"))
    )


def _library_cascade(file: Path) -> LibraryCascade | None:
    stat = file.stat()
    return _cascade_at(file, stat.st_mtime_ns, stat.st_size)


@functools.lru_cache(maxsize=2048)
def _cascade_at(file: Path, _mtime: int, _size: int) -> LibraryCascade | None:
    text = _text(file)
    if text is None or "phases" not in text:
        return None
    loaded = load(text, file.name)
    return LibraryCascade(file.resolve(), text, loaded.cascade) if loaded.cascade is not None else None
