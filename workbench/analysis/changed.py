"""Two requests of one place, the recorded one and today's: what differs, and the line of the file that made it so."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from msgspec import Struct

from workbench.context.align import Change, ChangeKind, changes
from workbench.context.assembly import Action, Assembly, Entry, Grade, Kind, Rule
from workbench.context.place import Place
from workbench.engine.definition import Definition, DefinitionError
from workbench.engine.gate import Stop
from workbench.engine.journal.parts import CallState
from workbench.engine.journal.state import RunState
from workbench.engine.past.recording import Recording
from workbench.language.problem import Path, path_of, path_text

WINDOW = 60
"""Characters of a text that are shown around its first difference."""


class AssembledRequest(Struct, frozen=True):
    """A request as it was assembled."""

    entries: Sequence[Entry]
    model: str
    parameters: Mapping[str, Any]
    tools: Sequence[Mapping[str, Any]]
    tokens: int
    grade: Grade
    digest: str

    @classmethod
    def of_call(cls, call: CallState, run: RunState, like: CallState | None = None) -> AssembledRequest:
        """That of a call of a run; counted on the scale of ``like``, if that is given."""
        tools, size = run.tool_schemas.get(call.tools_hash, []), (call.tokens_in, call.grade_in)
        size = size if like is None else _counted_like(like, call.tokens_sent, call.grade)
        return cls(call.entries, call.model, call.parameters, tools, *size, call.digest)

    @classmethod
    def of_assembly(cls, assembly: Assembly, call: CallState) -> AssembledRequest:
        """One that has not been sent yet, in the place of a call: counted on the scale of that one."""
        request = assembly.request
        return cls(
            assembly.entries,
            request.model,
            request.parameters,
            request.tools,
            *_counted_like(call, assembly.tokens_sent, assembly.grade),
            request.digest,
        )


def _counted_like(call: CallState, tokens: int, grade: Grade) -> tuple[int, Grade]:
    """Our own count of a request, as the input of a call is counted: by its provider, or as it was predicted."""
    if call.tokens_in == call.tokens_sent:
        return tokens, grade
    scale = call.tokens_in / call.tokens_sent if call.tokens_sent else 1.0
    return round(tokens * scale), Grade.of_sum([grade, Grade.CALIBRATED])


NOT_SET = "not set"
"""A value that the text does not have."""


def _change_words(was: str, now: str, plain: str) -> str:
    """``plain`` for a value whose two sides can be told, else what was done to it: it was added, removed or
    changed."""
    if was and now:
        return plain
    return "added" if was == NOT_SET else "removed" if now == NOT_SET else "changed"


class ChangedPart(Struct, frozen=True):
    """A message or a setting of a request that is not what it was."""

    kind: str
    """A ``ChangeKind``, or model, parameter, tools."""
    words: str
    """``message 5 (turn 1's result) was sent in full, is now masked``."""
    was: str
    """In short: ``in full, 1,812 tokens``; of a text that was reworded, what stood around the first difference."""
    now: str
    rule: Rule
    """The deciding rule; line 0 if nothing in the file decided."""
    recorded_rule: bool = False
    """The rule stands in the recorded text alone: it is no longer in the file."""
    rule_was: str = ""
    """The value of the rule in the recorded text and in the file; both empty if they are equal."""
    rule_now: str = ""
    old: int = -1
    """Index of the entry in the recorded request; -1 if it is missing there, and for settings."""
    new: int = -1

    @property
    def rule_words(self) -> str:
        """``was 3, is 1``, ``removed``; empty if the rule is unchanged."""
        plain = f"was {self.rule_was}, is {self.rule_now}"
        return _change_words(self.rule_was, self.rule_now, plain) if self.rule_was or self.rule_now else ""

    def where(self, file: str) -> str:
        """``flow.yaml:22``; empty without a line."""
        return f"{file}:{self.rule.line}{' as recorded' if self.recorded_rule else ''}" if self.rule.line else ""

    def to_json(self, file: str) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "words": self.words,
            "was": self.was,
            "is": self.now,
            "rule": self.rule.path if self.rule.line else "",
            "file": file,
            "line": self.rule.line or None,
            "rule_was": self.rule_was,
            "rule_is": self.rule_now,
        }


