"""A message in its readable forms: beside what the model saw, raw, typeset, as JSON, on the wire."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Literal, get_args

from msgspec import Struct, field
from msgspec.structs import replace

from workbench.context.message import Image, Message
from workbench.engine.journal.parts import CallState, FullResult
from workbench.engine.journal.state import RunState
from workbench.views import documents
from workbench.views.cells import Span, flat
from workbench.views.json_tree import JsonRows, read_json
from workbench.views.keys import told
from workbench.views.large_text import LargeTextRows
from workbench.views.model import Rows
from workbench.views.numbers import count
from workbench.views.picture import Gallery
from workbench.views.side_by_side import SideRows
from workbench.views.text import WORD_WRAP_LIMIT, TextLine, TextRows
from workbench.views.wire import handed_over
from workbench.views.words import copy_of

Form = Literal["sides", "raw", "rendered", "json", "wire"]
FORMS: tuple[Form, ...] = get_args(Form)

PICTURE_LINES = 40
"""Of an image in the viewer."""


class ViewedMessage(Struct, frozen=True):
    """A message to look at. ``sent`` is what the model saw of it: the same, less, or nothing."""

    title: tuple[Span, ...]
    facts: tuple[Span, ...]
    message: Message
    sent: Message | None = None
    labels: tuple[str, str] = ("in full", "as sent")
    note: str = ""
    """Stands above the text."""
    wire: Callable[[], str] | None = None
    """JSON text of the message on the wire; None for what was not sent."""
    whole: FullResult | None = None
    """All of a result that was cut for the model."""
    gallery: Gallery = field(default_factory=Gallery)

    @property
    def images(self) -> tuple[Image, ...]:
        return self.message.images

    @property
    def first(self) -> Form:
        """The form that says most: both sides where they differ."""
        return "sides" if self.missing("sides") == "" else "raw"

    def missing(self, form: Form) -> str:
        """Returns why there is no such form of this message; empty where there is one."""
        text = self.message.text
        if form == "sides" and (self.sent is None or self.sent == self.message):
            return "It was sent as it is: there is nothing to compare." if self.sent else "It was not sent."
        if form == "rendered" and not text.strip():
            return "There is no text to typeset."
        if form == "rendered" and len(text) > documents.TYPESET:
            return f"{len(text):,} characters are too many to typeset; at most {documents.TYPESET:,}."
        if form == "json" and self._value() is None:
            return "Not a JSON object or list, or too long to be shown as one."
        if form == "wire" and self.wire is None:
            return "No request of this call sent this over the wire."
        return ""

    def rows(self, form: Form) -> Rows:
        """The message in a form that is not missing."""
        made = getattr(self, f"_{form}")()
        assert isinstance(made, Rows)
        made.title = (*self.title, ("   ", "plain"), *self._forms(form))
        return made

    def _forms(self, now: Form) -> tuple[Span, ...]:
        spans: list[Span] = []
        for form in FORMS:
            if form == now or not self.missing(form):
                spans += [(" │ ", "separator")] if spans else []
                spans.append((form, "tab-on" if form == now else "tab"))
        return tuple(spans)

    # -- the forms ---------------------------------------------------------------------------------------------------

    def _sides(self) -> Rows:
        assert self.sent is not None
        whole = len(self.message.text) <= WORD_WRAP_LIMIT
        left = documents.message_lines(self.message, whole=whole, gallery=self.gallery, lines=PICTURE_LINES)
        right = documents.message_lines(self.sent, "placeholder", whole=whole, gallery=self.gallery)
        return SideRows((left, right), self.labels, self.title, self.facts, copy_of(self.message))

    def _raw(self) -> Rows:
        if len(self.message.text) > WORD_WRAP_LIMIT:
            return LargeTextRows(self.message.text, self.title, "".join(text for text, _ in self.facts))
        lines = documents.message_lines(self.message, whole=True, gallery=self.gallery, lines=PICTURE_LINES)
        return self._document(lines or [TextLine("(no text)", "faint")])

    def _rendered(self) -> Rows:
        rest = documents.message_lines(self._without_text(), gallery=self.gallery, lines=PICTURE_LINES)
        return self._document([documents.markdown_line(self.message.text), *rest])

    def _json(self) -> Rows:
        return JsonRows(self._value(), self.title, self.facts, copy=copy_of(self.message))

    def _wire(self) -> Rows:
        assert self.wire is not None
        text = self.wire()
        value = read_json(text)
        return LargeTextRows(text, self.title) if value is None else JsonRows(value, self.title, self.facts, copy=text)

    def _document(self, lines: list[TextLine]) -> TextRows:
        above = [TextLine(self.note, "dim")] if self.note else []
        if self.whole is not None:
            opens = told("{message.all} opens all of them.")
            words = f"Cut for the model. The tool gave {self.whole.chars:,} characters; {opens}"
            above.append(TextLine(words, "masked"))
        return TextRows(lines, self.title, self.facts, copy=copy_of(self.message), above=above)

    def _value(self) -> object | None:
        """Returns the text, or the text below a header like ``[Tool result: x]``, as JSON; else the tool calls."""
        text = self.message.text
        head, _, rest = text.partition("\n")
        if (value := read_json(text)) is None and head.startswith("[") and head.endswith("]"):
            value = read_json(rest)
        if value is None and self.message.tool_calls:
            return [
                {"tool": call.name, "arguments": read_json(call.arguments) or call.arguments}
                for call in self.message.tool_calls
            ]
        found: object | None = value
        return found

    def _without_text(self) -> Message:
        return replace(self.message, content=self.message.images)


def viewed_entry(call: CallState, index: int, run: RunState, gallery: Gallery) -> ViewedMessage:
    """An entry of a context."""
    entry = call.entries[index]
    doc = documents.message_doc(call, index, full=True)
    full, went = count(entry.tokens_full, entry.grade), count(entry.tokens_sent, entry.grade)
    labels = (f"in full · {full} tokens", f"as sent · {entry.action} · {went} tokens")
    sent = entry.sent
    note = "" if sent is not None else f"Not sent: {documents.reason(call, entry)}"
    position = sum(1 for one in call.entries[:index] if one.sent is not None)
    wire = None if sent is None else lambda: _wire_of(call, run, position, sent)
    cut = run.wholes and len(entry.item.message.text) <= documents.HASHED
    whole = run.wholes.get(entry.item.message.body_hash) if cut else None
    return ViewedMessage(doc.title, doc.title_right, entry.item.message, sent, labels, note, wire, whole, gallery)


def _wire_of(call: CallState, run: RunState, position: int, sent: Message) -> str:
    """The message as it was sent, where the body is known message by message; else as it is handed over."""
    hashes = call.wire.messages if call.wire is not None else ()
    if (
        len(hashes) == sum(1 for entry in call.entries if entry.sent is not None)
        and hashes[position] in run.wire_bodies
    ):
        return run.wire_bodies[hashes[position]]
    return json.dumps(handed_over(sent), ensure_ascii=False)


def viewed_answer(call: CallState, gallery: Gallery) -> ViewedMessage:
    """The answer of the model."""
    assert call.answer is not None
    doc = documents.answer_doc(call)
    note = "The stream ended without a finish reason: the text may be cut." if call.partial else ""
    return ViewedMessage(doc.title, doc.title_right, call.answer, call.answer, note=note, gallery=gallery)


def viewed_tool(call: CallState, index: int, gallery: Gallery) -> ViewedMessage:
    """Returns the result of a tool call of this turn."""
    tool = call.tools[index]
    doc = documents.tool_doc(tool)
    message = Message("tool", documents.parts_of(tool))
    note = f"→ {flat(tool.tool)} {flat(tool.arguments, 300)}"
    return ViewedMessage(doc.title, doc.title_right, message, message, note=note, whole=tool.whole, gallery=gallery)
