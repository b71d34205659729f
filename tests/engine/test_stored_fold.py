"""What the fold of a journal keeps of runs, as a whole: a field that no test asks for by name shows here."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct
from msgspec.structs import fields

from tests.engine.support import Reply, call, play
from tests.store.examples import candidate_run, rich_run
from tests.support.stored import check_stored
from workbench.context.message import Message
from workbench.engine.contracts import Answer, ModelFault, NativeCall
from workbench.engine.journal.event import Event
from workbench.engine.journal.parts import CallState, VisitState
from workbench.engine.journal.state import RunState
from workbench.engine.journal.usage import Usage

STORED = Path(__file__).parent / "stored"
LONG = 80
LEFT_OUT = {
    "calls",
    "entries",
    "pauses",
    "elapsed",
    "contests",
    "annotations",
    "options",
    "cascade_text",
    "tool_schemas",
}
"""Fields whose parts stand below, or have tests of their own."""


def full_run() -> Sequence[Event]:
    """A run of answers in which nothing is left at its default, after calls that failed."""
    usage = Usage(100, 10, 30, 20, 4, 5)
    told: dict[str, Any] = {
        "extra": {"reasoning_content": "so"},
        "finish_reason": "length",
        "usage": usage,
        "cost": 0.5,
        "cost_grade": "billed",
        "model": "gpt-4o-mini-2024",
        "provider": "openai",
        "provider_id": "resp_1",
        "first_token_s": 0.25,
        "duration_s": 1.5,
        "wire": {"model": "gpt-4o-mini", "messages": []},
        "wire_style": "compact",
        "partial": True,
        "remarks": ("an odd remark",),
    }
    wanted = (NativeCall("id_1", "look", '{"x": "a"}'), NativeCall("id_2", "look", "{"))
    replies: list[Reply] = [
        ModelFault("rate_limit", "slow down", status=429, retry_after=2.0, body="{}"),
        ModelFault("server", "broken"),
        Answer("Looking.", wanted, **told),
        Answer("Done.", **{**told, "finish_reason": "stop", "partial": False}),
        call("set_state", key="n", value=[1, "ü"]),
        "yes",
    ]
    cascade = {
        "cascade_id": "c",
        "inputs_schema": {"q": "the question"},
        "parameters": {"temperature": 0.5},
        "phases": [
            {
                "name": "look",
                "instructions": "Look for {{ input.q }} {{ input.absent }}.",
                "tackle": ["look"],
                "use_native_tools": True,
                "rules": {"max_turns": 3},
                "model": "gpt-4o",
            },
            {
                "name": "tell",
                "instructions": "Tell {{ outputs.look }}.",
                "tackle": ["set_state"],
                "rules": {"max_turns": 2},
            },
        ],
    }
    return play(cascade, replies, input={"q": "it"}, tools={"look": lambda x="": f"saw {x}"}).events


def plain(value: Any) -> Any:
    """A value as JSON, without what is empty; long texts by their beginning."""
    if isinstance(value, VisitState | CallState):
        return kept(value)
    if isinstance(value, Message):
        return plain(value.to_json())
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return str(value)
    if isinstance(value, Struct):
        held = {one.name: plain(getattr(value, one.name)) for one in fields(value) if not one.name.startswith("_")}
        return {name: one for name, one in held.items() if one not in ("", None, [], {}, False, 0)}
    if isinstance(value, Mapping):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, set | frozenset):
        return sorted(map(str, value))
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if isinstance(value, str) and len(value) > LONG:
        return f"{value[:LONG]}… {len(value)}"
    return round(value, 9) if isinstance(value, float) else value if isinstance(value, str | int | None) else str(value)


def kept(holder: Struct | RunState) -> dict[str, Any]:
    names = [one.name for one in fields(holder)] if isinstance(holder, Struct) else list(vars(holder))
    held = {name: plain(getattr(holder, name)) for name in names if not name.startswith("_") and name not in LEFT_OUT}
    if isinstance(holder, CallState):
        held["answer"] = plain(holder.answer)
    return {name: one for name, one in held.items() if one not in ("", None, [], {}, False, 0)}


RUNS: dict[str, Callable[[], Sequence[Event]]] = {
    "full": full_run,
    "rich": rich_run,
    "winner": candidate_run,
}


@pytest.mark.parametrize("name", RUNS)
def test_the_fold_of_a_run_is_the_stored_one(name: str) -> None:
    state = RunState.of(RUNS[name]())
    whole = kept(state)
    visits, bodies = whole.pop("visits"), whole.pop("bodies", None)
    lines = [json.dumps({key: value}) for key, value in whole.items()]
    for visit in visits:
        lines.append(f"visit {json.dumps(visit)}")
    lines += [f"call {json.dumps(kept(one))}" for one in state.calls]
    lines += [f"bodies {len(bodies or ())}", f"figures {json.dumps(state.figures().to_json())}"]
    check_stored(STORED / f"fold-{name}.txt", "\n".join(lines) + "\n")
