"""Documents of the detail pane: a message, the reason of an entry with its line in the file, the wire, an event."""

from __future__ import annotations

import json
import re
from collections.abc import Container, Iterable

from workbench.context.assembly import Action, Entry
from workbench.context.message import Image, Message, Part, TextPart
from workbench.context.reasons import explain, origin, turns_before
from workbench.engine.journal.event import Event
from workbench.engine.journal.parts import CallState, ToolState, VisitState
from workbench.engine.journal.state import RunState
from workbench.json_text import pretty
from workbench.views import syntax
from workbench.views.answer import CUT_OFF, answered_by
from workbench.views.cells import Span, flat
from workbench.views.keys import told
from workbench.views.numbers import count, plural, seconds
from workbench.views.picture import Gallery, Picture
from workbench.views.side_by_side import SideRows
from workbench.views.signs import sign
from workbench.views.text import HEAD_AND_TAIL, Paint, TextLine, TextRows, text_lines
from workbench.views.tree import visit_status
from workbench.views.words import copy_of

HASHED = 1_000_000
"""Characters of a message beyond which its hash is left out: it takes longer than a key may."""


def message_lines(
    message: Message,
    token: str = "plain",
    *,
    whole: bool = False,
    gallery: Gallery | None = None,
    lines: int = 0,
    typeset: bool = False,
) -> list[TextLine]:
    """A message as it reads: its text, ``typeset`` with its Markdown drawn; its images by size and hash, and drawn
    where there is a gallery that can, in at most so many lines (0: as many as a pane has); its tool calls with their
    arguments."""
    made: list[TextLine] = []
    if message.text and token == "plain":
        made = written_lines(message.text, typeset=typeset, whole=whole)
    elif message.text:
        made = text_lines(message.text, token, whole=whole)
    made += image_lines(message.images, gallery, lines)
    for call in message.tool_calls:
        if made:
            made.append(TextLine(""))
        made.append(TextLine(f"→ {flat(call.name)}", "assistant"))
        made += text_lines(pretty(call.arguments), whole=whole, paint=syntax.json)
    return made


def image_lines(images: Iterable[Image], gallery: Gallery | None, lines: int = 0) -> list[TextLine]:
    """Each image by type, size and hash; drawn below that, if a gallery can."""
    made: list[TextLine] = []
    for image in images:
        size = f"{image.width}×{image.height} " if image.width else ""
        made.append(TextLine(f"[{flat(image.media_type)} {size}{image.size:,} bytes {image.digest[:8]}]", "accent"))
        if gallery is not None and gallery.enabled:
            made.append(TextLine("", block=Picture(image, gallery, lines or gallery.lines)))
    return made


def markdown_line(text: str) -> TextLine:
    """A text in Markdown, drawn."""
    from workbench.views.markdown import MarkdownBlock  # Rich's Markdown: 60 ms, and few texts need it

    return TextLine("", block=MarkdownBlock(text))


def painter(text: str) -> Paint | None:
    """Colours for a JSON text; None for a text that only begins like JSON."""
    if text.lstrip()[:1] not in ("{", "[") or text.rstrip()[-1:] not in ("}", "]") or len(text) > 2 * HEAD_AND_TAIL:
        return None
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return None
    return syntax.json


def pretty_value(value: object) -> str:
    """A JSON value indented; text as it is."""
    return value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False, default=str)


def _why(call: CallState, entry: Entry) -> str:
    """Returns the decision about the message, and the reason, which often says both."""
    words = reason(call, entry)
    return words if words.startswith(f"{entry.action}:") else f"{entry.action}: {words}"


