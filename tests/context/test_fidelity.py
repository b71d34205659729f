"""What ``fidelity`` lets a phase see: the literal preambles, their budgets, and the threads of ``full``."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.context.histories import TEXTS, Visit, scopes, stages, visits
from tests.context.support import Conversation, WordCounter, assemble_all, assembled, cascade, scope, texts
from workbench.context.assembler import Assembler
from workbench.context.assembly import Action, Assembly
from workbench.context.place import Place
from workbench.context.scope import Arrival, PhaseScope, StateWrite, VisitRecord
from workbench.context.strategy import SpecError, Strategy, parse

MODES = ("truncate", "compact", "summary:low", "summary:medium", "summary:high")
BUDGETS = {"truncate": 100, "compact": 500, "summary:low": 600, "summary:medium": 1500, "summary:high": 3000}
DEFINITION = cascade(
    {"name": "look"},
    {"name": "fix", "rules": {"loop_until": "tests", "max_attempts": 4}},
    {"name": "work"},
    {"name": "tell"},
    cascade_id="repair",
    description="Make the\n  build green.",
)
LOOK = Conversation("look", native=True).task().calls(("read_log", "crash"), ("search", "12")).turn(2).says("Crashed.")
FIX = Conversation("fix").task("Fix it.").says("No.").retry("tests fail").says("Yes.")
VISITS = (
    replace(LOOK.record("It crashed\n  at noon."), seq=10, seconds=3.25),
    replace(FIX.record("Patched."), seq=20, seconds=61.0),
    replace(Conversation("fix", 2).task("Fix it.").record(status="failed"), seq=30, reason="no answer had any text"),
)
WRITES = (
    StateWrite("files", ["a.py"], 5, Place("", "look", 1)),
    StateWrite("internal.retries", 3, 6, Place("", "look", 1)),
    StateWrite("score", {"ok": True, "n": 2}, 15, Place("", "fix", 1)),
    StateWrite("outcome", "x", 16, Place("", "fix", 1)),
    StateWrite("files", ["b.py"], 25, Place("", "fix", 2)),
)
GOLDEN = {
    "truncate": "Pipeline: repair\nGoal: Make the build green.\nRun ID: run-7\nCurrent stage: work",
    "compact": """## Pipeline State

- Pipeline: repair
- Goal: Make the build green.
- Completed stages: look (success), fix (success), fix#2 (fail)
- Current stage: work
- Key context values:
  - score: {"ok": true, "n": 2}
  - files: ["b.py"]""",
    "summary:low": """Pipeline "repair" stage 3 of 4. Goal: Make the build green.
Completed: look, fix, fix#2. Last outcome: fail.""",
    "summary:medium": """## Pipeline Progress

Pipeline: repair
Goal: Make the build green.
Stage: work (3/4)

### Recent Activity
- look: success — It crashed at noon.
- fix: success — Patched.
- fix#2: fail — no answer had any text

### Active Context
- score: {"ok": true, "n": 2}
- files: ["b.py"]""",
    "summary:high": """## Pipeline State (Comprehensive)

Pipeline: repair
Goal: Make the build green.
Stage: work (3/4)

### Execution History
- look: success — It crashed
  at noon.
  Tools used: read_log, search
  Duration: 3.2 s
- fix: success — Patched.
  Duration: 61.0 s
- fix#2: fail — no answer had any text

### Full Context
{
  "score": {
    "ok": true,
    "n": 2
  },
  "files": [
    "b.py"
  ]
}

### Retry Information
- fix: 1/3""",
}


def repairing(**fields: Any) -> PhaseScope:
    return scope(DEFINITION, "work", **{"visits": VISITS, "writes": WRITES, "run_id": "run-7", **fields})


def seen(where: PhaseScope, spec: str = "") -> Assembly:
    return assembled(where, Conversation().task(), strategy=spec)


def preamble(where: PhaseScope, spec: str) -> str:
    """The one message that precedes the task."""
    role_and_text, task = texts(seen(where, spec))
    assert task == ("user", "Find the failure.")
    assert role_and_text[0] == "user"
    return role_and_text[1]


