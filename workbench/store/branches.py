"""What the branches of a run are to people and SQL: candidates and refinement steps, with session ids of their own."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from workbench.engine.event import Event

_REFORGE = re.compile(r"r(?:eforge)?(\d+)[._-](\d+)")
_INDEX = re.compile(r"(\d+)$")


@dataclass(frozen=True)
class Branch:
    """Names of one branch (language.md 3.8)."""

    session_id: str = ""
    """Empty where the branch shares its run's."""
    sounding_index: int | None = None
    reforge_step: int | None = None
    mutation_type: str | None = None
    mutation_applied: str | None = None
    mutation_template: str | None = None


_NAMES = tuple(field.name for field in fields(Branch))


class Branches:
    """Learns the branches of a run from its events."""

    def __init__(self) -> None:
        self._known: dict[str, Branch] = {}
        self._plans: dict[tuple[str, int], Mapping[str, Any]] = {}
        """What was announced for a candidate, by parent branch and index."""

    def apply(self, event: Event) -> None:
        """Take the next event. What it says of its branch wins over what the branch's name tells."""
        name = event.place.branch
        if event.kind == "candidates_started":
            for plan in event.data.get("plans", ()):
                self._plans[name, plan["index"]] = plan
        if not name:
            return
        if name not in self._known:
            branch = _by_name(name)
            plan = self._plans.get((name.rpartition("/")[0], branch.sounding_index or 0), {})
            self._known[name] = _with(branch, plan)
        if event.kind == "candidate_finished":
            self._known[name] = _with(self._known[name], event.data)

    def of(self, name: str) -> Branch:
        """The main line has no names of its own."""
        return self._known.get(name, Branch())

    def candidates(self, parent: str, step: int | None) -> dict[int, str]:
        """Branches that stand side by side directly below one, of one refinement step, by their index."""
        return {
            branch.sounding_index: name
            for name, branch in self._known.items()
            if name.rpartition("/")[0] == parent
            and branch.sounding_index is not None
            and (branch.reforge_step or None) == (step or None)
        }


def _by_name(name: str) -> Branch:
    last = name.rpartition("/")[2]
    if reforge := _REFORGE.search(last):
        return Branch(sounding_index=int(reforge[2]), reforge_step=int(reforge[1]))
    index = _INDEX.search(last)
    return Branch(sounding_index=int(index[1]) if index else None)


def _with(branch: Branch, data: Mapping[str, Any]) -> Branch:
    said = {name: data[name] for name in _NAMES if data.get(name) is not None}
    if "index" in data and "sounding_index" not in said and isinstance(data["index"], int):
        said["sounding_index"] = data["index"]
    return replace(branch, **said)
