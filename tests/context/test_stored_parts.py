"""Small values of contexts as wholes: cards and menus, images by their headers, strategies of files and specs, and what
a task of a decomposition sees."""

from __future__ import annotations

import base64
import json
import re
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

from msgspec.structs import asdict

from tests.context.support import Conversation, assembled, cascade, image
from tests.engine.test_decompositions import job, task
from tests.support.stored import check_stored
from workbench.context.assembly import Item, Kind
from workbench.context.cards import Menu, card_of, embedded_text, has_card, is_long
from workbench.context.message import Message, TextPart, ToolCall
from workbench.context.pictured import pictured, sniff
from workbench.context.place import Place
from workbench.context.placeholder import cut, shortened, without_images
from workbench.context.scope import Arrival, PhaseScope, VisitRecord
from workbench.context.strategy import SpecError, Strategy, completed, parse, strategy_facts, with_named
from workbench.engine.definition import Definition

STORED = Path(__file__).parent / "stored"
AT = Place("", "research", 2, 1, 3, 1)


def check(name: str, found: Any) -> None:
    check_stored(STORED / f"{name}.json", json.dumps(found, indent=1, ensure_ascii=False) + "\n")


# -- cards -------------------------------------------------------------------------------------------------------------

LONG = "The disk is full. It fills by night, says the log! " * 5
CALLED = '```json\n{"tool": "read", "arguments": {"path": "a"}}\n```'


def item(text: str, kind: Kind = Kind.ANSWER, role: str = "assistant", tool: str = "", **more: Any) -> Item:
    failed = more.pop("failed", False)
    return Item(Message(role, text, **more), kind, more.pop("place", AT), tool, failed)  # type: ignore[arg-type]


ITEMS = (
    item("  Two  words.\n"),
    item(LONG),
    item("word " * 60),
    item("w" * 250),
    item("x" * 200),
    item("x" * 201),
    item(f"Look.\n{CALLED}"),
    item(f"Look.\n{CALLED[:-3]}"),
    item("", tool_calls=(ToolCall("1", "search", "{}"), ToolCall("2", "read", "{}"))),
    item(""),
    Item(Message("user", (image("a"), image("b"))), Kind.IMAGES, AT, "draw"),
    item("[Tool result: read]\nok", Kind.RESULT, "user", "read"),
    item("[Tool result: read]\n", Kind.RESULT, "user", "read"),
    item("[Tool error: read]\nno such file " + "y" * 200, Kind.RESULT, "user", "read", failed=True),
    item("ok", Kind.RESULT, "tool", "", name="named", tool_call_id="c"),
    item("ok", Kind.RESULT, "tool", "", tool_call_id="c"),
    item("z" * 100, Kind.RESULT, "tool", "read"),
    item("z" * 101, Kind.RESULT, "tool", "read"),
    item("a line of a log\n" * 20, Kind.RESULT, "tool", "read"),
    item(json.dumps({f"key{n}": "x" * 50 for n in range(5)}), Kind.RESULT, "tool", "read"),
    item(json.dumps({f"{'key' * 20}{n}": "x" * 50 for n in range(7)}), Kind.RESULT, "tool", "read"),
    item(json.dumps(list(range(1200))), Kind.RESULT, "tool", "read"),
    item("[" * 150, Kind.RESULT, "tool", "read"),
    item("{not json " * 20, Kind.RESULT, "tool", "read"),
    item("Be brief.", Kind.TASK, "system"),
    item("the input", Kind.INPUT, "user"),
    item("carried in", Kind.INJECTED, "user"),
    Item(Message("user", "The task."), Kind.TASK, Place("", "plan", 1)),
)


def test_cards_and_menus_are_the_stored_ones() -> None:
    cards = [card_of(one, 1000 + at, "proof" if at % 9 == 1 else "") for at, one in enumerate(ITEMS)]
    menu = Menu("Tell. " * 900, tuple(cards[:6]), (0.5,) * 6, 12345, 1234, "small")
    found: dict[str, Any] = {}
    for card, one in zip(cards, ITEMS, strict=True):
        facts = {name: value for name, value in asdict(card).items() if name not in ("content_hash", "role")}
        found[f"{len(found)} {one.message.role} {one.message.text[:24]}"] = {
            "label": card.label,
            "card": " ".join(map(str, facts.values())),
            "offered": has_card(one),
            "long": is_long(one),
            "embedded": len(embedded_text(one.message)),
        }
    told = [message.text for message in menu.messages({cards[0].content_hash: "Written by a model."})]
    found["menu"] = [menu.digest, told[0], len(told[1]), *told[1][-900:].splitlines()]
    check("cards", found)