@pytest.mark.parametrize("mode", MODES)
def test_each_mode_has_its_literal_form(mode: str) -> None:
    assert preamble(repairing(), f"fidelity:{mode}") == GOLDEN[mode]


def test_sections_without_items_and_an_unknown_goal_are_left_out() -> None:
    where = replace(repairing(visits=(), writes=()), cascade=DEFINITION.model_copy(update={"description": None}))
    assert preamble(where, "fidelity:summary:high") == (
        "## Pipeline State (Comprehensive)\n\nPipeline: repair\nStage: work (1/4)"
    )
    assert preamble(where, "fidelity:summary:low") == 'Pipeline "repair" stage 1 of 4.'


def test_values_are_cut_by_the_mode() -> None:
    where = repairing(writes=(StateWrite("long", "v" * 900, 1),))
    compact, medium, high = (preamble(where, f"fidelity:{m}") for m in ("compact", "summary:medium", "summary:high"))
    assert f'  - long: "{"v" * 198}…' in compact
    assert f'- long: "{"v" * 498}…' in medium
    assert f'"long": "{"v" * 900}"' in high


def test_the_preamble_stands_behind_the_tool_text() -> None:
    found = texts(seen(repairing(tool_text="## Tools"), "fidelity:truncate"))
    assert [role for role, _ in found] == ["system", "user", "user"]
    assert found[1][1] == GOLDEN["truncate"]


# -- budgets ---------------------------------------------------------------------------------------------------------


def crowded(stages: int = 200) -> PhaseScope:
    """A run of many stages, each with notes, tools, a state key and a retry."""
    names = [f"s{n}" for n in range(stages)]
    definition = cascade(*({"name": name} for name in names), {"name": "work"}, description="Reach the end.")
    done = [
        VisitRecord("", name, 1, "success", f"note of {name} " * 8, seq=10 * n + 5, attempts=2, seconds=1.0)
        for n, name in enumerate(names)
    ]
    writes = [StateWrite(f"k{n}", f"value {n}", 10 * n, Place("", name, 1)) for n, name in enumerate(names)]
    return scope(definition, "work", visits=tuple(done), writes=tuple(writes), run_id="r")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("budget", [None, 40, 7, 5])
def test_no_budget_is_ever_exceeded(mode: str, budget: int | None) -> None:
    where = crowded()
    spec = f"fidelity(mode={mode})" if budget is None else f"fidelity(mode={mode},budget={budget})"
    entry = next(e for e in seen(where, spec).entries if e.item.source == "preamble")
    assert entry.tokens_sent <= (budget or BUDGETS[mode])
    if budget is None:
        assert entry.action is Action.INJECTED


def test_the_oldest_items_go_first_whatever_their_section_and_each_is_shown() -> None:
    assembly = seen(crowded(), "fidelity(mode=compact)")
    (entry, _) = assembly.entries
    dropped = [part for part in entry.parts if part.action is Action.DROPPED]
    rest, names = int(dropped[0].origin.partition(" ")[0]), [part.origin for part in dropped[1:]]
    oldest = [source for n in range(200) for source in (f"state.k{n}", f"s{n}.stage")]
    assert dropped[0].origin == f"{rest} items before them"
    assert [part.origin for part in entry.parts[1:]] == oldest[rest:]
    names = oldest[: rest + len(names)]
    assert len(dropped) == 101
    assert rest + 100 == len(names) < 400
    assert {(part.reason, part.tokens_sent) for part in dropped} == {("budget 500: oldest first", 0)}
    assert {str(part.action) for part in entry.parts[len(dropped) :]} == {"kept"}
    assert all(part.tokens_full > 0 for part in entry.parts[1:])
    text = texts(assembly)[0][1]
    values, stages_left_out = (len(names) + 1) // 2, len(names) // 2
    assert f"- Completed stages: ({stages_left_out} earlier items left out), s{stages_left_out} (success)" in text
    assert f"- Key context values:\n  - ({values} earlier items left out)\n  - k{values}:" in text
    assert f"fidelity compact: {len(names)} of 400 items left out, budget 500" in assembly.notes