def message_doc(
    call: CallState,
    index: int,
    *,
    full: bool,
    whole: bool = False,
    gallery: Gallery | None = None,
    typeset: bool = False,
) -> TextRows:
    """An entry as the model saw it, or in full; ``typeset``: Markdown of an answer is drawn."""
    entry = call.entries[index]
    message = entry.item.message if (full and not is_composed(entry)) or entry.sent is None else entry.sent
    differs = entry.sent is not None and entry.sent != entry.item.message and not is_composed(entry)
    lines: list[TextLine] = []
    token = "plain"
    if entry.sent is None:
        lines += [TextLine(f"Not sent: {reason(call, entry)}", "faint"), TextLine("")]
        token = "dim"
    elif differs and not full:
        token = "placeholder"
        lines += [
            *message_lines(message, token, whole=whole, gallery=gallery),
            TextLine(""),
            TextLine(told("{why}. Press {view.full} for the full text.", why=_why(call, entry)), "dim"),
        ]
        return TextRows(lines, *_entry_title(index, entry, full=full), copy=message.text)
    elif differs:
        sent, full_size = count(entry.tokens_sent, entry.grade), count(entry.tokens_full, entry.grade)
        lines += [TextLine(f"The model saw {sent} of these {full_size} tokens.", "masked"), TextLine("")]
    drawn = is_drawn(entry)
    lines += message_lines(message, token, whole=whole, gallery=gallery, typeset=typeset and drawn)
    title, facts = _entry_title(index, entry, full=full)
    return TextRows(lines, title, (*_how(typeset=typeset), *facts) if drawn else facts, copy=copy_of(message))


def is_drawn(entry: Entry) -> bool:
    """Returns whether an entry is an answer of the model that went out as it was, with Markdown to be drawn."""
    message = entry.item.message
    return message.role == "assistant" and entry.sent == message and is_markdown(message.text)


def _how(*, typeset: bool) -> tuple[Span, ...]:
    """How a text with Markdown is shown the other way."""
    return ((told("{view.full} as written  " if typeset else "{view.full} Markdown  "), "faint"),)


def sides_doc(call: CallState, index: int, *, gallery: Gallery | None = None) -> SideRows | None:
    """An entry in full beside what the model saw of it; None if the two are equal, if nothing was sent, and for a
    message that was composed: it was sent in full."""
    entry = call.entries[index]
    if entry.sent is None or entry.sent == entry.item.message or is_composed(entry):
        return None
    left = message_lines(entry.item.message, gallery=gallery)
    right = [
        *message_lines(entry.sent, "placeholder", gallery=gallery),
        TextLine(""),
        TextLine(f"{_why(call, entry)}.", "dim"),
    ]
    full, went = count(entry.tokens_full, entry.grade), count(entry.tokens_sent, entry.grade)
    labels = (f"in full · {full} tokens", f"as sent · {went} tokens")
    return SideRows((left, right), labels, *_entry_title(index, entry, full=True), copy_of(entry.item.message))


def is_composed(entry: Entry) -> bool:
    """Returns whether a message was put together of parts: what was sent is all of it, and holds more than its own
    text."""
    return bool(entry.parts) and entry.action is Action.INJECTED and entry.sent is not None


def reason(call: CallState, entry: Entry) -> str:
    return explain(entry, call.place, turns_before(call.entries, call.place))


def _entry_title(index: int, entry: Entry, *, full: bool) -> tuple[tuple[Span, ...], tuple[Span, ...]]:
    message = entry.sent if entry.sent is not None and is_composed(entry) else entry.item.message
    where = origin(entry)
    title: tuple[Span, ...] = (
        (f"{index + 1} {message.role}", "title"),
        (f"  {flat(where)}", "name"),
    )
    cut = entry.sent is not None and entry.sent != message
    tokens = f"{count(entry.tokens_full, entry.grade)} tokens"
    facts = [
        f"{count(entry.tokens_sent, entry.grade)} of {tokens} sent" if cut and not full else tokens,
        f"{len(message.text):,} chars",
    ]
    if len(message.text) <= HASHED:
        facts.append(message.body_hash[:8])
    if entry.item.redacted:
        facts.insert(0, plural(entry.item.redacted, "secret") + " replaced")
    if cut and full:
        facts.insert(0, "in full")
    return title, ((" · ".join(facts), "dim"),)