# -- images ------------------------------------------------------------------------------------------------------------


def riff(kind: bytes, body: bytes) -> bytes:
    return b"RIFF" + struct.pack("<I", 4 + 8 + len(body)) + b"WEBP" + kind + struct.pack("<I", len(body)) + body


PNG = b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", 640, 480)
FRAME = b"\xff\xc2\x00\x11\x08" + struct.pack(">HH", 300, 400) + b"\x03"
EXIF = b"\xff\xe1\x00\x06EXIF"
IMAGES: dict[str, bytes] = {
    "png": PNG,
    "png of no width": PNG.replace(struct.pack(">I", 640), bytes(4)),
    "png cut in its size": PNG[:-1],
    "png of another chunk": PNG.replace(b"IHDR", b"IDAT"),
    "gif 87": b"GIF87a" + struct.pack("<HH", 7, 9),
    "gif 89": b"GIF89a" + struct.pack("<HH", 700, 900),
    "gif cut": b"GIF89a\x07",
    "jpeg": b"\xff\xd8" + FRAME,
    "jpeg with a segment": b"\xff\xd8" + EXIF + FRAME,
    "jpeg with filling": b"\xff\xd8" + EXIF + b"\xff\xff" + FRAME,
    "jpeg with restarts": b"\xff\xd8\xff\xd0\xff\xd7\xff\xd8\xff\x01" + FRAME,
    "jpeg with an arithmetic table": b"\xff\xd8\xff\xcc\x00\x04ab" + FRAME,
    "jpeg with a Huffman table": b"\xff\xd8\xff\xc4\x00\x04ab" + FRAME,
    "jpeg with an end first": b"\xff\xd8\xff\xd9\x00\x02" + FRAME,
    "jpeg without a frame": b"\xff\xd8" + EXIF * 2,
    "jpeg cut in its frame": b"\xff\xd8" + FRAME[:8],
    "jpeg that ends with its frame": b"\xff\xd8" + FRAME[:9],
    "jpeg of other bytes": b"\xff\xd8\xff\xe1\x00\x02AB" + FRAME,
    "webp extended": riff(b"VP8X", b"\x10\0\0\0" + (1023).to_bytes(3, "little") + (66_000).to_bytes(3, "little")),
    "webp lossless": riff(b"VP8L", b"\x2f" + struct.pack("<I", 639 | 479 << 14 | 1 << 28)),
    "webp lossless without its sign": riff(b"VP8L", b"\x2e" + struct.pack("<I", 639 | 479 << 14)),
    "webp lossy": riff(b"VP8 ", b"\0\0\0\x9d\x01\x2a" + struct.pack("<HH", 640 | 1 << 14, 480 | 2 << 14)),
    "webp lossy without its sign": riff(b"VP8 ", b"\0\0\0\x9d\x01\x2b" + struct.pack("<HH", 640, 480)),
    "webp of another chunk": riff(b"ALPH", bytes(20)),
    "webp cut": riff(b"VP8L", b"\x2f"),
    "riff of another kind": riff(b"VP8X", bytes(10)).replace(b"WEBP", b"WAVE"),
    "other": b"<svg/>",
}


def test_what_the_first_bytes_of_an_image_say() -> None:
    found = {name: asdict(size) if (size := sniff(data)) else None for name, data in IMAGES.items()}
    check("images", {name: " ".join(map(str, one.values())) if one else None for name, one in found.items()})


def url(data: bytes, kind: str = "png") -> str:
    return f"data:image/{kind};base64,{base64.b64encode(data).decode()}"


def sized(width: int) -> str:
    return url(PNG.replace(struct.pack(">I", 640), struct.pack(">I", width)))