def test_a_goal_that_is_too_long_is_cut() -> None:
    long = DEFINITION.model_copy(update={"description": "goal " * 300})
    entry = next(e for e in seen(replace(repairing(), cascade=long), "fidelity:truncate").entries if e.sent)
    assert entry.action is Action.TRUNCATED
    assert entry.sent is not None
    assert 90 < entry.tokens_sent <= 100
    assert entry.sent.text.startswith("Pipeline: repair\nGoal: goal goal")
    assert entry.sent.text.endswith("…\nRun ID: run-7\nCurrent stage: work")


def test_full_takes_no_budget() -> None:
    with pytest.raises(SpecError, match="full has no preamble"):
        parse("fidelity(mode=full,budget=5)")


# -- which mode, which thread ----------------------------------------------------------------------------------------


def chosen(came_from: str = "look", handoff: Any = None, **fields: Any) -> str:
    phase: dict[str, Any] = {key: fields.pop(key) for key in ("fidelity", "context", "inject_from") if key in fields}
    handoffs = [{"target": "work", "fidelity": handoff}] if handoff else ["work"]
    definition = cascade({"name": "look", "handoffs": handoffs}, {"name": "work", **phase}, **fields)
    return str(Strategy.of(definition, definition.phases[1], ("phases", 1), Arrival(came_from)))


def test_the_handoff_wins_over_the_phase_and_the_phase_over_the_cascade() -> None:
    everything: dict[str, Any] = {"handoff": "full", "fidelity": "truncate", "default_fidelity": "compact"}
    assert chosen(**everything) == "fidelity(mode=full)"
    assert chosen(**{**everything, "handoff": None}) == "fidelity(mode=truncate)"
    assert chosen(default_fidelity="compact") == "fidelity(mode=compact)"
    assert chosen("", **everything) == "fidelity(mode=truncate)"


def test_without_any_level_the_rules_of_context_apply() -> None:
    assert chosen() == "selective"
    assert chosen(context_default="snowball") == "snowball"


def test_the_own_context_of_a_phase_wins() -> None:
    assert chosen(handoff="full", context={"from": ["all"]}) == "selective"
    assert chosen(default_fidelity="full", inject_from=["all"]) == "inject"


def test_what_did_not_decide_is_told() -> None:
    definition = cascade({"name": "a"}, {"name": "work", "fidelity": "truncate"}, default_fidelity="summary:low")
    assembly = seen(scope(definition, "work"))
    assert assembly.notes == ("fidelity truncate by phase (default_fidelity: summary:low)",)
    assert assembly.entries[0].rule.path == "phases[1].fidelity"


def threaded(*phases: dict[str, Any], done: tuple[VisitRecord, ...], **fields: Any) -> Assembly:
    """What a phase ``work`` with fidelity full sees after these visits; ``work``: more fields of the phase."""
    work = {"name": "work", "fidelity": "full", **fields.pop("work", {})}
    return seen(scope(cascade(*phases, work), "work", visits=done, **fields))


A = Conversation("a", native=True).task("Do a.").calls(("t", "found"), text="Calling.").turn(2).says("Did a.")
B = Conversation("b").task("Do b.").says("Wrong.").retry("no").says("Did b.")
TOOLS = ({"type": "function", "function": {"name": "t", "parameters": {}}},)


def test_a_named_thread_goes_on_with_whole_turns_and_without_failed_attempts() -> None:
    named = {"thread_id": "t1", "fidelity": "full"}
    assembly = threaded(
        {"name": "a", **named}, {"name": "b", **named}, done=(A.record(), B.record()), work=named, tools=TOOLS
    )
    assert [(m.role, m.text, len(m.tool_calls)) for m in assembly.request.messages] == [
        ("user", "Do a.", 0),
        ("assistant", "Calling.", 1),
        ("tool", "found", 0),
        ("assistant", "Did a.", 0),
        ("user", "Do b.", 0),
        ("user", "Try again.", 0),
        ("assistant", "Did b.", 0),
        ("user", "Find the failure.", 0),
    ]
    assert assembly.problems == ()
    assert [e.reason.code for e in assembly.entries if e.sent is None] == ["earlier_attempt"]
    assert 'thread "t1" by phase (phase before: b): a, b' in assembly.notes