def answer_doc(call: CallState, *, whole: bool = False, typeset: bool | None = None) -> TextRows:
    """The answer of the model. ``typeset``: its Markdown is drawn, or not, and which key changes that is said."""
    assert call.answer is not None
    drawn = typeset is not None and is_markdown(call.answer.text)
    lines = message_lines(call.answer, whole=whole, typeset=bool(typeset)) or [TextLine("(no text)", "faint")]
    if call.partial:
        lines = [
            TextLine("The stream ended without a finish reason: the text may be cut.", "warning"),
            TextLine(""),
            *lines,
        ]
    facts = [f"out {count(call.usage.output)}", call.finish_reason, seconds(call.duration_s)]
    return TextRows(
        lines,
        (("Answer", "title"), (f"  {flat(answered_by(call))}", "name"), *_by_hand(call.edited)),
        (*(_how(typeset=bool(typeset)) if drawn else ()), (" · ".join(flat(fact) for fact in facts if fact), "dim")),
        copy=copy_of(call.answer),
    )


def _by_hand(edited: bool) -> tuple[Span, ...]:
    return ((f"  {sign('edited')[0]} edited by hand", "changed"),) if edited else ()


def streaming_doc(text: str, tick: int) -> TextRows:
    """An answer that is still coming in."""
    return TextRows(text_lines(text), (("Answer", "title"), ("  coming in ", "name"), sign("running", tick)), copy=text)


def parts_of(tool: ToolState) -> tuple[Part, ...]:
    """A tool's result as the parts of a message."""
    return (TextPart(tool.text), *tool.pictures)


def tool_doc(
    tool: ToolState,
    *,
    whole: bool = False,
    gallery: Gallery | None = None,
    asking: Container[int] = (),
    over: bool = False,
) -> TextRows:
    """A tool call of this turn and what came of it. ``asking``: the numbers of those that wait for a person; ``over``:
    the run has ended."""
    token = "error" if tool.status == "failed" else "plain"
    lines = [
        TextLine(f"→ {flat(tool.tool)}", "assistant"),
        *text_lines(pretty(tool.arguments), paint=syntax.json),
        TextLine(""),
    ]
    if tool.status == "running":
        if over:
            lines.append(TextLine(CUT_OFF, "warning"))
        elif tool.index in asking:
            lines.append(TextLine(told("It waits for your answer: {run.answer} answers."), "waiting"))
        else:
            lines.append(TextLine("running", "running"))
    else:
        lines += text_lines(tool.text, token, whole=whole, paint=painter(tool.text))
        lines += image_lines(tool.pictures, gallery)
    if tool.whole is not None:
        kept = told("{list.open}, then {message.all}.")
        lines += [TextLine(""), TextLine(f"All {tool.whole.chars:,} characters are kept: {kept}", "masked")]
    facts = [seconds(tool.duration_s), tool.sandbox, plural(tool.images, "image") if tool.images else ""]
    return TextRows(
        lines,
        (("Tool", "title"), (f"  {flat(tool.tool)}", "name"), *_by_hand(tool.edited)),
        ((" · ".join(flat(fact) for fact in facts if fact), "dim"),),
        copy=tool.text,
    )


def visit_doc(visit: VisitState, run: RunState) -> TextRows:
    """A visit without a model call: the tool that it ran, and what came of it."""
    status, over = visit_status(run, visit), run.status != "running"
    lines = [TextLine(f"{status}: {flat(visit.reason)}" if visit.reason else status, "bold")]
    for tool in visit.tool_tries:
        lines += [TextLine(""), *tool_doc(tool, asking=run.asked_by(tool.place), over=over).lines]
    if visit.output and not any(tool.text == visit.output for tool in visit.tool_tries):
        lines += [TextLine(""), TextLine("output", "head"), *text_lines(visit.output, paint=painter(visit.output))]
    return TextRows(lines, (("Phase", "title"), (f"  {flat(visit.phase)}", "name")), copy=visit.output)


def tools_doc(call: CallState, run: RunState) -> TextRows:
    """The native tool definitions that went along."""
    schemas = run.tool_schemas.get(call.tools_hash, [])
    text = json.dumps(schemas, indent=2, ensure_ascii=False)
    title = (("Tools", "title"), (f"  {plural(len(schemas), 'definition')}", "name"))
    return TextRows(text_lines(text, paint=syntax.json), title, ((count(call.tools_tokens, call.grade), "dim"),))