def test_messages_with_images_are_written_like_the_stored_ones() -> None:
    written = image("a")
    messages = {
        "two and one again": Message("user", f"A {url(PNG)}, B {sized(5)}, A {url(PNG)}."),
        "no image, not base64": Message("user", f"{url(b'<svg/>', 'svg+xml')} data:image/png;base64,AAAAA {PNG[:3]!r}"),
        "of a model": Message("assistant", url(PNG)),
        "beside a part": Message("user", (TextPart(f"A {url(PNG)}"), written, TextPart("b")), name="Ada"),
        "more than are sent": Message("user", " ".join(sized(number) for number in range(1, 23))),
        "no url": Message("user", "data:image/ is none"),
    }
    found: dict[str, Any] = {}
    for name, message in messages.items():
        kept: list[int] = []
        made = pictured(message, lambda _, data, kept=kept: kept.append(len(data)))  # type: ignore[misc]
        found[name] = {
            "sent": [part.text[-200:] if isinstance(part, TextPart) else str(part) for part in parts(made)][:4],
            "parts": len(parts(made)),
            "kept": len(kept),
            "same": made is message,
            "name": made.name,
        }
    link = f"see {url(PNG)} there"
    for limit in (3, 4, 9, len(link) - 7, len(link) - 6, len(link) - 5):
        found[f"cut to {limit}"] = cut(link, limit)
    two = Message("assistant", (TextPart("abcdef"), written, TextPart("abc"), image("b")))
    for limit in (2, 3, 5, 6):
        found[f"shortened to {limit}"] = [str(getattr(one, "text", "image")) for one in parts(shortened(two, limit))]
    found["without a"] = [str(getattr(one, "text", "image")) for one in parts(without_images(two, [written.digest]))]
    found["without images"] = [str(getattr(one, "text", "image")) for one in parts(without_images(two))]
    found["texts alone"] = without_images(Message("user", (TextPart("a"), TextPart("b")))).content
    check("pictured", found)


def parts(message: Message) -> list[Any]:
    return [TextPart(message.content)] if isinstance(message.content, str) else list(message.content)


# -- strategies --------------------------------------------------------------------------------------------------------

SPECS = """\
selective; selective:1; snowball+; +mask; mask(; mask(after; mask(after=; mask(after=3; mask(); mask(after=3 window=2)
mask(after=[1; mask(after=[1,2]); mask(after=x); mask(after=-1); mask(aft=1); mask(after=1,after=2); mask(1,2,3,4,5,6,7)
slide; slide(0); slide:2:3; Mask; budget(mode=fall); budget(max=9,reserve=10); budget(max=9); budget(warn=2)
budget(max=none); selective+snowball; mask+mask; auto; auto(strategy=llm); auto(strategy=[llm,heuristic])
entities(full=false); fidelity(level=compact); inject+slide(turns=2)+budget(max=9,reserve=0); loop(limit=none)
clear; clear(trigger=1_000,keep=0);; a-b; lean ; laen; wide+mask"""
FILES: tuple[tuple[dict[str, Any], dict[str, Any]], ...] = (
    ({}, {}),
    ({"strategy": "lean"}, {"strategies": {"lean": "mask(2)+budget(max=9,reserve=0)", "wide": "snowball"}}),
    ({"strategy": "slide(1)", "intra_context": {"window": 9}}, {"strategy": "snowball", "token_budget": {}}),
    ({"context": {"from": ["first"]}, "intra_context": {"step": 2}}, {"strategy": "budget(max=5,reserve=1)"}),
    ({"inject_from": ["first"]}, {"auto_context": {"inter_phase": {"strategy": "heuristic"}}}),
    ({"context": {"mode": "auto", "anchors": {"from": ["first"]}}}, {"auto_context": {"inter_phase": {}}}),
    ({"fidelity": "compact"}, {"default_fidelity": "truncate"}),
    ({}, {"default_fidelity": "summary:low", "token_budget": {"max_total": 5, "strategy": "prune_oldest"}}),
)  # fmt: skip


def told(strategy: Strategy) -> str:
    """The spec, what it is known by, which fields it makes void, and where in the file its fields stand."""
    written = [f"{one.NAME}.{field} by {path}" for one in strategy.parts for field, path in one.written.items()]
    known = f"{strategy.name!r} " if strategy.name else ""
    whole = " whole" if strategy.whole else ""
    return f"{strategy} {known}void {','.join(strategy.void_fields) or '-'}{whole}; {'; '.join(written)}"


def read_spec(spec: str, read: Callable[[str], Strategy]) -> str:
    try:
        return told(read(spec))
    except SpecError as fault:
        return str(fault)


