"""A call whose request is no longer the recorded one: what is different, and the line of the file that made it so."""

from __future__ import annotations

from dataclasses import dataclass

from workbench.context.align import Change, changes
from workbench.context.assembly import Entry, Rule
from workbench.context.place import Place
from workbench.engine.definition import Definition
from workbench.engine.gate import Stop
from workbench.engine.recording import Recording
from workbench.language.problem import path_text


@dataclass(frozen=True, slots=True)
class ChangedSetting:
    """A part of the request beside its messages."""

    name: str
    """model, tools, or a parameter."""
    old: str
    new: str
    rule: Rule


@dataclass(frozen=True)
class ChangedCall:
    """Both requests of one place, and what lies between them."""

    place: Place
    old: tuple[Entry, ...]
    new: tuple[Entry, ...]
    messages: tuple[Change, ...]
    settings: tuple[ChangedSetting, ...]


def changed_call(recording: Recording, definition: Definition, stop: Stop) -> ChangedCall | None:
    """What changed, at a ``before_call`` stop; None where the recording has no call there."""
    call, assembly = recording.state.call_at(stop.place), stop.assembly
    if call is None or assembly is None:
        return None
    request = assembly.request
    settings: list[ChangedSetting] = []
    if call.model != request.model:
        rule = _rule(definition, stop.place.phase, "model")
        settings.append(ChangedSetting("model", call.model, request.model, rule))
    for name in sorted({*call.parameters, *request.parameters}):
        old, new = call.parameters.get(name), request.parameters.get(name)
        if old != new:
            rule = _rule(definition, stop.place.phase, "model")
            settings.append(ChangedSetting(name, str(old), str(new), rule))
    tools = recording.state.tool_schemas.get(call.tools_hash, [])
    if list(request.tools) != tools:
        rule = _rule(definition, stop.place.phase, "tackle")
        settings.append(ChangedSetting("tools", _names(tools), _names(request.tools), rule))
    found = tuple(changes(call.entries, assembly.entries))
    return ChangedCall(stop.place, call.entries, assembly.entries, found, tuple(settings))


def _rule(definition: Definition, phase: str, name: str) -> Rule:
    index = next((i for i, each in enumerate(definition.cascade.phases) if each.name == phase), 0)
    path = ("phases", index, name)
    return Rule(path_text(path), definition.line(path) or definition.line(path[:2]))


def _names(tools: object) -> str:
    found = [tool.get("function", tool).get("name", "?") for tool in tools] if isinstance(tools, list | tuple) else []
    return ", ".join(found) or "none"
