"""A run as a checkpoint folder for engines of phase graphs: its position, the finished phases, their outputs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any

from workbench.context.assembly import Kind
from workbench.engine.journal.parts import VisitState
from workbench.engine.journal.state import RunState
from workbench.language.check import slug

_KEPT = ("last_stage", "last_response")
"""Keys of the context that a pipeline sets itself."""
_OF_READING = ("import", "attach")
"""Codes of warnings about the source of a run."""
EXCERPT = 200
"""Characters of the last answer in the context."""
_OUTCOMES = {"success": "success", "failed": "fail", "blocked": "fail", "stopped": "retry", "running": "retry"}


def checkpoint_files(state: RunState, ending: str) -> Iterator[tuple[PurePosixPath, str]]:
    """Relative paths and texts: ``manifest.json``, ``checkpoint.json``, the cascade as it ran (with that ending), and
    for each phase a folder with ``prompt.md``, ``response.md`` and ``status.json``, of its last visit."""
    last: dict[str, VisitState] = {}
    for visit in state.visits:
        if not visit.branch:
            last.pop(visit.phase, None)
            last[visit.phase] = visit
    folders = {phase: slug(phase) for phase in last}
    cascade = f"cascade{ending}"
    manifest = {
        "format": "workbench checkpoint",
        "version": 1,
        "name": state.cascade_id,
        "session_id": state.session_id,
        "run_id": state.run_id,
        "status": state.status,
        "reason": state.reason,
        "start_time": state.started,
        "end_time": state.finished or None,
        "cascade": cascade,
        "input": dict(state.input),
        "output": state.output,
        "annotations": state.annotations.to_json(),
        "edits": state.edited,
        "nodes": folders,
    }
    yield PurePosixPath("manifest.json"), _json(manifest)
    yield PurePosixPath("checkpoint.json"), _json(_checkpoint(state, last))
    yield PurePosixPath(cascade), state.cascade_text
    for phase, visit in last.items():
        folder = PurePosixPath(folders[phase])
        yield folder / "prompt.md", _prompt(visit)
        yield folder / "response.md", visit.output
        yield folder / "status.json", _json(_status(visit))


def _checkpoint(state: RunState, last: dict[str, VisitState]) -> dict[str, Any]:
    """The position of a run: the last phase of one that ended, the open phase of one that was stopped."""
    current = next(reversed(last), "")
    done = [phase for phase, visit in last.items() if visit.status == "success"]
    tries = {phase: max(visit.attempts, len(visit.tool_tries)) for phase, visit in last.items()}
    context: dict[str, Any] = dict(state.state)
    if current:
        visit = last[current]
        context |= {
            "outcome": _outcome(visit),
            "last_stage": current,
            "last_response": visit.output[:EXCERPT],
        }
        context |= {key: state.state[key] for key in _KEPT if key in state.state}
    return {
        "timestamp": state.finished or (state.visits[-1].finished if state.visits else "") or state.started,
        "current_node": current,
        "completed_nodes": done,
        "node_retries": {phase: count - 1 for phase, count in tries.items() if count > 1},
        "context": context,
        "logs": [str(e.data.get("message", "")) for e in state.warnings if e.data.get("code") not in _OF_READING],
    }


def _prompt(visit: VisitState) -> str:
    """The task as the model got it at last; of a phase without a model what its tool was given."""
    tasks = [item.message.text for item in visit.items if item.kind is Kind.TASK]
    if tasks:
        return tasks[-1]
    return "\n".join(f"{tool.tool} {tool.arguments}" for tool in visit.tool_tries[-1:])


def _status(visit: VisitState) -> dict[str, Any]:
    outcome, said = _outcome(visit), visit.outcome
    return {
        "outcome": outcome,
        "preferred_next_label": said.get("preferred_label", "") if said else visit.route,
        "suggested_next_ids": [visit.route] if visit.route else [],
        "context_updates": dict(visit.state_set),
        "notes": str(said.get("notes", "") if said else visit.output)[:EXCERPT],
        "failure_reason": visit.reason if visit.status != "success" else "",
        "status": visit.status,
        "kind": visit.kind,
        "model": visit.model,
        "started": visit.started,
        "finished": visit.finished or None,
    }


def _outcome(visit: VisitState) -> str:
    """Returns its outcome, in the word that conditions see."""
    return str(visit.outcome.get("outcome") or _OUTCOMES.get(visit.status, "fail"))


def _json(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False, default=str) + "\n"