class ChangedCall(Struct, frozen=True):
    """Both requests of one place, and what lies between them."""

    place: Place
    old: AssembledRequest
    new: AssembledRequest
    parts: tuple[ChangedPart, ...]

    @property
    def summary(self) -> str:
        """``1 message masked, 1 reworded, the model``; empty if only the digests differ."""
        messages = Counter(self._deed(part) for part in self.parts if part.kind not in _SETTINGS)
        said = [f"{count} {word}" for word, count in messages.items()]
        if messages:
            count, _, word = said[0].partition(" ")
            said[0] = f"{count} message{'' if count == '1' else 's'} {word}"
        return ", ".join([*said, *dict.fromkeys(_SETTINGS[p.kind] for p in self.parts if p.kind in _SETTINGS)])

    def _deed(self, part: ChangedPart) -> str:
        """Names the change of a message: ``masked``, ``reworded``."""
        if part.kind == ChangeKind.MASKED:
            return _STATES.get(self.new.entries[part.new].action, _DONE[part.kind])
        return _DONE[part.kind]


_SETTINGS = {"model": "another model", "parameter": "other parameters", "tools": "other tools"}
_DONE: Mapping[str, str] = {
    ChangeKind.ADDED: "added",
    ChangeKind.GONE: "gone",
    ChangeKind.REWORDED: "reworded",
    ChangeKind.MASKED: "sent in less",
    ChangeKind.RESTORED: "sent in full again",
    ChangeKind.DROPPED: "dropped",
    ChangeKind.SENT: "no longer dropped",
    ChangeKind.RESHAPED: "shortened otherwise",
    ChangeKind.MOVED: "reordered",
}


def changed_call(recording: Recording, definition: Definition, stop: Stop) -> ChangedCall | None:
    """The change at a ``before_call`` stop; None if the recording has no call there."""
    call, assembly = recording.state.call_at(stop.place), stop.assembly
    if call is None or assembly is None:
        return None
    old, new = AssembledRequest.of_call(call, recording.state), AssembledRequest.of_assembly(assembly, call)
    return compared(stop.place, old, new, definition, recorded_definition(recording.state))


def recorded_definition(run: RunState) -> Definition | None:
    """The cascade that a run was pinned to; None if its journal holds no readable one."""
    try:
        return Definition.of(run.cascade_text, run.cascade_file) if run.cascade_text else None
    except DefinitionError:
        return None


def compared(
    place: Place,
    old: AssembledRequest,
    new: AssembledRequest,
    today: Definition,
    recorded: Definition | None,
    sole: SoleChange | None = None,
) -> ChangedCall:
    """The differences of two requests. ``recorded`` is the definition of the old one, for the values of its rules;
    ``sole`` is named instead of an unchanged rule, if it is the only change of the file.
    """
    return ChangedCall(place, old, new, tuple(_Comparison(place, old, new, today, recorded, sole).parts()))


