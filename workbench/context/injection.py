"""Collects what enters a phase from the run before it: input, parts of earlier phases, whole conversations."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from workbench.context.assembly import Action, Item, Kind, Reason, Rule
from workbench.context.history import History
from workbench.context.message import Image, Message, Part, Role, TextPart
from workbench.context.own_messages import own_verdict
from workbench.context.part import EnteredMessages, MessageDecision, where
from workbench.context.pictured import pictured
from workbench.context.place import Place
from workbench.context.placeholder import result_header, without_images
from workbench.context.scope import PhaseScope, VisitRecord
from workbench.language.model.cascade import Phase
from workbench.language.model.context import SOURCE_SHORTHANDS, ContextSource
from workbench.language.problem import Path, path_text

# Messages of another phase as plain conversation: no calls, no results, no provider metadata.


def flattened(item: Item) -> Message:
    """The message in the form in which it enters another phase: a native call becomes ``[Called NAME with {…}]`` in the
    assistant's text, a native result becomes user text. Returns the message itself if nothing changes.
    """
    message = item.message
    if message.role == "tool":
        return Message("user", _led(message, result_header(item.tool or message.name or "tool", item.is_error)))
    if message.role == "assistant" and message.tool_calls:
        calls = "\n".join(f"[Called {call.name} with {call.arguments or '{}'}]" for call in message.tool_calls)
        return Message("assistant", _followed(message, calls))
    if message.extra or message.name or message.tool_call_id:
        return replace(message, extra={}, name="", tool_call_id="")
    return message


def _led(message: Message, header: str) -> str | tuple[Part, ...]:
    if isinstance(message.content, str):
        return header + message.content
    return (TextPart(header.rstrip("\n")), *message.content)


def _followed(message: Message, text: str) -> str | tuple[Part, ...]:
    if not isinstance(message.content, str):
        return (*message.content, TextPart(text))
    return f"{message.content.rstrip()}\n{text}" if message.content.strip() else text


class _Cause(Struct, frozen=True):
    """Why something is carried in."""

    reason: Reason
    rule: Rule
    role: Role = "user"


class Injection:
    """Gathers rows in wire order. The same image is carried in once."""

    def __init__(self, scope: PhaseScope) -> None:
        self._scope = scope
        self._seen = [visit for visit in scope.visits if visit.status == "success"]
        self._age = {id(visit): len(self._seen) - 1 - i for i, visit in enumerate(self._seen)}
        self._phases = {phase.name: phase for phase in reversed(scope.cascade.phases)}
        self._images: set[str] = set()
        self._rows: list[tuple[Item, MessageDecision]] = []
        self._notes: list[str] = []

    def entered(self) -> EnteredMessages:
        """All that was added. A conversation that an assistant would open gets its header from the user: providers
        want a user's message first."""
        first = next((i for i, (_, verdict) in enumerate(self._rows) if _opens(verdict)), None)
        if first is not None and self._rows[first][0].message.role == "assistant":
            self._head(first)
        return EnteredMessages(tuple(self._rows), tuple(self._notes))

    def _head(self, first: int) -> None:
        """Put a user's header before this row."""
        item, verdict = self._rows[first]
        message = Message("user", f"[Conversation from {item.place.phase}]:")
        header = Item(message, Kind.INJECTED, item.place._replace(attempt=0, turn=0, call=0), source=item.source)
        self._rows.insert(first, (header, MessageDecision(message, Action.INJECTED, verdict.reason, verdict.rule)))

    # -- what can be added -------------------------------------------------------------------------------------------

    def input(self, rule: Rule) -> None:
        """``[Original Input]``."""
        message = pictured(Message("user", f"[Original Input]:\n{_json(self._scope.input)}"), self._scope.keep_image)
        item = Item(message, Kind.INPUT, Place(self._scope.place.branch))
        self._rows.append((item, MessageDecision(message, Action.INJECTED, Reason("input"), rule)))

    def sources(self, sources: Sequence[ContextSource], path: Path, exclude: Sequence[str] = ()) -> None:
        """Sources in array order; ``path`` is that of the list. What cannot be injected is noted."""
        excluded = {(v.phase, v.visit) for name in exclude for v in self._resolve(name, every=True)}
        for position, source in enumerate(sources):
            at = (*path, position)
            label = where(at, self._scope.base)
            if not self._scope.conditions.get(path_text(at), True):
                self._notes.append(f"{label}: '{source.phase}' is skipped, its condition is false")
                continue
            visits = self._resolve(source.phase)
            kept = [v for v in visits if (v.phase, v.visit) not in excluded]
            if not kept:
                self._notes.append(f"{label}: '{source.phase}' is skipped, {self._absence(source.phase, visits)}")
            cause = _Cause(Reason("source", (label,)), self._scope.rule_at(at), source.as_role)
            for visit in kept:
                self._source(visit, source, cause, label)

    def snowball(self, rule: Rule) -> None:
        """Every message of every finished visit, in run order."""
        cause = _Cause(Reason("snowball"), rule)
        for visit in self._seen:
            self._conversation(visit, visit.items, cause, {})

    def thread(self, visits: Sequence[VisitRecord], key: str, rule: Rule, *, preambles: bool) -> None:
        """Inject the conversation of these visits: the messages before the first task, the task, and the turns of the
        last attempt.

        Native calls stay native if the phase can make them and no part of them is lost; else they become text.
        """
        cause = _Cause(Reason("thread", (key,)), rule)
        for visit in visits:
            if preambles and visit.preamble:
                self._text(visit, "preamble", visit.preamble, cause)
            dropped = _earlier_attempts(visit)
            loss = self._loss(visit)
            if not loss and not dropped and all(_is_bare(item) for item in visit.items):
                # Most visits of a long thread: nothing of them needs a repair.
                source = f"{visit.label}.messages"
                for item in visit.items:
                    carried = replace(item, kind=Kind.INJECTED, source=source)
                    verdict = MessageDecision(item.message, Action.INJECTED, cause.reason, cause.rule)
                    self._rows.append((carried, verdict))
                continue
            if not loss:
                self._as_it_was(visit, cause, dropped)
                continue
            if any(item.message.tool_calls for item in visit.items):
                self._notes.append(f"thread \"{key}\": calls of '{visit.label}' are text, {loss}")
            self._conversation(visit, visit.items, cause, dropped)

    @property
    def seen(self) -> Sequence[VisitRecord]:
        """The visits that later phases see, in run order."""
        return self._seen

    def named(self, names: Iterable[str], *, every: bool = False) -> list[VisitRecord]:
        """The visits that names and keywords mean, each once. ``every``: a bare name means all its visits."""
        found = [visit for name in names for visit in self._resolve(name, every=every)]
        return list({id(visit): visit for visit in found}.values())

    def output(self, visit: VisitRecord, reason: Reason, rule: Rule) -> None:
        """``[Output from P]``."""
        self._text(visit, "output", f"[Output from {visit.phase}]:\n{visit.output}", _Cause(reason, rule))

    def picked(
        self, visit: VisitRecord, kept: Mapping[int, Reason], dropped: Mapping[int, Reason], anchor: Rule, rule: Rule
    ) -> None:
        """The messages of a visit one by one, each with its reason; what ``kept`` does not name stays out.

        ``anchor`` is the rule of what always enters, ``rule`` that of the rest.
        """
        expired = self._expired(visit, self._phases.get(visit.phase))
        for index, item in enumerate(visit.items):
            reason = kept.get(index, Reason("blank"))
            cause = _Cause(reason, anchor if reason.code == "anchor" else rule)
            out = dropped.get(index) if index not in kept else None
            if out is None and index not in kept and item.message.role != "system":
                out = Reason("blank")
            carried = replace(item, kind=Kind.INJECTED, source=f"{visit.label}.messages")
            self._rows.append((carried, self._carried(item, cause, out, expired)))

    # -- sources -----------------------------------------------------------------------------------------------------

    def _resolve(self, name: str, *, every: bool = False) -> list[VisitRecord]:
        """The visits that a name or keyword means, in run order. ``every``: a bare name means all its visits."""
        keyword = SOURCE_SHORTHANDS.get(name.lower(), name.lower())
        if keyword == "all":
            return self._seen
        if keyword == "first":
            return self._seen[:1]
        if keyword == "previous":
            return self._seen[-1:]
        named = [visit for visit in self._seen if visit.phase == name]
        if not named:
            phase, _, number = name.rpartition("#")
            if number.isascii() and number.isdigit():
                return [v for v in self._seen if v.phase == phase and v.visit == int(number)]
        return named if every else named[-1:]

    def _absence(self, name: str, visits: Sequence[VisitRecord]) -> str:
        if visits:
            return "it is excluded"
        failed = [v for v in self._scope.visits if v.phase == name.rpartition("#")[0] or v.phase == name]
        return f"its visit ended as {failed[-1].status}" if failed else "nothing of it has run"

    def _source(self, visit: VisitRecord, source: ContextSource, cause: _Cause, label: str) -> None:
        included = set(source.include)
        if "images" in included:
            self._shown_images(visit, source, cause)
        if "output" in included:
            self._text(visit, "output", f"[Output from {visit.phase}]:\n{visit.output}", cause)
        if "messages" in included:
            self._messages(visit, source, cause)
        if "state" in included:
            if visit.state:
                self._text(visit, "state", f"[State from {visit.phase}]:\n{_json(visit.state)}", cause)
            else:
                self._notes.append(f"{label}: '{visit.label}' set no state")

    def _shown_images(self, visit: VisitRecord, source: ContextSource, cause: _Cause) -> None:
        images = list({image.digest: image for item in visit.items for image in item.message.images}.values())
        if source.images_filter != "all":
            images = images[-1 if source.images_filter == "last" else -source.images_count :]
        fresh = [image for image in images if image.digest not in self._images]
        if not fresh:
            return
        self._images.update(image.digest for image in fresh)
        parts: tuple[Part, ...] = (TextPart(f"[Images from {visit.phase}]:"), *fresh)
        self._message(visit, "images", Message("user", parts), cause)

    def _text(self, visit: VisitRecord, part: str, text: str, cause: _Cause) -> None:
        message = pictured(Message("user", text), self._scope.keep_image)
        if cause.role == "user":
            self._message(visit, part, message, cause)
            return
        # A system message cannot carry an image: its text names them, and they follow as the user's.
        self._message(visit, part, Message(cause.role, message.text), cause)
        if fresh := [image for image in message.images if image.digest not in self._images]:
            self._images.update(image.digest for image in fresh)
            parts: tuple[Part, ...] = (TextPart(f"[Images from {visit.phase}]:"), *fresh)
            self._message(visit, "images", Message("user", parts), cause)

    def _message(self, visit: VisitRecord, part: str, message: Message, cause: _Cause) -> None:
        place = Place(visit.branch, visit.phase, visit.visit)
        item = Item(message, Kind.INJECTED, place, source=f"{visit.label}.{part}")
        self._rows.append((item, MessageDecision(message, Action.INJECTED, cause.reason, cause.rule)))

    # -- conversations -----------------------------------------------------------------------------------------------

    def _messages(self, visit: VisitRecord, source: ContextSource, cause: _Cause) -> None:
        """Inject the conversation of the last attempt, filtered by whole turns, after a header.

        Its messages keep their roles, and the header has a role that keeps it beside them: a system message would be
        sent before everything else.
        """
        cause = replace(cause, role="user") if cause.role == "system" else cause
        self._text(visit, "messages", f"[Conversation from {visit.phase}]:", cause)
        attempt = max((item.place.attempt for item in visit.items), default=0)
        last_turn = max((item.place.turn for item in visit.items if item.place.attempt == attempt), default=0)
        name = source.messages_filter
        dropped = _earlier_attempts(visit, with_task=name == "last_turn")
        for index, item in enumerate(visit.items):
            if index in dropped:
                continue
            if (name == "last_turn" and item.place.turn != last_turn) or (
                name == "assistant_only" and item.message.role != "assistant"
            ):
                dropped[index] = Reason("filter", (name,))
        self._conversation(visit, visit.items, cause, dropped)

    def _conversation(
        self, visit: VisitRecord, items: Iterable[Item], cause: _Cause, dropped: dict[int, Reason]
    ) -> None:
        """The messages of a visit as plain conversation, one row each, sent or not."""
        phase = self._phases.get(visit.phase)
        if phase is not None and phase.context_retention == "output_only":
            self._output_only(visit, items, cause, phase)
            return
        expired = self._expired(visit, phase)
        for index, item in enumerate(items):
            carried = replace(item, kind=Kind.INJECTED, source=f"{visit.label}.messages")
            verdict = self._carried(item, cause, dropped.get(index), expired)
            self._rows.append((carried, verdict))

    def _loss(self, visit: VisitRecord) -> str:
        """Returns why the messages of a visit cannot be continued unchanged; empty if they can."""
        phase = self._phases.get(visit.phase)
        if phase is not None and (phase.context_retention == "output_only" or self._expired(visit, phase)):
            return "its own rules keep less than all"
        offered = {str(tool.get("function", {}).get("name", "")) for tool in self._scope.tools}
        called = {call.name for item in visit.items for call in item.message.tool_calls}
        if missing := sorted(called - offered):
            return f"'{missing[0]}' is not offered here"
        has_extra = any(item.message.extra or _extra_of_calls(item.message) for item in visit.items)
        return f"they hold reasoning of {visit.model}" if has_extra and visit.model != self._scope.model else ""

    def _as_it_was(self, visit: VisitRecord, cause: _Cause, dropped: dict[int, Reason]) -> None:
        """Inject the messages of a visit with their calls, repaired as they were for the visit itself."""
        history = History()
        kept = [i for i, item in enumerate(visit.items) if i not in dropped and item.message.role != "system"]
        for index in kept:
            history.add(visit.items[index])
        position = {index: at for at, index in enumerate(kept)}
        for index, item in enumerate(visit.items):
            carried = replace(item, kind=Kind.INJECTED, source=f"{visit.label}.messages")
            if index not in position:
                reason = dropped.get(index, Reason("other_system"))
                self._rows.append((carried, MessageDecision(None, Action.DROPPED, reason, cause.rule)))
                continue
            verdict = own_verdict(self._scope, history, position[index])
            if verdict.sent is item.message:
                sent = item.message if item.message.tool_calls else self._once(item.message)
                verdict = MessageDecision(sent, Action.INJECTED, cause.reason, cause.rule)
                if not sent.text.strip() and not sent.images and not sent.tool_calls:
                    verdict = MessageDecision(None, Action.DROPPED, Reason("blank"), cause.rule)
            self._rows.append((carried, verdict))

    def _output_only(self, visit: VisitRecord, items: Iterable[Item], cause: _Cause, phase: Phase) -> None:
        rule = self._phase_rule(phase, "context_retention")
        reason = Reason("retention", (visit.phase,))
        text = f"[Output from {visit.phase}]:\n{visit.output}"
        self._text(visit, "output", text, replace(cause, reason=reason, rule=rule))
        for item in items:
            carried = replace(item, kind=Kind.INJECTED, source=f"{visit.label}.messages")
            self._rows.append((carried, MessageDecision(None, Action.DROPPED, reason, rule)))

    def _expired(self, visit: VisitRecord, phase: Phase | None) -> dict[str, MessageDecision]:
        """By category: the verdict on what has outlived its ``context_ttl``."""
        verdicts: dict[str, MessageDecision] = {}
        for category, phases in (phase.context_ttl if phase else {}).items():
            if phase is not None and phases is not None and self._age[id(visit)] > phases:
                rule = self._phase_rule(phase, "context_ttl", category)
                verdicts[category] = MessageDecision(None, Action.DROPPED, Reason("expired", (category, phases)), rule)
        return verdicts

    def _carried(
        self, item: Item, cause: _Cause, dropped: Reason | None, expired: dict[str, MessageDecision]
    ) -> MessageDecision:
        if dropped is not None:
            return MessageDecision(None, Action.DROPPED, dropped, cause.rule)
        if item.message.role == "system":
            return MessageDecision(None, Action.DROPPED, Reason("other_system"), cause.rule)
        category = {Kind.RESULT: "tool_results", Kind.IMAGES: "images"}.get(item.kind, "")
        if (verdict := expired.get("messages") or expired.get(category)) is not None:
            return verdict
        message = flattened(item)
        if not message.text.strip() and not message.images:
            return MessageDecision(None, Action.DROPPED, Reason("blank"), cause.rule)
        if message.images and (verdict := expired.get("images")) is not None:
            return MessageDecision(without_images(message), Action.MASKED, verdict.reason, verdict.rule)
        return MessageDecision(self._once(message), Action.INJECTED, cause.reason, cause.rule)

    def _once(self, message: Message) -> Message:
        """The message without the images that are in the context already."""
        repeated = {image.digest for image in message.images} & self._images
        self._images.update(image.digest for image in message.images)
        return without_images(_distinct(message), repeated) if repeated else _distinct(message)

    def _phase_rule(self, phase: Phase, *path: str) -> Rule:
        index = next(i for i, p in enumerate(self._scope.cascade.phases) if p is phase)
        return self._scope.rule_at(("phases", index, *path))


