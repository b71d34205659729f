"""Finds the differences between a frozen run and the same run today: in words, with rule and line, in order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field
from msgspec.structs import replace

from workbench.analysis.changed import AssembledRequest, compared, rule_of, sole_change
from workbench.context.assembly import Rule
from workbench.context.place import Place
from workbench.engine.definition import Definition
from workbench.engine.journal.candidate_rounds import walk_of
from workbench.engine.journal.event import Event
from workbench.engine.journal.state import RunState
from workbench.snapshots.expectations import (
    Expectations,
    Row,
    check_row,
    outputs_of,
    request_row,
    route_row,
    started_in,
)
from workbench.snapshots.recorded_run import RecordedRun

if TYPE_CHECKING:
    from workbench.analysis.changed import ChangedCall, SoleChange


class Kinds(StrEnum):
    """Kinds of differences."""

    PHASES = "phases"
    STATE = "state"
    STATUS = "status"
    ROUTE = "route"
    CHECK = "check"
    TOOL = "tool"
    OUTPUT = "output"
    REQUEST = "request"
    TOKENS = "tokens"
    CHILD = "child"


PLUMBING = frozenset({Kinds.PHASES, Kinds.STATE, Kinds.STATUS})
"""Kinds that the mode ``plumbing`` looks at: the expectations that the first format of snapshots had."""


class Difference(Struct, frozen=True):
    """One thing that is not as frozen."""

    kind: Kinds
    words: str
    """``call research:3: message 5 (turn 1's result) was sent in full, is now masked``."""
    rule: Rule = field(default_factory=Rule)
    """The deciding rule; its line is of today's file, or of the frozen text if the rule is gone."""
    frozen_rule: bool = False
    at: str = ""
    """The place in full, for programs; empty for what concerns the whole run."""
    details: tuple[str, ...] = ()
    """Further differences of the same request."""
    call: ChangedCall | None = None
    """Both requests, if one changed."""
    file: str = ""
    """The cascade file of a run that this one started; empty for the run's own."""

    def sentence(self, file: str) -> str:
        """With the rule and the line of the file."""
        if not self.rule.line:
            return self.words
        where = f"{file}:{self.rule.line}{' as frozen' if self.frozen_rule else ''}"
        return f"{self.words} ({self.rule.path}, {where})"

    def to_json(self, file: str) -> dict[str, Any]:
        return {
            "kind": str(self.kind),
            "at": self.at,
            "words": self.words,
            "rule": self.rule.path if self.rule.line else "",
            "file": file,
            "line": self.rule.line or None,
            "rule_of": "frozen" if self.frozen_rule else "file",
            "details": list(self.details),
            "parts": [part.to_json(self.file or file) for part in self.call.parts] if self.call is not None else [],
        }


def differences(
    expected: Expectations,
    old: RecordedRun,
    new: RecordedRun,
    definition: Definition,
    *,
    frozen: Callable[[], Definition | None] = lambda: None,
) -> list[Difference]:
    """Everything that is not as expected, in the order in which the new run came to it.

    ``old`` is what was recorded, for the words; ``expected`` decides. ``frozen`` gives the definition of that run,
    whose values are told where a rule has another one now; it is asked when a request differs.
    """
    return list(_Comparison(expected, old, new, definition, frozen).all())


class _Comparison:
    def __init__(
        self,
        expected: Expectations,
        old: RecordedRun,
        new: RecordedRun,
        definition: Definition,
        frozen: Callable[[], Definition | None],
    ) -> None:
        self.expected = expected
        self.old, self.new = old, new
        self.definition = definition
        self._frozen = frozen
        self.requests = {row["at"]: row for row in expected.requests}
        self.routes = {row["at"]: row for row in expected.routes}
        self.checks = {(row["at"], n): row for row, n in _numbered(expected.checks)}
        self.tools = {(row["at"], row.get("index", 0)): row for row in expected.tool_calls}
        self._seen_checks: Counter[str] = Counter()
        self._phases = iter((*expected.phases_executed, *[""] * len(new.events)))
        self._phases_differ = False
        self._walk = walk_of(new.events)
        # Frozen by 0.1.0, a run of competing walks names no phases and no outputs.
        self._unnamed = bool(walk_of(old.events)) and not expected.phases_executed

    @cached_property
    def frozen(self) -> Definition | None:
        """The definition of the frozen run."""
        return self._frozen()

    @cached_property
    def sole(self) -> SoleChange | None:
        """The one value of the file that has changed: answers and input are the recorded ones, so it made the rest."""
        return sole_change(self.frozen, self.definition)

    @cached_property
    def old_state(self) -> RunState:
        """The frozen run, computed only if something differs."""
        return self.old.recording.state

    @cached_property
    def new_state(self) -> RunState:
        """Today's run, likewise."""
        return self.new.recording.state

    def all(self) -> Iterator[Difference]:
        for event in self.new.events:
            yield from self._event(event)
        finished = next((e.data for e in reversed(self.new.events) if e.kind == "run_finished"), {})
        yield from self._left(diverged := finished.get("status") == "diverged")
        if not diverged:
            yield from _maps(Kinds.STATE, "state", self.expected.final_state, finished.get("state", {}))
            if not self._unnamed:
                yield from _maps(Kinds.OUTPUT, "output of", self.expected.outputs, outputs_of(self.new.events))
        yield from self._children()

    def _event(self, event: Event) -> Iterator[Difference]:
        match event.kind:
            case "phase_started" if event.place.branch == self._walk and not self._unnamed:
                yield from self._phase(event.place)
            case "context_assembled":
                yield from self._request(event)
            case "tool_started":
                yield from self._tool(event)
            case "tool_finished":
                yield from self._tool_result(event)
            case "check_finished":
                yield from self._check(event)
            case "route_chosen":
                yield from self._route(event)
            case "run_finished":
                yield from self._status(event.data)

    # -- one event ---------------------------------------------------------------------------------------------------

    def _phase(self, place: Place) -> Iterator[Difference]:
        was = next(self._phases)
        if was != place.phase and not self._phases_differ:
            self._phases_differ = True
            ran = f"'{was}' ran" if was else "nothing more ran"
            words = f"phases: where {ran}, '{place.phase}' runs now"
            yield Difference(Kinds.PHASES, words, self._rule(place.phase), at=str(place))

    def _request(self, event: Event) -> Iterator[Difference]:
        row, at = request_row(event) or {}, str(event.place)
        was = self.requests.pop(at, None)
        if was is not None and (was["digest"], was["tokens"]) == (row["digest"], row["tokens"]):
            return
        where = f"call {self._where(event)}"
        if was is None:
            words = f"{where} was not made before: the recording has no answer to it"
            yield Difference(Kinds.REQUEST, words, self._rule(event.place.phase), at=at)
        elif was["digest"] != row["digest"]:
            yield self._changed(event.place, where)
        else:
            words = f"{where}: the same request counts {row['tokens']:,} tokens, was {was['tokens']:,}"
            yield Difference(Kinds.TOKENS, words, self._rule(event.place.phase), at=at)

    def _changed(self, place: Place, where: str) -> Difference:
        old, new = self.old_state.call_at(place), self.new_state.call_at(place)
        if old is None or new is None:
            return Difference(Kinds.REQUEST, f"{where}: the request is not the frozen one", at=str(place))
        # A frozen call has no prediction of its own.
        before = AssembledRequest.of_call(old, self.old_state, like=new)
        after = AssembledRequest.of_call(new, self.new_state)
        changed = compared(place, before, after, self.definition, self.frozen, self.sole)
        if not changed.parts:
            words = f"{where}: the digest of the request is {new.digest[:12]}, not the frozen one"
            return Difference(Kinds.REQUEST, words, self._rule(place.phase), at=str(place), call=changed)
        first, *others = changed.parts
        details = tuple(part.words for part in others)
        words = f"{where}: {first.words}"
        return Difference(Kinds.REQUEST, words, first.rule, first.recorded_rule, str(place), details, changed)

    def _tool(self, event: Event) -> Iterator[Difference]:
        index, tool = event.data["index"], event.data.get("tool", "")
        was = self.tools.get((str(event.place), index))
        if was is not None and (was.get("tool"), was.get("arguments")) == (tool, event.data.get("arguments")):
            return
        where = f"call {self._where(event)}: tool call {index}"
        rule, at = self._rule(event.place.phase, "tackle"), str(event.place)
        if was is None:
            yield Difference(Kinds.TOOL, f"{where} ({tool}) was not made before", rule, at=at)
        elif was.get("tool") != tool:
            yield Difference(Kinds.TOOL, f"{where} was {was.get('tool')}, is now {tool}", rule, at=at)
        else:
            now = _cut(str(event.data.get("arguments")))
            words = f"{where} ({tool}) had the arguments {_cut(str(was.get('arguments')))}, has now {now}"
            yield Difference(Kinds.TOOL, words, rule, at=at)

    def _tool_result(self, event: Event) -> Iterator[Difference]:
        was = self.tools.pop((str(event.place), event.data["index"]), None)
        failed = event.data.get("is_error", False)
        if was is not None and was.get("is_error", False) != failed:
            words = (
                f"call {self._where(event)}: tool call {event.data['index']} ({event.data.get('tool')}) "
                f"{'fails now' if failed else 'failed before'}: {_cut(event.data.get('text', ''))}"
            )
            yield Difference(Kinds.TOOL, words, self._rule(event.place.phase, "tackle"), at=str(event.place))

    def _check(self, event: Event) -> Iterator[Difference]:
        row, at = check_row(event) or {}, str(event.place)
        self._seen_checks[at] += 1
        was = self.checks.pop((at, self._seen_checks[at]), None)
        if was == row:
            return
        where = f"check {self._where(event)}"
        if was is None:
            words = f"{where}: {row['name']} was not asked before"
        elif was.get("name") != row["name"]:
            words = f"{where}: was {was.get('name')}, is now {row['name']}"
        elif was.get("valid") != row["valid"]:
            verdict = "is now accepted" if row["valid"] else f"is now rejected: {_cut(row['reason'])}"
            words = f"{where}: {row['name']} {'accepted' if was.get('valid') else 'rejected'} this, it {verdict}"
        else:
            key = next(key for key in row if row[key] != was.get(key))
            words = f"{where}: {row['name']}: {key} was {_shown(was.get(key))}, is now {_shown(row[key])}"
        yield Difference(Kinds.CHECK, words, self._rule(event.place.phase, *_check_field(row)), at=at)

    def _route(self, event: Event) -> Iterator[Difference]:
        row = route_row(event) or {}
        was = self.routes.pop(row["at"], None)
        if was is None or was.get("to") != row["to"]:
            before = _target(was["to"]) if was is not None else "did not come to its end"
            words = f"route after {row['at'].removesuffix('/1')}: {before} before, {_target(row['to'])} now"
        elif was.get("rule") != row["rule"]:
            words = f"route after {row['at'].removesuffix('/1')}: chosen by '{was.get('rule')}', now by '{row['rule']}'"
        else:
            return
        yield Difference(Kinds.ROUTE, words, self._rule(event.place.phase, "handoffs"), at=row["at"])

    def _status(self, data: Mapping[str, Any]) -> Iterator[Difference]:
        status, reason = data.get("status", ""), data.get("reason", "")
        if status == self.expected.completion_status:
            return
        because = f": {reason}" if reason else ""
        words = f"the run was {self.expected.completion_status}, is now {status}{because}"
        yield Difference(Kinds.STATUS, words)

    # -- the end -----------------------------------------------------------------------------------------------------

    def _left(self, diverged: bool) -> Iterator[Difference]:
        """Expected rows that did not come."""
        if self.requests:
            names = [self._named(at) for at in self.requests]
            shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
            words = f"no longer made: call {shown}"
            yield Difference(Kinds.REQUEST, words, at=next(iter(self.requests)), details=tuple(names[3:]))
        if diverged:
            return
        if (missing := next(self._phases)) and not self._phases_differ:
            yield Difference(Kinds.PHASES, f"phases: '{missing}' does not run any more")
        for row in self.checks.values():
            phase = Place.parse(row["at"]).phase
            words = f"check {self._named(row['at'])}: {row.get('name')} is not asked any more"
            yield Difference(Kinds.CHECK, words, self._rule(phase, *_check_field(row)), at=row["at"])
        for row in self.tools.values():
            call = f"tool call {row.get('index')} ({row.get('tool')})"
            words = f"call {self._named(row['at'])}: {call} is not made any more"
            yield Difference(Kinds.TOOL, words, at=row["at"])
        for at in self.routes:
            yield Difference(Kinds.ROUTE, f"route after {at.removesuffix('/1')}: not taken any more", at=at)

    def _children(self) -> Iterator[Difference]:
        """The runs that this one started, compared in the same way."""
        before, after = (started_in(kept.events) for kept in (self.old, self.new))
        for key, expected in self.expected.children.items():
            old, new = before.get(key, ""), after.get(key, "")
            if new not in self.new.children:
                yield Difference(Kinds.CHILD, f"cascade {key} is not started any more")
                continue
            about = self.new.children[new][0].data
            definition = Definition.of(about["cascade_text"], about.get("cascade_file", ""), about.get("includes"))
            inner = differences(
                expected,
                RecordedRun(old, self.old.children.get(old, ()), self.old.children, self.old.images),
                RecordedRun(new, self.new.children[new], self.new.children, self.new.images),
                definition,
            )
            for one in inner:
                shown = definition.source.file
                words = f"in {key}: {one.words}" + (f" ({shown}:{one.rule.line})" if one.rule.line else "")
                yield replace(one, words=words, rule=Rule(), frozen_rule=False, file=one.file or shown)
        for key in after:
            if key not in self.expected.children:
                yield Difference(Kinds.CHILD, f"cascade {key} was not started before")

    # -- words -------------------------------------------------------------------------------------------------------

    def _where(self, event: Event) -> str:
        return place_words(event.place, event.data.get("purpose", ""))

    def _named(self, at: str) -> str:
        place = Place.parse(at)
        call = self.old_state.call_at(place)
        return place_words(place, call.purpose if call else "")

    def _rule(self, phase: str, *field: str) -> Rule:
        rule = rule_of(self.definition, phase, *field)
        return rule if self.sole is None or self.sole.recorded or self.sole.holds(rule) else self.sole.rule


def _check_field(row: Row) -> tuple[str, ...]:
    match row.get("check"):
        case "output_schema":
            return ("output_schema",)
        case "loop_until":
            return ("rules", "loop_until")
    return ("wards",)


def place_words(place: Place, purpose: str) -> str:
    """``research:3``, as a place is named everywhere; of a call for another ``purpose`` than a turn
    ``research:3 (closing)``, and beside the turns ``research evaluation``."""
    if not purpose or purpose == "turn":
        return place.words
    words = place._replace(call=1).words
    return f"{words} ({purpose})" if place.turn else f"{words} {purpose}"


def _numbered(rows: Sequence[Row]) -> Iterator[tuple[Row, int]]:
    seen: Counter[str] = Counter()
    for row in rows:
        seen[row["at"]] += 1
        yield row, seen[row["at"]]


def _maps(kind: Kinds, what: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Difference]:
    for key in (*old, *(key for key in new if key not in old)):
        if key not in new:
            yield Difference(kind, f"{what} '{key}': was {_shown(old[key])}, is gone")
        elif key not in old:
            yield Difference(kind, f"{what} '{key}': was not there, is now {_shown(new[key])}")
        elif old[key] != new[key]:
            yield Difference(kind, f"{what} '{key}': was {_shown(old[key])}, is now {_shown(new[key])}")


def _target(to: str) -> str:
    return f"to '{to}'" if to else "to the end of the run"


def _shown(value: object) -> str:
    return "not set" if value is None else _cut(repr(value))


def _cut(text: str, longest: int = 100) -> str:
    line = text.replace("\n", "⏎")
    return line if len(line) <= longest else f"{line[:longest]}…"
