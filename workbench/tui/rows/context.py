"""The context of one call as rows: what went out, what did not and why, where the cache ends, and what came back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from workbench.context.assembly import Action, Entry
from workbench.context.place import Place
from workbench.context.reasons import explain, origin, turns_before
from workbench.engine.state import CallState, ToolState
from workbench.tui.rows.bar import bar, cache_line
from workbench.tui.rows.cells import Row, Span, crop, dropping, fit, flat, justify
from workbench.tui.rows.model import Rows
from workbench.tui.rows.numbers import count, money, plural, seconds
from workbench.tui.rows.signs import sign

RefKind = Literal["tools", "entry", "fold", "break", "live", "failure", "back", "answer", "tool"]

ACTION_SIGN = {
    Action.MASKED: "masked",
    Action.TRUNCATED: "truncated",
    Action.SUMMARIZED: "summarized",
    Action.INJECTED: "injected",
    Action.DROPPED: "dropped",
}


@dataclass(frozen=True, slots=True)
class Ref:
    """What a row stands for: an entry, a tool result of this call, a group of dropped entries up to ``until``."""

    kind: RefKind
    index: int = -1
    until: int = -1


@dataclass(frozen=True, slots=True)
class Live:
    """What a call in progress is doing: held at a gate, waiting for the provider, or answering."""

    doing: Literal["held", "waiting", "answering"]
    text: str = ""
    """Why it is held; what is awaited; what has come so far."""
    since_s: float = 0.0
    tick: int = 0


@dataclass(frozen=True)
class View:
    """How a context is looked at."""

    compact: bool = False
    unfold: bool = False
    compare: bool = False
    before: CallState | None = None
    """The call before it in the same phase, for ``compare``."""
    budget: int | None = None
    """Tokens that the file allows."""
    max_turns: int = 0


class ContextRows(Rows):
    """One call. Rows are laid out when they are drawn; 10,000 entries cost one pass to index."""

    def __init__(self, call: CallState, view: View) -> None:
        self.call = call
        self.view = view
        self.changes = changes(call, view.before) if view.compare else {}
        self.cached = _cached_entries(call)
        self._fixed = tuple(self._refs())
        self.refs = self._fixed
        self.live: Live | None = None
        self._number = len(str(len(call.entries))) + (2 if view.compare else 0)
        """Cells of the first column: the number, and the mark of a comparison."""
        self._earlier = turns_before(call.entries, call.place)
        self._heads: tuple[int, tuple[Row, ...]] = (-1, ())
        place = call.place
        self.title = title_of(place, view.max_turns)
        self.title_right = ((flat(call.strategy), "dim"),) if call.strategy else ()
        if view.compare and view.before is not None:
            self.title_right = _against(view.before, self.changes)

    # -- which rows there are ----------------------------------------------------------------------------------------

    def _refs(self) -> Iterator[Ref]:
        call, view = self.call, self.view
        if call.tools_tokens:
            yield Ref("tools")
        forecast = call.forecast
        broken_at = forecast.break_at if forecast and forecast.cached else -1
        sent, folded = 0, -1
        for index, entry in enumerate(call.entries):
            if entry.sent is None and not view.unfold:
                folded = index if folded < 0 else folded
                continue
            if folded >= 0:
                yield Ref("fold", folded, index)
                folded = -1
            if entry.sent is not None:
                if sent == broken_at:
                    yield Ref("break")
                sent += 1
            yield Ref("entry", index)
        if folded >= 0:
            yield Ref("fold", folded, len(call.entries))
        yield from (Ref("failure", i) for i in range(len(call.failures)))
        if call.answer is not None:
            yield Ref("back")
            yield Ref("answer")
            yield from (Ref("tool", i) for i in range(len(call.tools)))

    def set_live(self, live: Live | None) -> None:
        """What the call is doing right now: the last row, while there is anything to say."""
        self.live = live
        self.refs = (*self._fixed, Ref("live")) if live is not None else self._fixed

    def __len__(self) -> int:
        return len(self.refs)

    def last_entry(self) -> int:
        """The row to look at first: the newest message that was sent."""
        return max((i for i, ref in enumerate(self.refs) if ref.kind == "entry"), default=0)

    def row_of(self, body_hash: str) -> int | None:
        """The row of a message, if it is in this context."""
        for i, ref in enumerate(self.refs):
            if ref.kind == "entry" and self.call.entries[ref.index].item.message.body_hash == body_hash:
                return i
        return None

    def entry(self, row: int) -> Entry | None:
        """The entry of a row; None for other rows."""
        if not 0 <= row < len(self.refs) or self.refs[row].kind != "entry":
            return None
        return self.call.entries[self.refs[row].index]

    # -- heads -------------------------------------------------------------------------------------------------------

    def heads(self, width: int) -> Sequence[Row]:
        if self._heads[0] != width:
            rows = [Row(summary(self.call, width, self.view.budget)), bar(self.call, width, self.view.budget)]
            if not self.view.compact:
                rows.append(cache_line(self.call, width, self.view.budget))
            rows.append(self._columns(width))
            self._heads = (width, tuple(rows))
        return self._heads[1]

    def _widths(self, width: int) -> tuple[int, int, int]:
        number = self._number
        fixed = 1 + number + 1 + 1 + 1 + 9 + 1 + 1 + 1 + 5 + 8 + 8 + 1
        flexible = max(12, width - fixed - 1)
        source = max(6, min(26, flexible * 46 // 100))
        return number, source, flexible - source

    def _columns(self, width: int) -> Row:
        number, source, why = self._widths(width)
        text = (
            f" {fit('#', number, 'right')}   {fit('role', 9)}   {fit('from', source)} {fit('why', why)}"
            f"{fit('line', 5, 'right')}{fit('full', 8, 'right')}{fit('sent', 8, 'right')}"
        )
        return Row(crop(((text, "head"),), width))

    # -- rows --------------------------------------------------------------------------------------------------------

    def row(self, index: int, width: int) -> Row:
        ref = self.refs[index]
        if ref.kind == "entry":
            return self._entry_row(ref.index, width)
        if ref.kind == "tool":
            return self._tool_row(self.call.tools[ref.index], width)
        maker = {
            "tools": self._tools_row,
            "break": self._break_row,
            "live": self._live_row,
            "back": self._back_row,
            "answer": self._answer_row,
        }.get(ref.kind)
        if maker is not None:
            return maker(width)
        return self._fold_row(ref, width) if ref.kind == "fold" else self._failure_row(ref.index, width)

    def plain(self, index: int) -> str:
        entry = self.entry(index)
        if entry is None:
            return self.row(index, 400).text.strip()
        message = entry.item.message
        calls = " ".join(f"{call.name} {call.arguments}" for call in message.tool_calls)
        return f"{message.role} {origin(entry)} {explain(entry, self.call.place, self._earlier)} {message.text} {calls}"

    def _entry_row(self, index: int, width: int) -> Row:
        entry = self.call.entries[index]
        number, source, why = self._widths(width)
        dropped = entry.sent is None
        base = "faint" if dropped else ""
        role = entry.item.message.role
        change = self.changes.get(index, "")
        left: list[Span] = [
            (" ", "plain"),
            (fit(str(index + 1), number - (2 if self.view.compare else 0), "right"), "faint"),
            *(((" ", "plain"), sign(change) if change else (" ", "plain")) if self.view.compare else ()),
            (" ", "plain"),
            ("┃", "cached") if index in self.cached else (" ", "plain"),
            (" ", "plain"),
            (fit(role, 9), base or role),
            (" ", "plain"),
            self._sign(entry),
            (" ", "plain"),
            (
                fit(origin(entry).removeprefix("↪ "), source - 1) + " ",
                base or ("injected" if entry.action is Action.INJECTED else "plain"),
            ),
            *self._why(index, entry, why),
            (fit(f"L{entry.rule.line}" if entry.rule.line else "", 5, "right"), "faint"),
        ]
        full, sent = count(entry.tokens_full, entry.grade), count(entry.tokens_sent, entry.grade)
        same = entry.tokens_full == entry.tokens_sent
        numbers: list[Span] = [
            (fit(full, 8, "right"), base or ("faint" if same else "dim")),
            (fit("–" if dropped else sent, 8, "right"), base or ("plain" if same else "masked")),
        ]
        tone = "changed" if change == "altered" else "added" if change == "new" else ""
        return Row((*crop(left, width - 16), *numbers), tone)

    def _sign(self, entry: Entry) -> Span:
        item = entry.item
        if item.is_error:
            return sign("error result")
        name = ACTION_SIGN.get(entry.action)
        if name is None:
            return sign("secret") if item.redacted else (" ", "plain")
        return sign(name)

    def _why(self, index: int, entry: Entry, width: int) -> list[Span]:
        broken = next((b for b in self.call.problems if b.entry == index), None)
        if broken is not None:
            return [(fit(f"✗ {broken.message}", width - 1) + " ", "error")]
        token = "faint" if entry.sent is None else "masked" if entry.sent != entry.item.message else "dim"
        text = explain(entry, self.call.place, self._earlier)
        if self.changes.get(index) == "altered" and (was := self._before(entry)) is not None:
            text = f"{was.action} → {text}" if was.action is not entry.action else f"reworded: {text}"
        return [(fit(text, width - 1) + " ", token)]

    def _before(self, entry: Entry) -> Entry | None:
        """The same message in the call before."""
        before = self.view.before.entries if self.view.before is not None else ()
        return next((other for other in before if _key(other) == _key(entry)), None)

    def _tools_row(self, width: int) -> Row:
        number, source, why = self._widths(width)
        what = f"{fit('tool definitions', source)} {fit('native tool schemas', why)}"
        text = f" {fit('', number)}   {fit('tools', 9)}   {what}"
        tokens = count(self.call.tools_tokens, self.call.grade)
        return Row(
            (
                *crop(((text, "dim"),), width - 16),
                (fit(tokens, 8, "right"), "faint"),
                (fit(tokens, 8, "right"), "plain"),
            )
        )

    def _fold_row(self, ref: Ref, width: int) -> Row:
        entries = self.call.entries[ref.index : ref.until]
        tokens = sum(entry.tokens_full for entry in entries)
        number, _, _ = self._widths(width)
        text = f" {fit('', number)} · {len(entries):,} dropped, {tokens:,} tokens"
        return Row(crop(((text, "faint"), ("   u unfolds", "faint")), width))

    def _break_row(self, width: int) -> Row:
        number, _, _ = self._widths(width)
        reason = self.call.forecast.reason if self.call.forecast else ""
        text = "cache breaks here" + (f": {flat(reason)}" if reason else "")
        return Row(crop(((f" {fit('', number)} ", "plain"), sign("break"), (" " + text, "warning")), width))

    def _failure_row(self, index: int, width: int) -> Row:
        data = self.call.failures[index]
        error = data.get("error") or {}
        status = f" {error['status']}" if error.get("status") else ""
        message = flat(str(error.get("message", "")))
        text = f" try {data.get('try', index + 1)}: {error.get('kind', 'failed')}{status}: {message}"
        wait = data.get("retry_in")
        after = f", again in {seconds(wait)}" if wait is not None else ""
        return Row(crop(((" ", "plain"), sign("failed"), (text, "error"), (after, "dim")), width))

    def _live_row(self, width: int) -> Row:
        live = self.live
        assert live is not None
        if live.doing == "held":
            return Row(crop(((" ", "plain"), sign("held"), (f" {flat(live.text)}", "held")), width), "held")
        mark = sign("running", live.tick)
        if live.doing == "waiting":
            return Row(crop(((" ", "plain"), mark, (f" {live.text} {seconds(live.since_s)}", "running")), width))
        size = f"  {len(live.text):,} chars"
        tail = flat(live.text[-400:])
        room = width - 16 - len(size)
        shown = tail if len(tail) <= room else "…" + tail[-room:] if room > 1 else ""
        return Row(
            justify(((" ", "plain"), mark, (" answers  ", "running"), (shown, "plain")), ((size, "dim"),), width)
        )

    def _back_row(self, width: int) -> Row:
        call = self.call
        usage = call.usage
        cached = f" ({count(usage.cached)} cached)" if usage.cached else ""
        parts = [
            f"came back after {seconds(call.duration_s)}" if not call.recorded else "from a recording",
            f"in {count(usage.input)}{cached}",
            f"out {count(usage.output)}",
            money(call.cost, exact=call.cost_grade == "exact"),
            " ".join(dict.fromkeys(call.answered_by.split())),
        ]
        token = "recorded" if call.recorded else "dim"
        text = "  ".join(flat(part) for part in parts if part)
        lead = "⟲" if call.recorded else "─"
        return Row(
            justify(
                ((" ", "plain"), (lead * 1 + "─", token if call.recorded else "rule"), (f" {text} ", token)),
                (),
                width,
                ("─", "rule"),
            )
        )

    def _answer_row(self, width: int) -> Row:
        call = self.call
        assert call.answer is not None
        number, source, why = self._widths(width)
        calls = call.answer.tool_calls
        text = "calls " + ", ".join(c.name for c in calls) if calls else flat(call.answer.text, 300)
        if call.partial:
            text = "cut off: " + text
        left: list[Span] = [
            (f" {fit('', number)}   ", "plain"),
            (fit("assistant", 9), "assistant"),
            ("   ", "plain"),
            (fit("the answer", source - 1) + " ", "plain"),
            (fit(text, why + 5 + 7) + " ", "warning" if call.partial else "dim"),
        ]
        out = count(call.usage.output)
        return Row((*crop(left, width - 8), (fit(out, 8, "right"), "plain")))

    def _tool_row(self, tool: ToolState, width: int) -> Row:
        number, source, why = self._widths(width)
        mark = (
            sign("error result")
            if tool.status == "failed"
            else sign("running")
            if tool.status == "running"
            else (" ", "plain")
        )
        text = "running" if tool.status == "running" else flat(tool.text, 300)
        left: list[Span] = [
            (f" {fit('', number)}   ", "plain"),
            (fit("tool", 9), "tool"),
            (" ", "plain"),
            mark,
            (" ", "plain"),
            (fit(f"{tool.tool}", source - 1) + " ", "plain"),
            (fit(text, why + 5 + 7) + " ", "error" if tool.status == "failed" else "dim"),
        ]
        took = seconds(tool.duration_s) if tool.status != "running" else ""
        return Row((*crop(left, width - 8), (fit(took, 8, "right"), "dim")))


def title_of(place: Place, max_turns: int = 0) -> tuple[Span, ...]:
    """``Context · triage · turn 3/6 · attempt 2``: what is 1 and could not be more is left out."""
    turn = f"turn {place.turn}" + (f"/{max_turns}" if max_turns > 1 else "") if place.turn else "beside the turns"
    parts = [flat(place.phase), turn]
    if place.visit > 1:
        parts.insert(1, f"visit {place.visit}")
    if place.attempt > 1:
        parts.append(f"attempt {place.attempt}")
    if place.call > 1:
        parts.append(f"call {place.call}")
    if place.branch:
        parts.append(flat(place.branch))
    return (("Context", "title"), ("  " + " · ".join(parts), "name"))


def summary(call: CallState, width: int, budget: int | None = None) -> tuple[Span, ...]:
    """The numbers of a call in one line: as much of it as there is room for, the most telling first."""
    full = f" of {count(call.tokens_full)}" if call.tokens_full != call.tokens_sent else ""
    parts: list[list[Span]] = [[("sends ", "dim"), (count(call.tokens_sent, call.grade), "bold"), (full, "dim")]]
    if call.problems:
        parts.append([sign("broken"), (f" {plural(len(call.problems), 'broken rule')}", "error")])
    if call.forecast is not None:
        parts.append([("cached ", "dim"), (count(call.forecast.cached), "cached")])
        parts.append([("fresh ", "dim"), (count(call.forecast.fresh), "plain")])
        parts.append([(money(call.forecast.cost), "plain"), (" predicted", "dim")])
    if budget is not None:
        over = call.tokens_sent > budget
        parts.append([("budget ", "dim"), (count(budget), "error" if over else "plain")])
    if not call.problems:
        parts.append([sign("done"), (" valid", "dim")])
    if (saved := call.tokens_full - call.tokens_sent) > 0:
        parts.append([sign("masked"), (f" {saved:,} held back", "masked")])
    return ((" ", "plain"), *dropping(parts, width - 1))


def changes(call: CallState, before: CallState | None) -> dict[int, str]:
    """By entry: ``new`` or ``altered`` against the call before; what stayed the same is left out."""
    if before is None:
        return {}
    known = {_key(entry): entry for entry in before.entries}
    result: dict[int, str] = {}
    for index, entry in enumerate(call.entries):
        was = known.get(_key(entry))
        if was is None:
            result[index] = "new"
        elif was.action is not entry.action or was.sent != entry.sent:
            result[index] = "altered"
    return result


def _against(before: CallState, found: dict[int, str]) -> tuple[Span, ...]:
    """``against turn 2: +2 new ±1 altered``."""
    kinds = list(found.values())
    return (
        (f"against turn {before.place.turn}: ", "dim"),
        sign("new"),
        (f"{kinds.count('new')} new ", "dim"),
        sign("altered"),
        (f"{kinds.count('altered')} altered", "dim"),
    )


def _key(entry: Entry) -> tuple[str, Place]:
    """What makes two entries the same message."""
    return entry.item.message.body_hash, entry.item.place


def _cached_entries(call: CallState) -> frozenset[int]:
    """Indices of the entries inside the reusable prefix."""
    if call.forecast is None or not call.forecast.cached:
        return frozenset()
    result, sent = set(), 0
    for index, entry in enumerate(call.entries):
        if entry.sent is None:
            continue
        if sent >= call.forecast.break_at:
            break
        result.add(index)
        sent += 1
    return frozenset(result)
