"""The execution tree of a run, in the shape that other tools read: phases in run order, candidates, winners."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from workbench.engine.journal.candidate_rounds import REFORGE_STEP, CandidateRounds, Entrant, Round, candidate_name
from workbench.engine.journal.parts import VisitState
from workbench.engine.journal.state import RunState


def execution_tree(state: RunState) -> dict[str, Any]:
    """``session_id``, ``totals`` with the runs inside it (US dollars, seconds), ``phases``,
    ``annotations`` where there are any (of the run and of its calls, by place), and
    where whole walks competed their ``soundings`` with the phases of each.

    A phase has a name, a visit, a status and a type: ``deterministic``, ``simple``, ``soundings`` or ``reforge``. With
    candidates: ``soundings`` of ``{index, is_winner, …}`` and ``winner_index`` (null where all were joined, or none
    won), and ``undecided`` where the winner was not chosen; with reforge: ``reforge_steps`` of
    ``{step, soundings, winner_index}``, whose winner is null where the incumbent stayed. Steps count from 1, candidates
    from 0.
    """
    tree: dict[str, Any] = {
        "session_id": state.session_id,
        "cascade_id": state.cascade_id,
        "status": state.status,
        "totals": state.figures().brief()
        | {
            "seconds": state.seconds,
            "paused_s": state.paused,
            "overhead_s": state.overhead,
            "inside_s": state.joining,
        },
        "phases": _phases(state, ""),
    }
    if state.annotations:
        tree["annotations"] = state.annotations.to_json()
    whole = next((contest for contest in state.contests if contest.is_whole and not contest.place.branch), None)
    return tree if whole is None else {**tree, **_contest(state, whole)}


def _phases(state: RunState, branch: str) -> list[dict[str, Any]]:
    """The visits of one branch that are phases, not candidates of one; on the main line the tasks of waves, too."""
    own = [visit for visit in state.visits if visit.branch == branch or (visit.wave and not branch)]
    return [_phase(state, visit) for visit in own if visit.kind != "candidate"]


def _phase(state: RunState, visit: VisitState) -> dict[str, Any]:
    kind = "deterministic" if visit.kind == "deterministic" else "simple"
    body: dict[str, Any] = {"name": visit.phase, "type": kind, "visit": visit.visit, "status": visit.status}
    if visit.children:
        body["children"] = [
            {key: child.get(key) for key in ("kind", "session_id", "status") if key in child}
            for child in visit.children
        ]
    contest = _own(state, visit)
    return body if contest is None else {**body, **_contest(state, contest)}


def _own(state: RunState, visit: VisitState) -> CandidateRounds | None:
    """The contest of this very visit."""
    key = (visit.branch, visit.phase, visit.visit)
    return next((contest for contest in state.contests if contest.place.visit_key == key), None)


def _contest(state: RunState, contest: CandidateRounds) -> dict[str, Any]:
    steps = [each for each in contest.rounds if each.step]
    body: dict[str, Any] = {"type": "reforge" if steps else "soundings"}
    first = next((each for each in contest.rounds if not each.step), None)
    if first is not None:
        body |= _round(state, contest, first)
    if steps:
        body["reforge_steps"] = [{"step": each.step, **_round(state, contest, each)} for each in steps]
    return body


def _round(state: RunState, contest: CandidateRounds, each: Round) -> dict[str, Any]:
    entrants = [_entrant(state, contest, each, entrant) for entrant in each.entrants]
    winner = next((body["index"] for body in entrants if body["is_winner"]), None)
    undecided = {} if winner is None or each.decided else {"undecided": True}
    return {"soundings": entrants, "winner_index": winner, **undecided}


def _entrant(state: RunState, contest: CandidateRounds, each: Round, entrant: Entrant) -> dict[str, Any]:
    body: dict[str, Any] = {
        "index": entrant.index - each.step * REFORGE_STEP,
        "is_winner": entrant.index == each.winner,
        "status": entrant.status,
        "model": entrant.model or None,
        "mutation_type": entrant.mutation_type or None,
        "cost": entrant.cost,
        "tokens": entrant.tokens,
    }
    if contest.is_whole:
        body["phases"] = _phases(state, entrant.branch)
    return body


def winners(state: RunState, phases: Sequence[str]) -> dict[str, list[tuple[str, bool]]]:
    """The candidates of the latest visit of each phase, as words, with whether they won. Whole walks that compete are
    no candidates of a phase."""
    found: dict[str, list[tuple[str, bool]]] = {}
    for contest in state.contests:
        if contest.place.phase not in phases or contest.place.branch or contest.is_whole:
            continue
        found[contest.place.phase] = [
            (_name(each, entrant), entrant.index == contest.winner)
            for each in contest.rounds
            for entrant in each.entrants
        ]
    return found


def _name(each: Round, entrant: Entrant) -> str:
    name = f"candidate {candidate_name(entrant.index)}"
    return f"reforge {each.step}, {name}" if each.step else name