def test_strategies_are_the_stored_ones() -> None:
    lines = []
    of_file = with_named({"lean": "mask(2)", "wide": "snowball+loop"})
    for spec in re.split("; |\n|;", SPECS):
        facts = strategy_facts(spec)
        given = ["", spec, read_spec(spec, parse), read_spec(spec, of_file)]
        lines += [*given[: 3 + (given[2] != given[3])], f"{facts.void} {sorted(facts.reads)} {facts.fits}"]
    for phase, fields in FILES:
        definition = cascade({"name": "first"}, {"name": "work", **phase}, **fields)
        of = definition.phases[1]
        strategy = Strategy.of(definition, of)
        again = Strategy.of(definition, of, ("phases", 9), Arrival())
        assert strategy == again
        assert hash(strategy) == hash(again)
        assert strategy != parse("slide(turns=77)")
        lines += ["", json.dumps([phase, fields]), told(strategy), told(again)]
        lines += [
            told(parse(over).over(strategy)) for over in ("mask(after=7)", "snowball", "budget(max=77,reserve=0)")
        ]
    for begun in ("", "ma", "mask", "mask(", "mask(after=1,", "snowball+sl", "mask)", "none("):
        lines += ["", f"{begun} …", " ".join(completed(begun))]
    check_stored(STORED / "strategies.txt", "\n".join(line.rstrip() for line in lines) + "\n")


# -- tasks of a decomposition ------------------------------------------------------------------------------------------

OUTPUT = """\
# One
first

more
```
# no heading
```
## Two

second
again

third
###no heading
~~~
### in a fence
"""
OWN = [
    {"entity_name": "A", "grounded_value": "1", "intent_relevance": "constraint"},
    {"entity_name": "B", "grounded_value": "2", "intent_relevance": "partial", "usage_note": "note"},
    {"entity_name": "C", "grounded_value": "3 and more words"},
]
OF_JOB = [
    {"entity": "A", "type": "size", "grounded_value": "4"},
    {"entity": "D", "type": "size", "grounded_value": "5 or 6"},
    {"entity": "D", "grounded_value": "7"},
    {"entity": "E", "grounded_value": "8", "intent_relevance": "constraint"},
]
PROMPT = "Do b with <result of task inside>."
GIVEN = [{"task_id": "given", "output": "The output that the file states.", "summary": "Its summary."}]
CONFIGS: tuple[tuple[dict[str, Any], dict[str, Any]], ...] = (
    ({}, {}),
    ({"include_all": True, "filter_by_relevance": "medium"}, {"max_output_length": 5}),
    ({"include_all": True, "include_entity_type": False}, {"max_output_length": 5, "summarize_strategy": "none"}),
    ({"filter_by_relevance": "high"}, {"max_output_length": 30, "summarize_strategy": "extract_key_sections"}),
    ({"filter_by_relevance": "low"}, {"max_output_length": 90, "summarize_strategy": "extract_key_sections"}),
    ({"include_all": True, "filter_by_relevance": "high"}, {"include_full_output": False}),
)


def test_tasks_of_a_decomposition_see_the_stored_contexts() -> None:
    found: dict[str, Any] = {}
    for entities, outputs in CONFIGS:
        document = job(
            task("a"),
            task("given"),
            task("gone"),
            task("inside"),
            task("b", "a", "given", "gone", "inside", prompt=PROMPT, entity_context=OWN, dependency_outputs=GIVEN),
            entities=OF_JOB,
            entity_context_config=entities,
            dependency_config=outputs,
        )
        definition = Definition.of(json.dumps(document), "job.json")
        index, phase = next((at, one) for at, one in enumerate(definition.cascade.phases) if one.name == "b")
        arrival = Arrival(graph=definition.graph)
        strategy = Strategy.of(definition.cascade, phase, arrival=arrival)
        visits = (
            VisitRecord("wave1", "a", 1, "success", "an older output"),
            VisitRecord("wave1", "a", 2, "partial_success", OUTPUT),
            VisitRecord("wave1", "gone", 1, "failed", "nothing of it"),
            VisitRecord("wave1", "inside", 1, "success", "stands in the prompt"),
        )
        scope = PhaseScope(
            definition.cascade,
            phase,
            index,
            model="offline",
            line_of=lambda path: 10 * len(path),
            place=Place("", "b", 1),
            visits=visits,
            graph=definition.graph,
        )
        entry = assembled(scope, Conversation("b").task("Do b with it."), strategy=strategy).entries[0]
        assert entry.sent is not None
        found[json.dumps([entities, outputs])] = {
            "strategy": str(strategy),
            "entry": f"{entry.action} {entry.reason} {entry.rule} {entry.tokens_full} {entry.tokens_sent}",
            "text": entry.sent.text.splitlines(),
            "parts": [
                f"{one.origin} {one.action} ({one.reason}) {one.tokens_full}>{one.tokens_sent}" for one in entry.parts
            ],
        }
    check("entities", found)
