"""Says in a few words why an entry is as it is and where it came from, to fit into a column.

A reason holds a code and numbers that never change; ages are computed here, seen from the turn that is shown.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from workbench.context.assembly import Entry, Item, Kind
from workbench.context.place import Place


class ReasonText(Struct, frozen=True):
    """How a code reads. ``{0}``, ``{1}`` are its arguments, ``{age}`` the age in turns."""

    text: str
    meaning: str
    """A sentence for the help."""
    without_age: str = ""
    """For a code whose last argument is the turn of the message: its text if the age is unknown."""


REASONS: dict[str, ReasonText] = {
    "always": ReasonText("always", "Sent with every call."),
    "input": ReasonText("context.include_input", "The original input, because the phase includes it."),
    "source": ReasonText("{0}", "Carried in by this source of the file."),
    "snowball": ReasonText("snowball", "All that finished phases said is carried along."),
    "entities": ReasonText("entities: {0}", "Values and outputs that the task depends on."),
    "preamble": ReasonText("fidelity {0}", "A generated message about the run so far."),
    "preamble_of": ReasonText("fidelity {0}: {1} of {2} tokens", "A generated message about the run, and its budget."),
    "preamble_budget": ReasonText("dropped: preamble budget {0}", "The preamble would not have fitted; oldest first."),
    "preamble_cut": ReasonText("shortened: preamble budget {0}", "Its fixed lines alone would not have fitted."),
    "thread": ReasonText("thread {0}", "The phase goes on with this conversation."),
    "anchor": ReasonText("anchor: {0}", "Automatic context never drops it."),
    "in_output": ReasonText("dropped: is the output of {0}", "Its text enters as an output already."),
    "selected": ReasonText("selected: score {0}", "Suits the task best by keywords, recency and callouts."),
    "alike": ReasonText("selected: lexical likeness {0}", "Uses the words of the task."),
    "similar": ReasonText("selected: similarity {0}", "Its embedding is near that of the task."),
    "dissimilar": ReasonText("dropped: similarity {0}", "Below similarity_threshold."),
    "chosen": ReasonText("chosen by {0}", "The selector model picked it from the menu of cards."),
    "not_chosen": ReasonText("dropped: not chosen by {0}", "It was on the menu, and the selector model left it."),
    "off_menu": ReasonText("dropped: score {0}, not on the menu", "Too far down by keywords, recency and callouts."),
    "fell_back": ReasonText(
        "selected: score {0}, no selector", "The selector model chose nothing, so the heuristic did."
    ),
    "not_listed": ReasonText("dropped: not listed in from", "Only anchors of this phase enter."),
    "unlike": ReasonText("dropped: lexical likeness {0}", "Below similarity_threshold."),
    "not_among": ReasonText("dropped: score {0}, not of the best {1}", "max_messages were selected."),
    "no_room": ReasonText("dropped: score {0}, budget {1}", "It does not fit beside better ones."),
    "retention": ReasonText("{0} keeps its output only", "context_retention of the phase it comes from."),
    "expired": ReasonText("dropped: {0} expire after {1}", "context_ttl: more phases have finished since."),
    "filter": ReasonText("dropped: messages_filter {0}", "The filter of the source leaves it out."),
    "earlier_attempt": ReasonText("dropped: attempt {0} was repeated", "A source gives its last attempt only."),
    "other_system": ReasonText("dropped: system text of another phase", "System messages stay in their phase."),
    "blank": ReasonText("dropped: blank", "It holds nothing that could be sent."),
    "task": ReasonText("instructions", "The task of the phase."),
    "prompt": ReasonText("opens turn {0}", "Says how the turn goes on."),
    "retry": ReasonText("opens attempt {0}", "Says why the attempt before was rejected."),
    "closing": ReasonText("asks for the final answer", "The last turn ran tools, so one more call follows."),
    "answer": ReasonText("answer", "What the model said."),
    "calls": ReasonText("calls {0}", "The model asked for tools."),
    "unreadable": ReasonText("calls mended: arguments were no JSON object", "Providers refuse such calls."),
    "result": ReasonText("kept in full", "A tool result; nothing is masked here."),
    "blank_result": ReasonText("the tool returned nothing", "Providers refuse blank content."),
    "images": ReasonText("images of the tool", "Images that a tool returned."),
    "edited": ReasonText("{0} by hand", "A person edited the run here: the edit decided, not the file."),
    "said": ReasonText("{0}", "A person or a hook said it during the run."),
    "user": ReasonText("said during the run", "A person or a hook said it."),
    "system": ReasonText("system text", "A system message of the history."),
    "injected": ReasonText("carried in", "From another phase."),
    "recent": ReasonText("kept: age {age}", "Young enough, or waiting for its batch.", "kept in full"),
    "small": ReasonText("kept: {0} chars < {1}", "Too small to be worth masking."),
    "error": ReasonText("kept: error result", "Errors stay, so that they are not repeated."),
    "age": ReasonText("masked: age {age} > {0}", "Older than mask_observations_after.", "masked: age > {0}"),
    "window": ReasonText("shortened: age {age} > {0}", "Older than the window.", "shortened: age > {0}"),
    "slide": ReasonText("dropped: age {age} > {0}", "Older than the sliding window.", "dropped: age > {0}"),
    "cleared": ReasonText("masked: request was over {0}", "Cleared when the request passed the trigger."),
    "failed_attempt": ReasonText("dropped: attempt {0} failed", "A pipeline's node runs again from its task."),
    "old_image": ReasonText("image not among the last {0}", "keep_recent_images."),
    "loop": ReasonText("dropped: attempt {0} failed", "A retry sees failed attempts as output and reason."),
    "loop_output": ReasonText("output of attempt {0}", "A retry sees what was rejected."),
    "loop_reason": ReasonText("why attempt {0} failed", "A retry sees the reason."),
    "loop_limit": ReasonText("dropped: before the last {0} attempts", "loop_history_limit."),
    "budget": ReasonText("dropped: budget {0}", "The request would not have fitted; oldest first."),
    "budget_result": ReasonText("masked: budget {0}", "The request would not have fitted; oldest results first."),
    "summary": ReasonText("summary of older turns", "The request would not have fitted."),
    "summarized": ReasonText("dropped: in the summary", "A summary stands for it."),
}

AUTOMATIC = frozenset(
    {
        *("anchor", "in_output", "selected", "alike", "similar", "dissimilar", "unlike", "chosen", "not_chosen"),
        *("off_menu", "fell_back", "not_listed", "not_among", "no_room"),
    }
)
"""Codes that automatic context alone gives."""
"""All codes. A code that is not here, from another version, is shown as it is."""


def explain(entry: Entry, viewed_from: Place, earlier_turns: int | None = None) -> str:
    """Returns the reason in words, for a call at ``viewed_from``: ``masked: age 2 > 1``, ``calls read_log``,
    ``context.from[0]``.

    ``earlier_turns``: turns of the visit's attempts before that of ``viewed_from`` (see ``turns_before``); without it,
    the age of what another attempt made is not told.
    """
    code, args = entry.reason.code, entry.reason.args
    words = REASONS.get(code)
    if words is None:
        return " ".join((code, *(str(arg) for arg in args)))
    shown = [f"{arg:,}" if isinstance(arg, int) else arg for arg in args]
    if not words.without_age:
        return words.text.format(*shown)
    age = _age(entry, viewed_from, earlier_turns)
    return words.without_age.format(*shown) if age is None else words.text.format(*shown, age=f"{age:,}")


def turns_before(entries: Iterable[Entry], viewed_from: Place) -> int:
    """Turns of the attempts before ``viewed_from``'s, by the visit's own entries."""
    longest: dict[int, int] = {}
    for entry in entries:
        place = entry.item.place
        is_own = entry.item.kind is not Kind.INJECTED and place.visit_key == viewed_from.visit_key
        if is_own and place.attempt < viewed_from.attempt:
            longest[place.attempt] = max(longest.get(place.attempt, 0), place.turn)
    return sum(longest.values())


def origin(entry: Entry) -> str:
    """The origin of an entry: ``turn 1 read_log``, ``↪ intake.output``, ``task``, ``tools``, ``input``."""
    item = entry.item
    if item.kind is Kind.INJECTED:
        return f"↪ {_injected(item)}"
    if item.kind is Kind.SYSTEM:
        return item.source or "tools"
    if item.kind in (Kind.INPUT, Kind.TASK):
        return str(item.kind)
    turn = (
        f"attempt {item.place.attempt} turn {item.place.turn}" if item.place.attempt > 1 else f"turn {item.place.turn}"
    )
    return f"{turn} {item.tool}" if item.tool else turn


def name_of(item: Item) -> str:
    """The message in a sentence: ``turn 1's result``, ``the task``, ``the output of intake``."""
    if item.kind is Kind.SYSTEM and item.source:
        return "the system text"
    if item.kind in _NAMES:
        return _NAMES[item.kind]
    if item.kind is Kind.INJECTED:
        return item.source or "what was carried in"
    turn = f"turn {item.place.turn}"
    if item.place.attempt > 1:
        turn = f"attempt {item.place.attempt}, {turn}"
    return f"{turn}'s {_PARTS_OF_A_TURN.get(item.kind, 'message')}"


_NAMES = {Kind.SYSTEM: "the tool text", Kind.INPUT: "the input", Kind.TASK: "the task"}
_PARTS_OF_A_TURN = {
    Kind.ANSWER: "answer",
    Kind.RESULT: "result",
    Kind.IMAGES: "images",
    Kind.PROMPT: "prompt",
    Kind.RETRY: "retry message",
    Kind.CLOSING: "closing message",
}


def _injected(item: Item) -> str:
    if not item.place.turn or not item.source.endswith(".messages"):
        return item.source
    turn = f"{item.source.removesuffix('.messages')} turn {item.place.turn}"
    return f"{turn} {item.tool}" if item.tool else turn


def _age(entry: Entry, viewed_from: Place, earlier_turns: int | None) -> int | None:
    place, made = entry.item.place, entry.reason.args[-1]
    if place.attempt == viewed_from.attempt:
        return viewed_from.turn - place.turn
    if not isinstance(made, int) or earlier_turns is None:
        return None
    return earlier_turns + viewed_from.turn - made
