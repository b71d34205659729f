"""Two runs are equal: what of their events is compared."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from workbench.context.place import Place
from workbench.engine.journal.event import Event
from workbench.engine.past.recording import unmarked

_MOVING = {
    "run_started": ("ports", "parent", "options.session_id", "session_id", "version"),
    "phase_finished": ("seconds",),
    "call_started": (),
    "call_finished": ("first_token_s", "duration_s", "recorded"),
    "call_failed": ("retry_in",),
    "tool_finished": ("duration_s",),
    "embedded": ("duration_s", "recorded"),
    "human_asked": (),
    "child_started": ("run_id", "session_id"),
    "child_finished": ("run_id", "session_id", "took"),
}


def comparable(events: Iterable[Event]) -> list[tuple[str, Place, Mapping[str, Any]]]:
    """Events without what may differ between two equal runs: ids, times, pauses, and the names of the ports.

    The main line's order is kept; parallel branches are put one after another, because only the order within a
    branch means anything; so are bodies, which belong to no branch.
    """
    by_branch: dict[str, list[tuple[str, Place, Mapping[str, Any]]]] = defaultdict(list)
    blobs: dict[str, tuple[str, Place, Mapping[str, Any]]] = {}
    for event in events:
        if event.kind == "paused":
            continue
        if event.kind == "blob":
            blobs[event.data["hash"]] = (event.kind, event.place, event.data)
            continue
        dropped = _MOVING.get(event.kind, ())
        data = {key: value for key, value in unmarked(event).items() if key not in dropped}
        if event.kind == "run_started":
            data["options"] = {k: v for k, v in data.get("options", {}).items() if k != "session_id"}
        by_branch[event.place.branch].append((event.kind, event.place, data))
    return [*(blobs[digest] for digest in sorted(blobs)), *(row for b in sorted(by_branch) for row in by_branch[b])]
