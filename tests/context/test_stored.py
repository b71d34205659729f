"""Contexts and forecasts as wholes: each entry with what was done to it, why, and by which rule, as it is stored."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import astuple, replace

from tests.context.support import Conversation, alone, assembled, cascade, image, scope
from tests.context.test_cache import ANTHROPIC, EVERY, OPENAI, calls
from tests.context.test_entering import BROKEN, FIX, FIX_AGAIN, GATHER
from tests.support.stored import check_stored
from workbench.context.assembly import Assembly
from workbench.context.cache import CacheRule, PrefixCache, Price
from workbench.context.edits import difference
from workbench.context.injection import flattened
from workbench.context.message import Message, TextPart, ToolCall
from workbench.context.scope import PhaseScope
from workbench.context.wording import MOST_WORDS, paired_lines, passages

STORED = Path(__file__).parent / "stored"


def told(assembly: Assembly) -> list[str]:
    """A line for each entry, and the problems."""
    lines = []
    for entry in assembly.entries:
        why = " ".join(map(str, (entry.reason.code, *entry.reason.args)))
        text = "-" if entry.sent is None else json.dumps(entry.sent.text[:900], ensure_ascii=False)
        shown = f" +{len(entry.sent.images)}" if entry.sent is not None and entry.sent.images else ""
        facts = f"{entry.item.kind} {entry.item.source} {entry.action} ({why}) {entry.rule.path}:{entry.rule.line}"
        lines.append(f"{facts} {entry.tokens_full}>{entry.tokens_sent} {text}{shown}")
    lines += [f"problem: {problem}" for problem in assembly.problems]
    lines += [f"note: {note}" for note in assembly.notes]
    return [*lines, f"{assembly.tokens_full} > {assembly.tokens_sent} {assembly.grade}"]


STRATEGIES = (
    "selective",
    "selective+mask(after=1)",
    "selective+mask(after=2,window=2,step=2)",
    "selective+mask(after=1)+loop(limit=2)",
    "selective+loop(limit=0)",
    "selective+slide(turns=1)",
    "selective+clear(trigger=60,keep=1)",
    "selective+budget(max=90,reserve=0)",
    "selective+budget(max=90,reserve=10,mode=prune_oldest)",
    "selective+budget(max=40,reserve=0,mode=fail)",
    "selective+mask(after=1)+budget(max=60,reserve=0)",
)


def long_visit(*, native: bool) -> Conversation:
    """Two attempts, tools that fail, images, a person who speaks, a closing."""
    words = " ".join(f"word{n}" for n in range(20))
    talk = Conversation(native=native).task("Find the failure in the log.")
    talk.calls(("read_log", f"one {words}"), ("search", "two"), text="I look.").turn(2).hears("Hurry.")
    talk.calls(("read_log", f"three {words}"), errors=(0,)).turn(3, "Go on.")
    talk.calls(("draw", "drawn")).shows("draw", image("a"), image("b")).turn(4).says("It is the disk.")
    talk.retry("no json", "[Validation Failed]\nAnswer as JSON.").calls(("read_log", f"four {words}"))
    return talk.turn(2).calls(("search", f"five {words}")).closing()


def entering(**work: Any) -> PhaseScope:
    names = ("gather", "fix", "broken")
    more = {name: work.pop(name, {}) for name in names}
    file = work.pop("file", {})
    definition = cascade(*({"name": name, **more[name]} for name in names), {"name": "work", **work}, **file)
    visits = (GATHER, FIX, BROKEN, FIX_AGAIN)
    return scope(definition, input={"path": "a.log", "who": "Ünal"}, visits=visits)


ENTERING: tuple[dict[str, Any], ...] = (
    {},
    {"context": {}},
    {"context": {"from": ["all"], "exclude": ["broken"]}},
    {"context": {"from": ["first", "previous", "fix#1"], "include_input": False}},
    {"context": {"from": [{"phase": "gather", "include": ["output", "messages", "state", "images"]}]}},
    {"context": {"from": [{"phase": "gather", "include": ["messages"], "as_role": "system"}, "broken"]}},
    {"inject_from": ["fix", "gather"]},
    {"file": {"context_default": "snowball"}},
    {"file": {"context_default": "snowball"}, "gather": {"context_retention": "output_only"}},
    {"file": {"context_default": "snowball"}, "gather": {"context_ttl": {"tool_results": 1}}},
    {"file": {"context_default": "snowball"}, "fix": {"context_ttl": {"messages": 1}}, "inject_from": ["gather"]},
    {"fidelity": "summary:high", "gather": {"tool": "linux_shell", "inputs": {"command": "ls"}}},
    *(
        {"fidelity": level, **({"thread_id": "main"} if level == "full" else {})}
        for level in ("full", "truncate", "compact", "summary:low", "summary:medium", "summary:high")
    ),
)


def test_contexts_are_the_stored_ones() -> None:
    found: dict[str, Any] = {}
    for native in (True, False):
        talk, form = long_visit(native=native), "native" if native else "text"
        for spec in STRATEGIES:
            found[f"{form} {spec}"] = told(assembled(alone(), talk, strategy=spec))
    for fields in ENTERING:
        found[json.dumps(fields)] = told(assembled(entering(**fields), Conversation().task()))
    check_stored(STORED / "contexts.json", json.dumps(found, indent=1, ensure_ascii=False) + "\n")


PRICES: dict[str, Price] = {
    "openai": OPENAI,
    "anthropic": ANTHROPIC,
    "every token": EVERY,
    "no cache": Price(1e-6, 2e-6),
    "unknown": Price(),
    "own prompt": Price(1e-6, 2e-6, 1e-7, rule=CacheRule("xai", 64, 64, own=150)),
    "answers": Price(1e-6, 2e-6, 1e-7, rule=CacheRule("deepseek", 64, 1, 3600.0, answers=True)),
    "wide": Price(1e-6, 2e-6, 1e-7, rule=CacheRule("moonshot", 256, 256, 3600.0, seen=128, wide=True)),
    "marked": Price(1e-6, 2e-6, 1e-7, 2e-6, rule=CacheRule("bedrock", 64, writes=True, opt_in=True)),
}


def shown(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value) or "-"


def test_forecasts_are_the_stored_ones() -> None:
    """Of each rule: calls one second after the other, calls after the lifetime, what an answer stated, and misses."""
    found: dict[str, Any] = {}
    for name, price in PRICES.items():
        for spec in ("selective", "selective+mask(after=1)"):
            made = calls(spec, 4, tools="Tools: read_log.")
            for seconds, stated in ((1.0, None), (400.0, None), (1.0, 0), (1.0, 512)):
                cache, lines = PrefixCache(), []
                for number, assembly in enumerate(made):
                    one = cache.forecast(assembly, price, number * seconds)
                    lines.append(" ".join(map(shown, astuple(one))))
                    cache.sent(assembly, number * seconds)
                    if stated is not None:
                        cache.answered(assembly, stated, None)
                found[f"{name}, {spec}, each {seconds:g} s, {stated} stated"] = lines
    check_stored(STORED / "forecasts.json", json.dumps(found, indent=1, ensure_ascii=False) + "\n")


# -- functions of two sequences ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("", "", (0, "", "")),
        ("abc", "abc", (3, "", "")),
        ("abc", "axc", (1, "b", "x")),
        ("abc", "abxc", (2, "", "x")),
        ("abc", "ac", (1, "b", "")),
        ("aa", "a", (1, "a", "")),
        ("a", "aaa", (1, "", "aa")),
        ("", "a", (0, "", "a")),
        ("ab", "", (0, "ab", "")),
        ("abcd", "xbcy", (0, "abcd", "xbcy")),
    ],
)
def test_the_stretch_that_differs(old: str, new: str, expected: tuple[int, str, str]) -> None:
    items = {letter: Conversation().task(letter).items[0] for letter in {*old, *new}}
    at, before, after = difference([items[one] for one in old], [items[one] for one in new])
    said = ("".join(item.message.text for item in part) for part in (before, after))
    assert (at, *said) == expected


@pytest.mark.parametrize(
    ("old", "new", "most", "expected"),
    [
        ("abc", "abc", 9, "aa bb cc"),
        ("abcd", "axcd", 9, "aa b|x cc dd"),
        ("abcde", "abde", 9, "aa bb c|- dd ee"),
        ("ae", "abcde", 9, "aa -|b -|c -|d ee"),
        ("a12bcd3z", "axbycd4z", 9, "aa 1|x 2|- bb -|y cc dd 3|4 zz"),
        ("a12bz", "axbyz", 4, "aa 1|x 2|- bb -|y zz"),
        ("a12bz", "axbyz", 2, "aa 1|x 2|b b|y zz"),
        ("aa", "aaa", 9, "aa aa -|a"),
        ("", "ab", 9, "-|a -|b"),
        ("ab", "", 0, "a|- b|-"),
    ],
)
def test_lines_side_by_side(old: str, new: str, most: int, expected: str) -> None:
    """Equal lines are written without a bar; ``-`` is no line."""
    rows = []
    for a, b, same in paired_lines(old, new, most):
        left, right = old[a] if a >= 0 else "-", new[b] if b >= 0 else "-"
        rows.append(f"{left}{'' if same else '|'}{right}")
    assert " ".join(rows) == expected


@pytest.mark.parametrize(("words", "by_word"), [(MOST_WORDS, True), (MOST_WORDS + 1, False)])
def test_long_texts_are_compared_by_lines(words: int, by_word: bool) -> None:
    old = "a\n" * (words // 2) + "a" * (words % 2)
    found = passages(old, f"b{old[1:]}")
    assert [one.old for one in found][:1] == (["a"] if by_word else ["a\n"])


CALL = ToolCall("c1", "look", "")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (Message("user", "Hi."), Message("user", "Hi.")),
        (Message("user", "Hi.", name="Ada"), Message("user", "Hi.")),
        (Message("assistant", "A.", extra={"reasoning_content": "Hm."}), Message("assistant", "A.")),
        (Message("assistant", "", (CALL,)), Message("assistant", "[Called look with {}]")),
        (
            Message("assistant", "A. ", (CALL, CALL)),
            Message("assistant", "A.\n" + "\n".join(["[Called look with {}]"] * 2)),
        ),
        (
            Message("assistant", (TextPart("A."),), (CALL,)),
            Message("assistant", (TextPart("A."), TextPart("[Called look with {}]"))),
        ),
        (Message("tool", "a wall", (), "c1", "look"), Message("user", "[Tool result: look]\na wall")),
        (Message("tool", "a wall", (), "c1"), Message("user", "[Tool result: tool]\na wall")),
        (
            Message("tool", (TextPart("a wall"), image("a")), (), "c1", "look"),
            Message("user", (TextPart("[Tool result: look]"), TextPart("a wall"), image("a"))),
        ),
    ],
)
def test_what_enters_another_phase_holds_nothing_of_its_provider(before: Message, after: Message) -> None:
    item = Conversation().task().items[0]
    assert flattened(replace(item, message=before)) == after
