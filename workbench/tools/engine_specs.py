"""Specs of the tools that the engine runs itself, because they act on the run: for menus, checks and the docs."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from workbench.engine.engine_tools import ASK_HUMAN, ROUTE_TO, SET_STATE, engine_spec
from workbench.engine.ports import Parameter, ToolSpec

SPAWN_CASCADE = "spawn_cascade"

_SPAWN = ToolSpec(
    SPAWN_CASCADE,
    "Start another cascade beside this run; answers its session id and does not wait for it.",
    (Parameter("cascade_ref", "str"), Parameter("input_data", "dict", required=False, default={})),
    {
        "type": "object",
        "properties": {
            "cascade_ref": {"type": "string", "description": "Path of the cascade file in the workspace."},
            "input_data": {"type": "object", "description": "Input of the cascade.", "default": {}},
        },
        "required": ["cascade_ref"],
        "additionalProperties": False,
    },
)


def _all() -> dict[str, ToolSpec]:
    found = {name: engine_spec(name) for name in (SET_STATE, ROUTE_TO, ASK_HUMAN, SPAWN_CASCADE)}
    return {name: spec or _SPAWN for name, spec in found.items()}


ENGINE_SPECS: Mapping[str, ToolSpec] = MappingProxyType(_all())
"""By name: set_state, route_to, ask_human, spawn_cascade."""