def event_doc(event: Event) -> TextRows:
    """One event of the journal."""
    text = json.dumps(event.to_json(), indent=2, ensure_ascii=False, default=str)
    title = (("Event", "title"), (f"  {event.seq} {flat(event.kind)}", "name"))
    return TextRows(text_lines(text, paint=syntax.json), title, ((flat(event.at), "dim"),))


def output_lines(run: RunState | None, *, typeset: bool = False, whole: bool = False) -> list[TextLine]:
    """The output of the run, then each phase's last output, the newest first. ``typeset``: Markdown is drawn."""
    if run is None:
        return []
    blocks: list[tuple[str, str]] = []
    outputs = [(label, text) for label, text in reversed(run.outputs.items()) if text.strip()]
    if run.finished:
        same = outputs and outputs[0][1] == run.output
        blocks.append((f"the run, from {outputs[0][0]}" if same else "the run", run.output or "(nothing)"))
        outputs = outputs[1:] if same else outputs
    lines: list[TextLine] = []
    for label, output in [*blocks, *outputs]:
        if lines:
            lines.append(TextLine(""))
        lines += [TextLine(flat(label), "head"), *written_lines(output, typeset=typeset, whole=whole)]
    return lines


def outputs_doc(run: RunState | None, *, typeset: bool, whole: bool = False) -> TextRows:
    """The outputs of a run as a document; its copy is what was written, below the names of the phases."""
    raw = output_lines(run, whole=whole)
    marked = run is not None and is_typeset(run)
    words = told("{view.full} shows it as written" if typeset else "{view.full} draws its Markdown")
    return TextRows(
        output_lines(run, typeset=True, whole=whole) if marked and typeset else raw,
        (("Output", "title"),),
        ((words, "dim"),) if marked else (),
        empty=("No phase has output yet.",),
        copy="\n".join(line.text for line in raw),
    )


def is_typeset(run: RunState) -> bool:
    """Returns whether an output of the run has Markdown to be drawn."""
    return any(map(is_markdown, (run.output, *run.outputs.values())))


TYPESET = 8_000
"""Characters of Markdown that are typeset while a key is pressed; 20,000 take a fifth of a second."""
_MARKDOWN = re.compile(
    r"^ {0,3}(?:#{1,6} +\S|```|~~~|\|?[ :]*-{3,}[ :]*\|[-| :]*$)|\*\*\S|^--- \S.*\n\+\+\+ \S"
    r"|(?:^ {0,3}(?:[-*+]|\d{1,3}[.)]) +\S.*\n+){2}",
    re.MULTILINE,
)
"""A heading, a fence, the line below the head of a table; something bold; a diff; two points of a list."""


def is_markdown(text: str) -> bool:
    """Returns whether a text begins like Markdown: a plain text is to stay as it is, JSON has colours of its own."""
    start = text[: 2 * TYPESET]
    return _MARKDOWN.search(start + "\n") is not None and painter(text) is None


def written_lines(text: str, *, typeset: bool, whole: bool = False) -> list[TextLine]:
    """What a model wrote, for reading: with ``typeset`` Markdown is drawn, of a long text its beginning."""
    if not typeset or not is_markdown(text):
        return text_lines(text, whole=whole, paint=painter(text))
    if len(text) <= TYPESET:
        return [markdown_line(text)]
    end = _end_of_part(text)
    left = f"From here on as it is written: {len(text) - end:,} more characters."
    return [
        *([markdown_line(text[:end])] if end else []),
        TextLine(left, "dim"),
        TextLine(""),
        *text_lines(text[end:].lstrip("\n"), whole=whole),
    ]


def _end_of_part(text: str) -> int:
    """Returns where the last paragraph ends that is typeset: at an empty line outside of code; 0 if there is none."""
    at, end, fence = 0, 0, ""
    for line in text[:TYPESET].splitlines(keepends=True):
        mark = line.lstrip()[:3]
        if mark in ("```", "~~~") and fence in ("", mark):
            fence = "" if fence else mark
        if not line.strip() and not fence:
            end = at
        at += len(line)
    return end
