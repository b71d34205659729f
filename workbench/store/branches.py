"""The branches of a run as people and SQL see them: candidates and refinement steps, with session ids of their own."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

if TYPE_CHECKING:
    from workbench.context.place import Place
    from workbench.engine.journal.event import Event

_SOUNDING = re.compile(r"s(\d+)")
_REFORGE = re.compile(r"r(\d+)\.(\d+)")
_OF_A_BRANCH = re.compile(r"(?:(?:_v\d+)?_reforge\d+_\d+|_sounding_\d+)\Z")
"""The end of a session id that ``Branches`` gives."""
_MUTATION = ("mutation_type", "mutation_applied", "mutation_template")
STEP = 1000
"""A refined candidate's index is its step times this, plus its attempt."""


class Branch(Struct, frozen=True):
    """Names of one branch."""

    session_id: str = ""
    parent_session_id: str | None = None
    """Set if the branch has a session of its own."""
    index: int | None = None
    """The candidate's index in its phase; None on the main line."""
    sounding_index: int | None = None
    reforge_step: int | None = None
    mutation_type: str | None = None
    mutation_applied: str | None = None
    mutation_template: str | None = None
    is_winner: bool | None = None
    """Whether it won every contest that it entered; None while one is undecided."""


def sessions_above(session_id: str) -> Iterator[str]:
    """The session ids of which this may be a branch's, the longest first; none for a name that no branch has."""
    while (end := _OF_A_BRANCH.search(session_id)) is not None and end.start():
        session_id = session_id[: end.start()]
        yield session_id


Key = tuple[str, str, int]
"""Branch, phase and visit of a candidate, or of the line that its contest is on; of a walk of the whole cascade, and of
the line that walks compete on, the branch alone."""


class Branches:
    """Learns the branches of a run from its events.

    A branch name alone is ambiguous: each phase with candidates has an ``s0``, at each of its visits.
    """

    def __init__(self) -> None:
        self._main = Branch()
        self._known: dict[Key, Branch] = {}
        self._plans: dict[tuple[Key, int], Mapping[str, Any]] = {}
        """The announced plan of each candidate, by its contest and its index."""
        self._stood: defaultdict[Key, dict[int, str]] = defaultdict(dict)
        """Branches of candidates by index, by contest."""
        self._whole: set[str] = set()
        """Branches below which whole walks of the cascade compete."""

    def apply(self, event: Event) -> bool:
        """Take the next event; whether it told something new of a branch that had rows before."""
        match event.kind:
            case "run_started":
                self._main = Branch(str(event.data.get("session_id", "")))
            case "candidates_started":
                if event.data.get("kind") == "cascade":
                    self._whole.add(event.place.branch)
                for plan in event.data.get("plans", ()):
                    self._plans[self._contest(event.place), plan["index"]] = plan
        if not event.place.branch:
            return False
        key = self._key(event.place)
        before = self._known.get(key) or self._learn(event.place)
        if event.kind == "candidate_finished":
            self._known[key] = _mutated(before, event.data)
        after = self._known[key]
        return after is not before and after != before

    def of(self, place: Place) -> Branch:
        """The branch of a place, in the phase and visit of the place. The main line stands for an unknown branch."""
        return self._known.get(self._key(place), self._main) if place.branch else self._main

    def named(self, session_id: str) -> str | None:
        """The branch that has this session id, of several the outermost: candidates within a walk share that of the
        walk. None if no branch has it; empty for the main line."""
        if session_id == self._main.session_id:
            return ""
        found = [key[0] for key, branch in self._known.items() if branch.session_id == session_id]
        return min(found, key=len, default=None)

    def candidates(self, place: Place, step: int) -> dict[int, str]:
        """The branches that stood side by side in the contest at a place, by their index; step 0 is before any
        refinement."""
        return {index: name for index, name in self._stood[self._contest(place)].items() if index // STEP == step}

    def decide(self, place: Place, winner: int, step: int) -> None:
        """A contest was decided. A loser's nested candidates lose as well; those of the winner keep their
        own results.
        """
        for index, name in self.candidates(place, step).items():
            mine = self._key(place._replace(branch=name))
            # Candidates inside a candidate: those of the phases of a whole walk.
            lost = index != winner and not mine[2]
            inside = [key for key in self._known if key[0].startswith(f"{name}/")] if lost else []
            for key in (mine, *inside):
                self._known[key] = replace(self._known[key], is_winner=index == winner)

    def same(self, one: Place, other: Place) -> bool:
        """Returns whether two places are of one candidate, not of one inside the other."""
        return self._key(one) == self._key(other)

    def _key(self, place: Place) -> Key:
        """Identifies a branch."""
        walks = place.branch.rpartition("/")[0] in self._whole
        return (place.branch, "", 0) if walks or not place.visit else place.visit_key

    def _contest(self, place: Place) -> Key:
        """Identifies the contest at a place: that of its phase and visit, or of walks of the cascade."""
        return place.visit_key if place.visit else (place.branch, "", 0)

    def _learn(self, place: Place) -> Branch:
        name = place.branch
        above, _, last = name.rpartition("/")
        parent = self._main
        if above:
            at = place._replace(branch=above)
            parent = self._known.get(self._key(at)) or self._learn(at)
        branch = replace(
            parent, parent_session_id=None, index=None, sounding_index=None, reforge_step=None, is_winner=None
        )
        contest = (above, "", 0) if above in self._whole else (above, place.phase, place.visit)
        if reforge := _REFORGE.fullmatch(last):
            step, attempt = int(reforge[1]), int(reforge[2])
            later = f"_v{place.visit}" if place.visit > 1 and above not in self._whole else ""
            session = f"{parent.session_id}{later}_reforge{step}_{attempt}"
            branch = Branch(session, parent.session_id, step * STEP + attempt, attempt, step)
        elif sounding := _SOUNDING.fullmatch(last):
            index = int(sounding[1])
            branch = replace(branch, index=index, sounding_index=index)
            if above in self._whole:
                session = f"{parent.session_id}_sounding_{index}"
                branch = replace(branch, session_id=session, parent_session_id=parent.session_id)
        if (number := branch.index) is not None:
            branch = _mutated(branch, self._plans.get((contest, number), {}))
            self._stood[contest][number] = name
        self._known[self._key(place)] = branch
        return branch


def _mutated(branch: Branch, data: Mapping[str, Any]) -> Branch:
    told = {name: data[name] for name in _MUTATION if data.get(name) is not None}
    return replace(branch, **told) if told else branch
