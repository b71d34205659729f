"""Files of a run for others to open: names for its images, its graph as Mermaid, its Pareto frontier as JSON."""

from __future__ import annotations

import base64
import binascii
import json
import os
import re
import shutil
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from workbench.context.pictured import MAX_BYTES, sniff
from workbench.engine.contracts import ToolImage
from workbench.engine.definition import Definition, DefinitionError
from workbench.engine.journal.candidate_rounds import REFORGE_STEP
from workbench.engine.journal.event import Event
from workbench.engine.journal.state import RunState
from workbench.language.check import slug
from workbench.store.branches import Branches
from workbench.store.faults import StoreError
from workbench.store.journal.disk import LocalDisk, write_whole
from workbench.store.store import Store
from workbench.tools.paths import PathRefused
from workbench.tools.results import ImageRefused, read_image
from workbench.workspace.mermaid import RunPath, mermaid
from workbench.workspace.project import Project

# The graph of a run as a file for others to draw: ``SESSION.mmd`` in the folder of graphs, on demand of a setting.


class Diagrams:
    """Writes the graph of a run with its walk, at the run's end.

    A failed write is reported to ``problem`` and has no other effect.
    """

    def __init__(self, store: Store, folder: Path, problem: Callable[[str], None]) -> None:
        self._store = store
        self._folder = folder
        self._problem = problem

    def __call__(self, event: Event) -> None:
        """Take one event, after it is in the journal."""
        if event.kind == "run_finished":
            try:
                self._write(self._store.state(event.run_id))
            except StoreError as fault:
                self._problem(f"the graph is not written: {fault}")

    def _write(self, state: RunState) -> None:
        path = self._folder / f"{slug(state.session_id)}.mmd"
        try:
            graph = Definition.of(state.cascade_text, state.cascade_file).graph
            write_whole(LocalDisk(), path, mermaid(graph, RunPath(state)).encode())
        except (OSError, DefinitionError) as fault:
            reason = fault.strerror if isinstance(fault, OSError) else fault
            self._problem(f"the graph is not written to {path}: {reason}")


# The Pareto frontier of a run as a file for others to draw: ``pareto_<session>.json`` in the folder of graphs.


class Frontiers:
    """Watches a run's events, and writes the file anew at each evaluation that found a frontier.

    ``frontier`` and ``dominated`` are those of the last one, ``by_phase`` those of each phase: of a later visit under
    ``phase#2``, inside a walk of the whole cascade under ``s0/phase``, those of the walks themselves under ``cascade``.
    What cannot be written is told to ``problem`` and changes nothing else.
    """

    def __init__(self, folder: Path, problem: Callable[[str], None]) -> None:
        self._folder = folder
        self._problem = problem
        self._sessions: dict[str, str] = {}
        self._models: dict[tuple[str, tuple[str, str, int]], dict[str, str]] = defaultdict(dict)
        """Models of candidates by index, by run and the branch, phase and visit that they stand in."""
        self._by_phase: dict[str, dict[str, Any]] = defaultdict(dict)
        """The files that were found, by run and phase."""

    def __call__(self, event: Event) -> None:
        """Take one event, after it is in the journal."""
        data, key = event.data, (event.run_id, event.place.visit_key)
        if event.kind == "run_started":
            self._sessions[event.run_id] = data["session_id"]
        elif event.kind == "candidates_started":
            self._models[key] |= {str(plan["index"]): plan["model"] for plan in data["plans"] if plan.get("model")}
        elif event.kind == "candidate_finished" and data.get("model"):
            above = event.place.branch.rpartition("/")[0]
            self._models[event.run_id, (above, *key[1][1:])][str(data["index"])] = data["model"]
        elif event.kind == "evaluation_finished" and data.get("frontier"):
            self._write(event, _found(data, self._models[key]))

    def _write(self, event: Event, found: dict[str, Any]) -> None:
        by_phase = self._by_phase[event.run_id]
        branch, phase, visit = event.place.visit_key
        later = f"#{visit}" if visit > 1 else ""
        by_phase["/".join(filter(None, (branch, phase))) + later if visit else "cascade"] = found
        path = self._path(self._sessions.get(event.run_id, event.run_id))
        body = json.dumps({**found, "by_phase": by_phase}, indent=2) + "\n"
        try:
            write_whole(LocalDisk(), path, body.encode())
        except OSError as fault:
            self._problem(f"the frontier is not written to {path}: {fault.strerror}")

    def _path(self, session: str) -> Path:
        return self._folder / f"pareto_{slug(session)}.json"


def _found(data: Mapping[str, Any], models: Mapping[str, str]) -> dict[str, Any]:
    """The frontier, the winner marked, and what stands behind it with the candidate that beats it."""

    def named(index: int) -> dict[str, int]:
        step, attempt = divmod(index, REFORGE_STEP)
        return {"reforge_step": step, "sounding_index": attempt} if step else {"sounding_index": index}

    def one(index: int) -> dict[str, Any]:
        key = str(index)
        values = {"model": models.get(key), "quality": data["qualities"].get(key), "cost": data["costs"].get(key)}
        won = {"is_winner": True} if index == data["winner"] else {}
        return {**named(index), **{k: v for k, v in values.items() if v is not None}, **won}

    dominated = [
        {**one(int(index)), "dominated_by": named(by)["sounding_index"] if by < REFORGE_STEP else named(by)}
        for index, by in data.get("dominated", {}).items()
    ]
    return {"frontier": [one(index) for index in data["frontier"]], **({"dominated": dominated} if dominated else {})}


# The images that a question shows: those of its run by digest, and files of the workspace by path.


class NoImage(Exception):
    """An image that cannot be shown; the message says why."""