def _earlier_attempts(visit: VisitRecord, *, with_task: bool = False) -> dict[int, Reason]:
    """Items of attempts before the last, by index; the task belongs to all attempts unless ``with_task``."""
    attempt = max((item.place.attempt for item in visit.items), default=0)
    return {
        index: Reason("earlier_attempt", (item.place.attempt,))
        for index, item in enumerate(visit.items)
        if item.place.attempt != attempt and (with_task or item.kind is not Kind.TASK)
    }


def _is_bare(item: Item) -> bool:
    """Returns whether a message is a text that goes on unchanged, whichever phase sends it."""
    message = item.message
    bare = isinstance(message.content, str) and not message.tool_calls and not item.edited
    return bare and item.kind in (Kind.TASK, Kind.ANSWER) and message.role != "system" and bool(message.text.strip())


def _extra_of_calls(message: Message) -> bool:
    return any(call.extra for call in message.tool_calls)


def _opens(verdict: MessageDecision) -> bool:
    """Returns whether the message is sent after the system ones."""
    return verdict.sent is not None and verdict.sent.role != "system"


def _distinct(message: Message) -> Message:
    """The message with each of its images once."""
    images = message.images
    if len(images) == len({image.digest for image in images}) or isinstance(message.content, str):
        return message
    seen: set[str] = set()
    parts: list[Part] = []
    for part in message.content:
        if not isinstance(part, Image):
            parts.append(part)
        elif part.digest not in seen:
            seen.add(part.digest)
            parts.append(part)
    return replace(message, content=tuple(parts))


def _json(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)