def test_calls_that_the_phase_cannot_make_become_text() -> None:
    assembly = threaded({"name": "a", "thread_id": "x"}, done=(A.record(),), work={"thread_id": "x"})
    assert texts(assembly)[1:3] == [
        ("assistant", 'Calling.\n[Called t with {"path": "a.log"}]'),
        ("user", "[Tool result: t]\nfound"),
    ]
    assert "thread \"x\": calls of 'a' are text, 't' is not offered here" in assembly.notes


def test_reasoning_of_another_model_does_not_go_on() -> None:
    thinking = Conversation("a", native=True).task("Do a.").calls(("t", "found"), thinking=["deep"]).turn(2).says("ok")
    for model, kept in (("other", 0), ("offline", 1)):
        visit = replace(thinking.record(), model=model)
        found = threaded({"name": "a", "thread_id": "x"}, done=(visit,), work={"thread_id": "x"}, tools=TOOLS)
        assert sum(bool(message.extra) for message in found.request.messages) == kept
        assert found.problems == ()


def test_the_preamble_of_an_earlier_visit_belongs_to_its_thread() -> None:
    visit = replace(B.record(), preamble="## Pipeline State")
    found = threaded({"name": "b", "fidelity": "compact", "thread_id": "x"}, done=(visit,), work={"thread_id": "x"})
    assert texts(found)[0] == ("user", "## Pipeline State")


def test_a_thread_that_nobody_names_is_that_of_the_phase_before_and_empty() -> None:
    full = {"fidelity": "full"}
    found = threaded({"name": "a", **full}, {"name": "b", **full}, done=(A.record(), B.record()))
    assert texts(found) == [("user", "Find the failure.")]
    assert 'thread "b" by phase before: new, empty' in found.notes
    assert threaded(done=()).notes == ("thread: none is named, and no phase came before: new, empty",)


def test_phase_and_handoff_stand_in_the_opposite_order_for_threads() -> None:
    b = {"name": "b", "handoffs": [{"target": "work", "thread_id": "of_handoff"}], "thread_id": "of_phase"}
    by_phase = threaded(b, done=(B.record(),), work={"thread_id": "of_phase"})
    by_handoff = threaded(b, done=(B.record(),))
    assert 'thread "of_phase" by phase (handoff: of_handoff, phase before: b): b' in by_phase.notes
    assert 'thread "of_handoff" by handoff (phase before: b): new, empty' in by_handoff.notes


def test_a_phase_that_follows_its_context_rules_is_on_a_thread_only_by_name() -> None:
    first = {"name": "a", "context": {"from": []}}
    done = (A.record(), replace(A.record(), phase="b"))
    assert "a" not in [e.item.source.split(".")[0] for e in threaded(first, {"name": "b"}, done=done).entries]


# -- claims about all of them ----------------------------------------------------------------------------------------

SPECS = st.sampled_from([*(f"fidelity:{mode}" for mode in MODES), "fidelity:full", "fidelity(mode=compact,budget=30)"])


@st.composite
def furnished(draw: st.DrawFn) -> PhaseScope:
    """A random scope with state and, half of the time, one thread for all phases."""
    where = draw(scopes())
    writes = tuple(StateWrite(key, draw(TEXTS), n) for n, key in enumerate(draw(st.lists(st.sampled_from("abc")))))
    where = replace(where, writes=writes)
    if not draw(st.booleans()):
        return where
    phases = tuple(phase.model_copy(update={"thread_id": "all"}) for phase in where.cascade.phases)
    return replace(where, cascade=where.cascade.model_copy(update={"phases": phases}), phase=phases[where.index])


@given(furnished(), visits(), SPECS)
def test_every_request_is_valid_deterministic_and_the_same_from_scratch(
    where: PhaseScope, visit: Visit, spec: str
) -> None:
    assembler = Assembler(where, parse(spec), WordCounter())
    for place, fresh, so_far in stages(visit):
        for item in fresh:
            assembler.add(item)
        grown = assembler.assemble(place)
        assert grown.problems == ()
        assert grown.entries == assemble_all(where, parse(spec), WordCounter(), so_far, place).entries
        fixed = grown.tools_tokens + grown.overhead_tokens
        assert fixed + sum(entry.tokens_sent for entry in grown.entries) == grown.tokens_sent