def image_of(project: Project, folder: Path, run_id: str, *, digest: str = "", path: str = "") -> ToolImage:
    """The bytes of an image, with what they say of themselves. ``folder`` is that of the cascade, whose paths may be
    relative to it. Raises NoImage."""
    try:
        if digest:
            return ToolImage(project.store.image(run_id, digest), "")
        return read_image(project.environment.workspace(folder).find(path), path)
    except (StoreError, PathRefused, ImageRefused, OSError) as fault:
        reason = fault.strerror if isinstance(fault, OSError) and fault.strerror else str(fault)
        raise NoImage(reason) from fault


_URL = re.compile(r"data:image/[\w.+-]+;base64,([A-Za-z0-9+/]+={0,2})")
ENDINGS = {"image/png": "png", "image/jpeg": "jpg", "image/gif": "gif", "image/webp": "webp"}


class Pictures:
    """Watches a run's events, and names each image that a tool returned, or that stands in a message as a data URL.

    A candidate's images are ``sounding_<i>_image_<n>``; a walk of the whole cascade and a refinement have a session,
    and so a folder, of their own. Numbers begin at 0 and go on over the visits of a phase. Where the file system has
    no hard links the image is copied. What cannot be written is told to ``problem`` and changes nothing else.
    """

    def __init__(self, store: Store, problem: Callable[[str], None]) -> None:
        self._store = store
        self._problem = problem
        self._branches: defaultdict[str, Branches] = defaultdict(Branches)
        """By run: the runs that a run starts are named here, too."""
        self._count: Counter[Path] = Counter()
        self._waiting: dict[str, list[tuple[bytes, str]]] = {}
        """Images in the text of messages that have not joined a history yet, by the message's hash."""
        self._parts: dict[str, list[tuple[str, str]]] = {}
        """Images that are parts of such messages: digest and media type."""
        self._named: set[tuple[str, str]] = set()
        """By run and digest."""

    def __call__(self, event: Event) -> None:
        """Take one event, after it is in the journal."""
        self._branches[event.run_id].apply(event)
        if event.kind == "tool_finished":
            for image in event.data.get("images", ()):
                self._name(event, image["digest"], ENDINGS.get(image["media_type"], "bin"))
        elif event.data.get("kind") == "message":
            body = event.data.get("body")
            if found := list(_written(body)):
                self._waiting[event.data["hash"]] = found
            if parts := list(_parts(body)):
                self._parts[event.data["hash"]] = parts
        for item in event.data.get("added", ()):
            for data, ending in self._waiting.pop(item["m"], ()):
                self._save(event, data, ending)
            for digest, media_type in self._parts.pop(item["m"], ()):
                # What a tool made, or another candidate whose answer is refined, has its name.
                if (event.run_id, digest) not in self._named:
                    self._name(event, digest, ENDINGS.get(media_type, "bin"))

    def _target(self, event: Event, ending: str) -> Path:
        """The next free name of the phase."""
        branch = self._branches[event.run_id].of(event.place)
        own = branch.sounding_index is not None and branch.parent_session_id is None
        prefix = f"sounding_{branch.sounding_index}_" if own else ""
        stem = self._store.root / "images" / slug(branch.session_id) / slug(event.place.phase) / f"{prefix}image_"
        target = stem.with_name(f"{stem.name}{self._count[stem]}.{ending}")
        self._count[stem] += 1
        return target

    def _save(self, event: Event, data: bytes, ending: str) -> None:
        """An image that stands in a message's text: no tool read it, so no blob holds it."""
        target = self._target(event, ending)
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
        except OSError as fault:
            self._problem(f"image {target.name} has no name in the store: {fault}")

    def _name(self, event: Event, digest: str, ending: str) -> None:
        self._named.add((event.run_id, digest))
        target = self._target(event, ending)
        try:
            blob = self._store.image_path(event.run_id, digest)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.unlink(missing_ok=True)
            try:
                os.link(blob, target)
            except OSError:
                shutil.copyfile(blob, target)
        except (OSError, StoreError) as fault:
            self._problem(f"image {target.name} has no name in the store: {fault}")


def _parts(body: object) -> Iterator[tuple[str, str]]:
    """The images that are parts of a message: digest and media type."""
    content = body.get("content") if isinstance(body, dict) else None
    for part in content if isinstance(content, list) else ():
        if isinstance(part, dict) and part.get("type") == "image" and isinstance(part.get("digest"), str):
            yield part["digest"], str(part.get("media_type", ""))


def _written(body: object) -> Iterator[tuple[bytes, str]]:
    """The images that stand in a message's text as data URLs, with their file endings."""
    content = body.get("content") if isinstance(body, dict) else None
    parts = content if isinstance(content, list) else [{"text": content}]
    for part in parts:
        text = part.get("text") if isinstance(part, dict) else None
        for found in _URL.finditer(text) if isinstance(text, str) and "data:image/" in text else ():
            try:
                data = base64.b64decode(found[1], validate=True)
            except binascii.Error:
                continue
            kind = sniff(data) if len(data) <= MAX_BYTES else None
            if kind is not None:
                yield data, ENDINGS[kind.media_type]


def path_of(store: Store, run_id: str, session_id: str, digest: str) -> Path:
    """Returns where an image of a run lies: under its name for people where it has one, else under its digest.

    Raises StoreError when it is nowhere.
    """
    blob = store.image_path(run_id, digest)
    data = store.image(run_id, digest)
    session = slug(session_id)
    for folder in sorted((store.root / "images").glob(f"{session}*")):
        for named in sorted(folder.glob("*/*")):
            if named.stat().st_size == len(data) and (named.samefile(blob) or named.read_bytes() == data):
                return named
    return blob