class _Comparison:
    def __init__(
        self,
        place: Place,
        old: AssembledRequest,
        new: AssembledRequest,
        today: Definition,
        recorded: Definition | None,
        sole: SoleChange | None,
    ) -> None:
        self.place = place
        self.old, self.new = old, new
        self.today, self.recorded = today, recorded
        self.sole = sole

    @cached_property
    def _moved(self) -> dict[int, int]:
        """The index of each phase of today's file in the recorded one."""
        if self.recorded is None:
            return {}
        before = {phase.name: index for index, phase in enumerate(self.recorded.cascade.phases)}
        names = enumerate(self.today.cascade.phases)
        return {index: before[phase.name] for index, phase in names if phase.name in before}

    def parts(self) -> Iterator[ChangedPart]:
        for change in changes(self.old.entries, self.new.entries):
            yield self._message(change)
        yield from self._settings()

    # -- messages ----------------------------------------------------------------------------------------------------

    def _message(self, change: Change) -> ChangedPart:
        old = self.old.entries[change.old] if change.old >= 0 else None
        new = self.new.entries[change.new] if change.new >= 0 else None
        rule, is_recorded = change.rule, change.new < 0
        if not rule.line and old is not None and old.rule.line:
            rule, is_recorded = old.rule, True
        if not rule.line:
            entry = new or old
            assert entry is not None
            rule, is_recorded = self.rule(*_FIELDS.get(entry.item.kind, ())), False
        was, now = _sides(change, old, new)
        return self._part(str(change.kind), change.words, was, now, rule, is_recorded, change.old, change.new)

    def _part(
        self,
        kind: str,
        words: str,
        was: str,
        now: str,
        rule: Rule,
        is_recorded: bool = False,
        old: int = -1,
        new: int = -1,
    ) -> ChangedPart:
        told = kind in _SETTINGS or kind == ChangeKind.REWORDED  # Their values are ``was`` and ``now``.
        if self.sole is not None and not self.sole.holds(rule) and not self._described_otherwise:
            rule, is_recorded, told = self.sole.rule, self.sole.recorded, False
        before, after = ("", "") if told or not rule.line else self._values(rule, is_recorded)
        if before == after:
            before = after = ""
        if kind == ChangeKind.REWORDED and not is_recorded:
            rule = self._pointed(rule)
        return ChangedPart(kind, words, was, now, rule, is_recorded, before, after, old, new)

    def _pointed(self, rule: Rule) -> Rule:
        """The same rule, at the first line of its text that changed, if the text has several lines."""
        path = path_of(rule.path)
        if not rule.line or self.recorded is None or not path:
            return rule
        there = self._moved.get(path[1]) if len(path) > 1 and path[0] == "phases" and isinstance(path[1], int) else None
        was = _text(self.recorded, ("phases", there, *path[2:]) if there is not None else path)
        now = _text(self.today, path)
        if was is None or now is None or was == now:
            return rule
        before, after = was.split("\n"), now.split("\n")
        pairs = zip(before, after, strict=False)
        at = next((n for n, (a, b) in enumerate(pairs) if a != b), min(len(before), len(after)))
        at = min(at, len(after) - 1 - (not after[-1] and len(after) > 1))
        return Rule(rule.path, self.today.source.inner_span(path, at + 1, 1).line)

    def _values(self, rule: Rule, is_recorded: bool) -> tuple[str, str]:
        """The value of a rule in the recorded text and in today's; empty if it is not a single value."""
        path = path_of(rule.path)
        if self.recorded is None or not path:
            return "", ""
        before, after = path, path
        if len(path) > 1 and path[0] == "phases" and isinstance(path[1], int):
            there = self._moved if not is_recorded else {old: new for new, old in self._moved.items()}
            other = there.get(path[1])
            if other is None:
                return "", ""
            moved = ("phases", other, *path[2:])
            before, after = (path, moved) if is_recorded else (moved, path)
        return _value(self.recorded, before), _value(self.today, after)

    # -- beside the messages -----------------------------------------------------------------------------------------

    @cached_property
    def _described_otherwise(self) -> bool:
        """Whether a tool's own file may have changed the request."""
        before, after = _by_name(self.old.tools), _by_name(self.new.tools)
        return any(before[name] != after[name] for name in before if name in after)

    def _settings(self) -> Iterator[ChangedPart]:
        old, new = self.old, self.new
        if old.model != new.model:
            words = f"the model was {old.model}, is now {new.model}"
            yield self._part("model", words, old.model, new.model, self.rule("model"))
        for key in sorted({*old.parameters, *new.parameters}):
            was, now = (_shown(asked.parameters.get(key)) for asked in (old, new))
            if was != now:
                yield self._part("parameter", f"{key} was {was}, is now {now}", was, now, self._parameter_rule(key))
        if list(old.tools) != list(new.tools):
            before, after = _by_name(old.tools), _by_name(new.tools)
            was, now = (", ".join(names) or "none" for names in (before, after))
            yield self._part("tools", _tools_words(before, after), was, now, self.rule("tackle"))

    def _parameter_rule(self, name: str) -> Rule:
        """The place of a request's parameter: in the phase, else in the cascade, else with the model."""
        known = [(name,), ("parameters", name), *((("enforce",),) if name == "response_format" else ())]
        for field in known:
            rule = rule_of(self.today, self.place.phase, *field)
            if rule.path.endswith(path_text(field)):
                return rule
        for field in known:
            if line := self.today.line(field):
                return Rule(path_text(field), line)
        return self.rule("model")

    def rule(self, *field: str) -> Rule:
        """The rule of a field of the phase: its line, else that of the phase."""
        return rule_of(self.today, self.place.phase, *field)


def rule_of(definition: Definition, phase: str, *field: str) -> Rule:
    """The rule of a phase's field: its line, else that of the phase; line 0 if the phase is not in the file."""
    for index, each in enumerate(definition.cascade.phases):
        if each.name == phase:
            paths: tuple[Path, ...] = (("phases", index, *field), ("phases", index))
            for path in paths:
                if line := definition.line(path):
                    return Rule(path_text(path), line)
    return Rule()


_FIELDS = {Kind.SYSTEM: ("tackle",), Kind.RETRY: ("rules",), Kind.PROMPT: ("rules",), Kind.CLOSING: ("rules",)}
"""Origins of messages whose rule is not written anywhere."""


def _sides(change: Change, old: Entry | None, new: Entry | None) -> tuple[str, str]:
    """In short, how a message stood before and stands now."""
    match change.kind:
        case ChangeKind.REWORDED if old is not None and new is not None:
            return around(old.item.message.text, new.item.message.text)
        case ChangeKind.MOVED:
            return f"message {change.old + 1}", f"message {change.new + 1}"
    return _state(old), _state(new)


_STATES = {Action.MASKED: "masked", Action.TRUNCATED: "truncated", Action.SUMMARIZED: "summarized"}


