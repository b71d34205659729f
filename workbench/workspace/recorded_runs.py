"""Stored runs: as something to start from (recordings, children, images), and deleting one with those inside it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache

from msgspec import Struct

from workbench.engine.definition import Parent
from workbench.engine.journal.event import MALFORMED
from workbench.engine.journal.state import RunState
from workbench.engine.past.recording import Recording
from workbench.store.faults import StoreBusy, StoreError, UnknownRun
from workbench.store.store import Store


class StoredRun(Struct, frozen=True):
    """A stored run to start from."""

    run_id: str
    recording: Recording

    @property
    def session_id(self) -> str:
        return self.recording.state.session_id

    @property
    def definition_sha256(self) -> str:
        return self.recording.state.cascade_sha256

    def parent_of(self, kind: str, at: str) -> Parent:
        """The origin of a run that starts from this one."""
        name = self.recording.state.prompt_id
        return Parent(self.run_id, self.session_id, kind, cascade_sha256=self.definition_sha256, at=at, prompt_id=name)


def past_of(store: Store, run_id: str) -> StoredRun:
    """Read a stored run. Raises UnknownRun, and StoreError that names the place where its journal is damaged."""
    tail = store.tail(run_id)
    events = list(tail.poll())
    if not events or events[0].kind != "run_started":
        raise StoreError(f"run {run_id} has no beginning: there is nothing to start from")
    name = events[0].data.get("session_id") or run_id
    try:
        recording = Recording(events, StoredImages(store, run_id))
    except MALFORMED as fault:
        raise StoreError(f"{name} cannot be started from: {RunState.of(events).nonsense or fault}") from fault
    if not tail.health.whole:
        raise StoreError(f"{name} cannot be started from: {tail.health.notices[0]}")
    return StoredRun(run_id, recording)


def children_in(store: Store) -> Callable[[str], Recording | None]:
    """The recordings of child runs in a store."""

    def child(run_id: str) -> Recording | None:
        try:
            return Recording(store.events(run_id), StoredImages(store, run_id))
        except UnknownRun:
            return None

    return child


def newest_children_in(store: Store) -> Callable[[str], Recording | None]:
    """The same for a run that is resumed: each resume runs a child that was cut off anew, in the same session. Of these
    runs the one counts that got furthest."""
    recorded = children_in(store)

    @cache
    def furthest() -> Mapping[str, str]:
        """The ids of child runs by session."""
        found: dict[str, tuple[int, str]] = {}
        for run in store.each_run():
            if run.parent_run and run.session_id:
                found[run.session_id] = max(found.get(run.session_id, (0, "")), (run.answers, run.run_id))
        return {session: run_id for session, (_, run_id) in found.items()}

    def child(run_id: str) -> Recording | None:
        try:
            session = store.summary(run_id).session_id
        except UnknownRun:
            return None
        return recorded(furthest().get(session, run_id))

    return child


class ImageGone(StoreError, KeyError):
    """Bytes of a run that its store has lost: a replay and a page do without them."""

    __str__ = Exception.__str__


class StoredImages(Mapping[str, bytes]):
    """The images of a stored run, read when they are asked for."""

    def __init__(self, store: Store, run_id: str) -> None:
        self._store = store
        self._run_id = run_id

    def __getitem__(self, digest: str) -> bytes:
        try:
            return self._store.image(self._run_id, digest)
        except StoreError as fault:
            raise ImageGone(str(fault)) from fault

    def __iter__(self) -> Iterator[str]:
        return iter(self._store.state(self._run_id).images)

    def __len__(self) -> int:
        return len(self._store.state(self._run_id).images)


def remove_run(store: Store, run_id: str) -> int:
    """Delete a run and its child runs, innermost first. Returns how many. Forks and re-runs stay: they are complete by
    themselves. Raises UnknownRun, StoreBusy if one of them is being written, StoreError.
    """
    below: dict[str, list[str]] = {}
    for run in store.runs():
        if run.depth:
            below.setdefault(run.parent_run, []).append(run.run_id)
    order, waiting = [run_id], [run_id]
    while waiting:
        found = [child for child in below.get(waiting.pop(), ()) if child not in order]
        order += found
        waiting += found
    for each in order:
        if (holder := store.writer(each)) is not None:
            raise StoreBusy(f"run {each} is being written by {holder}", holder.pid)
    for each in reversed(order):
        store.remove(each)
    return len(order)
