"""Templates in a process of their own: what they give is what is given here, and what they take is limited."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.language.templates.names import TemplateFault
from workbench.language.templates.sandbox import SANDBOX, CheckedText
from workbench.language.templates.template import Rendered, Renderer
from workbench.tools.templates.child import RenderLimits
from workbench.tools.templates.worker import ApartRenderer

NAMES: dict[str, Any] = {
    "input": {"a": 1, "items": ["x", "é", "\ud800"], "big": "a" * 900_000, "n": 2.5, "none": None, "b": True},
    "outputs": {"look": "a \x1b[31mcrash", "deep": {"k": [1, {"z": []}]}},
}
SLOW = "first\n{% for i in range(100000) %}{% if input.big.count('ab') %}{% endif %}{% endfor %}"
LARGE = (
    "first\n{% set all = namespace(a=[]) %}{% for i in range(319) %}"
    "{% set all.a = [all.a, range(i * 100000, (i + 1) * 100000)|list] %}{% endfor %}"
)
LONG = "{{ input.a|abs }}" * 1_500
"""Takes its time while it is read, before any of its lines runs."""
HARMLESS = "{{ input.items|length }}"


@pytest.fixture(scope="module")
def apart() -> Iterator[ApartRenderer]:
    renderer = ApartRenderer()
    yield renderer
    renderer.close()


def outcome(render: Any, template: str, names: dict[str, Any]) -> Rendered | tuple[str, int, int]:
    try:
        found: Rendered = render(template, names)
    except TemplateFault as fault:
        return fault.message, fault.line, fault.column
    return found


@pytest.mark.parametrize(
    "template",
    [
        "plain",
        "{{ input.a }} {{ outputs['look'] }} {{ nope.x }}",
        "{% for i in input.items %}{{ loop.index }}{{ i|upper }}{{ i.center(9) }}{% endfor %}{{ input.b.c|lower }}",
        "{{ outputs|tojson }} {{ input.n * 2 }} {{ input.none is none }} {{ input.b }}",
        "{% macro m(a) %}[{{ a }}]{% endmacro %}{{ m(input.a) }}",
        "a\n{{ 'x' ~ nope }}",
        "{{ 'a b c d'|wordwrap(2)|urlencode }} {{ '\\N{BULLET}' }} {{ 1234567|filesizeformat }}",
        "a\n  {{ 1 / 0 }}",
        "a\n{{ 1 + }}",
        "{{ input.__class__ }}",
        "\n\n{{ 'A' * 300000000 }}",
        "{% macro m() %}{{ m() }}{% endmacro %}\n{{ m() }}",
        "{{ input.items|nofilter }}",
        "{{ '%s'|format(outputs.deep) }}{{ input.items|join(nope) }}",
    ],
)
def test_a_worker_gives_the_texts_the_undefined_names_and_the_faults_that_this_process_gives(
    apart: ApartRenderer, template: str
) -> None:
    assert outcome(apart, template, NAMES) == outcome(Renderer(), template, NAMES)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)


@given(VALUES)
def test_every_value_arrives_as_it_is(apart: ApartRenderer, value: Any) -> None:
    template = "{{ [v]|tojson }}{{ v|string }}{% for i in v if v is iterable %}{{ i }},{% endfor %}"
    assert outcome(apart, template, {"v": value}) == outcome(Renderer(), template, {"v": value})


ANSWER = CheckedText('```json\n{"title": "T", "items": [{"n": 1}, {"n": 2}], "a b": 3}\n```', {
    "title": "T", "items": [{"n": 1}, {"n": 2}], "a b": 3})  # fmt: skip


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("{{ outputs.p }}", str(ANSWER)),
        ("{{ outputs.p.title }}", "T"),
        ("{{ outputs['p']['a b'] }}{{ outputs.p['items'][1].n }}", "32"),
        ("{% for one in outputs.p.items %}{{ one.n }},{% endfor %}", "1,2,"),
        ("{% for key in outputs.p.keys() %}{{ key }},{% endfor %}", "title,items,a b,"),
        ("{{ state.output_p.title }}{{ outputs.p.upper()[:6] }}", "T```JSO"),
        ("{{ outputs.p | length }}{{ outputs.p is string }}{{ 'T' in outputs.p }}", f"{len(ANSWER)}TrueTrue"),
        ("{{ outputs.p.none | default('no such key') }}", "no such key"),
        ("{{ outputs.list[1] }}{{ outputs.list | upper }}", "b[A, B]"),
        ("{{ outputs.p.__class__ }}", ""),
        ("{{ outputs.p.value }}", ""),
    ],
)
def test_a_checked_answer_is_its_text_and_has_the_keys_of_its_value(
    apart: ApartRenderer, template: str, text: str
) -> None:
    names = {"outputs": {"p": ANSWER, "list": CheckedText("[a, b]", ["a", "b"])}, "state": {"output_p": ANSWER}}
    here, there = outcome(Renderer(), template, names), outcome(apart, template, names)
    assert here == there
    assert (here.text if isinstance(here, Rendered) else "") == text


def test_text_that_is_put_in_needs_no_worker() -> None:
    renderer = ApartRenderer()
    assert renderer("Look at {{ input.items }} {{ outputs['look'] }}.", NAMES).text.startswith("Look at ['x'")
    assert renderer.pid is None


@pytest.mark.fault("F19")
def test_a_template_that_takes_too_long_is_ended_with_its_line_and_the_next_one_is_rendered() -> None:
    renderer = ApartRenderer(RenderLimits(cpu_s=0.1))
    assert outcome(renderer, SLOW, NAMES) == ("it takes more than 0.1 seconds of computing", 2, 35)
    assert outcome(renderer, LONG, NAMES) == ("it takes more than 0.1 seconds of computing", 1, 1)
    assert renderer(HARMLESS, NAMES).text == "3"
    renderer.close()


@pytest.mark.fault("F19")
def test_a_template_that_takes_too_much_memory_is_ended_and_its_worker_with_it() -> None:
    renderer = ApartRenderer(RenderLimits(memory_bytes=100 << 20))
    assert outcome(renderer, LARGE, NAMES) == ("it needs more than 100 MB of memory", 2, 44)
    assert renderer.pid is None
    assert renderer(HARMLESS, NAMES).text == "3"
    renderer.close()


@pytest.mark.fault("F19")
def test_a_worker_that_stands_still_is_killed() -> None:
    renderer = ApartRenderer()
    renderer(HARMLESS, NAMES)
    stuck = renderer.pid
    assert stuck is not None
    os.kill(stuck, signal.SIGSTOP)
    renderer.limits = RenderLimits(wall_s=0.1)
    assert outcome(renderer, HARMLESS, NAMES) == ("it gave no text within 0.1 seconds", 1, 1)
    assert not Path(f"/proc/{stuck}").exists()


@pytest.mark.fault("F19")
def test_a_worker_that_somebody_killed_between_two_templates_is_started_again() -> None:
    renderer = ApartRenderer()
    renderer(HARMLESS, NAMES)
    first = renderer.pid
    assert first is not None
    os.kill(first, signal.SIGKILL)
    os.waitid(os.P_PID, first, os.WEXITED | os.WNOWAIT)
    assert renderer(HARMLESS, NAMES).text == "3"
    assert renderer.pid != first
    renderer.close()


def test_a_worker_knows_no_variable_and_can_open_nothing() -> None:
    renderer = ApartRenderer()
    renderer(HARMLESS, NAMES)
    process = Path(f"/proc/{renderer.pid}")
    assert (process / "environ").read_bytes() == b""
    assert sorted(each.name for each in (process / "fd").iterdir()) == ["0", "1", "2"]
    limits = {line[:25].strip(): line[25:].split()[:2] for line in (process / "limits").read_text().splitlines()}
    assert limits["Max open files"] == ["3", "3"]
    assert limits["Max file size"] == limits["Max processes"] == limits["Max core file size"] == ["0", "0"]
    assert limits["Max address space"] == [str(512 << 20)] * 2
    # The kernel ends what never comes back to Python: after twice the limit and up to two seconds more.
    ticks = sum(map(int, (process / "stat").read_text().rpartition(")")[2].split()[11:13]))
    assert 1 < int(limits["Max cpu time"][0]) - ticks / os.sysconf("SC_CLK_TCK") - 2 * renderer.limits.cpu_s < 2.02
    renderer.close()
    assert not process.exists()


@pytest.mark.parametrize(
    "word",
    [f"|{name}" for name in sorted(SANDBOX.filters)]
    + [f" is {name}" for name in sorted(SANDBOX.tests) if name.isidentifier()],
)
def test_every_filter_and_test_gives_apart_what_it_gives_here(apart: ApartRenderer, word: str) -> None:
    """Among them those that import something when they are first used, which the worker cannot do any more."""
    names = {"given": {"text": "<b>a</b> &amp; c", "list": [{"a": 1}, {"a": 2}], "number": 3}}
    here = Renderer()
    for value in names["given"]:
        for arguments in ("", "(1)", "('a')", "('a', 'b')"):
            template = f"{{{{ given.{value}{word}{arguments} }}}}"
            theirs, ours = (outcome(render, template, names) for render in (apart, here))
            assert re.sub(r"0x\w+", "", str(theirs)) == re.sub(r"0x\w+", "", str(ours)), template