def _state(entry: Entry | None) -> str:
    if entry is None:
        return "not there"
    if entry.sent is None:
        return "dropped"
    is_full = entry.sent == entry.item.message
    state = "in full" if is_full else _STATES.get(entry.action, "in less")
    sign = "" if entry.grade is Grade.EXACT else "~"
    return f"{state}, {sign}{entry.tokens_sent:,} tokens"


def around(old: str, new: str, width: int = WINDOW) -> tuple[str, str]:
    """Of two texts, what stands around the first character that differs, in quotes."""
    at = next((i for i, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
    start = max(0, at - width // 3)
    return _window(old, start, width), _window(new, start, width)


def _window(text: str, start: int, width: int) -> str:
    piece = text[start : start + width].replace("\n", "⏎")
    return f'"{"…" if start else ""}{piece}{"…" if start + width < len(text) else ""}"'


def _value(definition: Definition, path: Path) -> str:
    """A value of the file in words; empty for objects, lists and long texts, whose change is shown elsewhere."""
    value = definition.source.data
    for part in path:
        try:
            value = value[part]
        except (KeyError, IndexError, TypeError):
            return NOT_SET
    is_plain = isinstance(value, str | int | float | bool) and len(str(value)) <= WINDOW
    return ("true" if value else "false") if isinstance(value, bool) else str(value) if is_plain else ""


def _text(definition: Definition, path: Path) -> str | None:
    """A text of the file; None for other values."""
    value = definition.source.data
    for part in path:
        try:
            value = value[part]
        except (KeyError, IndexError, TypeError):
            return None
    return value if isinstance(value, str) else None


def _by_name(schemas: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {str(schema.get("function", schema).get("name", "")): schema for schema in schemas}


def _tools_words(old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    parts = [
        *(f"{name} is gone" for name in old if name not in new),
        *(f"{name} is new" for name in new if name not in old),
        *(f"{name} is described otherwise" for name in new if name in old and new[name] != old[name]),
    ]
    return f"the tools offered are not the recorded ones: {', '.join(parts) or 'their order changed'}"


def _shown(value: object) -> str:
    if value is None:
        return "not set"
    text = repr(value)
    return text if len(text) <= 2 * WINDOW else f"{text[: 2 * WINDOW]}…"


class SoleChange(Struct, frozen=True):
    """The place of the value."""

    path: Path
    rule: Rule
    recorded: bool = False
    """Its line is of the recorded text: the value is gone from today's."""

    def holds(self, rule: Rule) -> bool:
        """Returns whether the rule is this value, or a part of it: then it says as much."""
        path = path_of(rule.path)
        return path[: len(self.path)] == self.path


def sole_change(recorded: Definition | None, today: Definition) -> SoleChange | None:
    """None where nothing differs, or more than one value does, or which phases there are, or a text that is
    read along."""
    if recorded is None or dict(recorded.includes) != dict(today.includes):
        return None
    found = _changes(recorded.source.data, today.source.data, ())
    path, more = next(found, None), next(found, None)
    if path is None or more is not None or path in ((), ("phases",)):
        return None
    line = today.line(path)
    return SoleChange(path, Rule(path_text(path), line or recorded.line(path)), recorded=not line)


class ChangedValue(Struct, frozen=True):
    """A value of the file that is not the recorded one."""

    path: str
    line: int
    """Of today's file; 0 for a value that is gone."""
    was: str
    now: str
    """Both in words; empty for objects, lists and long texts."""

    @property
    def words(self) -> str:
        """``:41 phases[0].rules.max_turns  3 → 5``"""
        values = _change_words(self.was, self.now, f"{self.was} → {self.now}")
        return f"{f':{self.line} ' if self.line else ''}{self.path}  {values}"


def changed_values(recorded: Definition | None, today: Definition) -> tuple[ChangedValue, ...]:
    """All values of the file that differ from the recorded text, in the order of today's lines."""
    if recorded is None:
        return ()
    found = (
        ChangedValue(path_text(path) or "file", today.line(path), _value(recorded, path), _value(today, path))
        for path in _changes(recorded.source.data, today.source.data, ())
    )
    return tuple(sorted(found, key=lambda one: one.line))


def _changes(old: Any, new: Any, path: Path) -> Iterator[Path]:
    """The smallest values that differ: of lists of another length, the lists."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in (*old, *(key for key in new if key not in old)):
            if key in old and key in new:
                yield from _changes(old[key], new[key], (*path, key))
            else:
                yield (*path, key)
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for index, (was, now) in enumerate(zip(old, new, strict=True)):
            yield from _changes(was, now, (*path, index))
    elif old != new or type(old) is not type(new):
        yield path
