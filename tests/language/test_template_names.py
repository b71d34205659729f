"""What a template refers to, known without rendering it."""

from __future__ import annotations

import pytest

from workbench.language.templates.names import names_used


def uses(template: str) -> list[tuple[str, int, int, bool]]:
    return [(use.text, use.line, use.column, use.guarded) for use in names_used(template).uses]


def test_names_come_with_their_places_in_order() -> None:
    assert uses("{{ input.a }}\n  {{ outputs['look'].x[0] }}") == [
        ("input.a", 1, 4, False),
        ("outputs.look.x[0]", 2, 6, False),
    ]
    assert names_used("{{ input.a }}{{ state.b }}").roots == {"input", "state"}


def test_names_that_the_template_makes_itself_are_not_from_outside() -> None:
    assert uses("{% for x in input.list %}{{ x.y }}{{ loop.index }}{% endfor %}") == [("input.list", 1, 13, False)]
    assert uses("{% set y = 1 %}{{ y }}{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1) }}{{ range(3) }}") == []


@pytest.mark.parametrize(
    "template",
    [
        "{{ input.b | default('x') }}",
        "{{ input.b is defined }}",
        "{% if input.b is undefined %}x{% endif %}",
    ],
)
def test_maybe_is_known_as_maybe(template: str) -> None:
    assert [guarded for *_, guarded in uses(template)] == [True]


def test_what_a_condition_found_defined_is_sure_below_it_alone() -> None:
    template = "{% if state.k is defined %}{{ state.k.z }}{% else %}{{ state.k }}{% endif %}{{ state.k }}"
    assert [guarded for *_, guarded in uses(template)] == [True, True, False, False]
    assert [guarded for *_, guarded in uses("{{ state.k.z if state.k else '' }}")] == [True, False]
    assert [guarded for *_, guarded in uses("{% if state.k and state.k.z %}{% endif %}")] == [False, True]


def test_an_attribute_worked_out_at_run_time_ends_the_path() -> None:
    first, second = names_used("{{ outputs[input.which].x }}").uses
    assert (first.path, second.path) == (("outputs",), ("input", "which"))


def test_unknown_filters_and_tests_have_their_places() -> None:
    names = names_used("{{ a | upper | uper }}\n{{ b is oddd }}")
    assert [(word.name, word.line, word.column) for word in names.unknown_filters] == [("uper", 1, 16)]
    assert [(word.name, word.line, word.column) for word in names.unknown_tests] == [("oddd", 2, 6)]
    assert names.roots == {"a", "b"}


def test_comparisons_with_constants_are_listed_from_the_side_of_the_name() -> None:
    found = names_used("{% if turn == 1 or 2 < turn %}x{% endif %}").comparisons
    assert [(c.path, c.operator, c.constant, c.column) for c in found] == [
        (("turn",), "eq", 1, 7),
        (("turn",), "gt", 2, 24),
    ]


@pytest.mark.parametrize(
    ("template", "line", "column"), [("{{ a b }}", 1, 6), ("x\n{% if %}", 2, 7), ("{{ 'a }}", 1, 4)]
)
def test_a_syntax_error_has_its_place(template: str, line: int, column: int) -> None:
    fault = names_used(template).fault
    assert fault is not None
    assert (fault.line, fault.column) == (line, column)


def test_what_stands_beside_a_broken_tag_is_read() -> None:
    found = names_used("{{ oops( }} {{ a.b | nofilter }}\n{% if %}{{ c }}{% endif %} {{ 1 + }}{{ d }}")
    assert found.fault is not None
    assert [(one.line, one.column) for one in (found.fault, *found.further)] == [(1, 10), (2, 7), (2, 35)]
    assert [(use.text, use.line, use.column) for use in found.uses] == [("a.b", 1, 16), ("c", 2, 12), ("d", 2, 40)]
    assert [(word.name, word.column) for word in found.unknown_filters] == [("nofilter", 22)]


@pytest.mark.parametrize(
    ("template", "faults", "uses"),
    [
        ("{% for x in %}{{ x }}{{ a }}{% else %}{{ b }}{% endfor %}{{ c }}", [(1, 13)], ["a", "b", "c"]),
        ("{% set x = %}{{ x }}{{ a }}", [(1, 12)], ["a"]),
        ("{% set x %}{{ x }}{{ a }}", [(1, 4)], ["a"]),
        ("{% macro m(x %}{{ x }}{% endmacro %}{{ m(a) }}", [(1, 14)], ["a"]),
        ("{% nothing of it %}{{ a }}", [(1, 4)], ["a"]),
        ("{% for x in a %}{{ x }}\n{{ b }}", [(1, 4)], ["b"]),
        ("{% for x in a %}{{ x }}{% endif %}{{ b }}", [(1, 27)], ["b"]),
        ("{% if a %}{% for x in b %}{{ c }}{% endif %}{{ d }}", [(1, 37)], ["a", "c", "d"]),
        ("{% if a %}{{ b }}{% else %}{{ c }}{% endfi %}", [(1, 38)], ["b", "c"]),
        ("{% endfor %}{{ a }}", [(1, 4)], ["a"]),
        ("{% elif a %}{{ b }}{% if %}{{ c }}{% elif %}{{ d }}{% endif %}", [(1, 4), (1, 26), (1, 43)], ["b", "c", "d"]),
        ("{{ a b }}{{ c\nso {{ d }}", [(1, 6), (2, 1)], ["d"]),
        ("{{ a }}{% if b\n{{ c }}", [(1, 8)], ["a", "c"]),
        ("{{}}{{ a }}{{\n( }}{{ b }}", [(1, 3), (2, 3)], ["a", "b"]),
        ("{# {{ #}{% raw %}{{ x( }}{% endraw %}{{ a( }}{{ b }}", [(1, 44)], ["b"]),
    ],
)
def test_a_broken_tag_does_not_hide_what_stands_around_it(
    template: str, faults: list[tuple[int, int]], uses: list[str]
) -> None:
    found = names_used(template)
    assert found.fault is not None
    assert [(one.line, one.column) for one in (found.fault, *found.further)] == faults
    assert [use.text for use in found.uses] == uses


def test_an_expression_without_its_end_is_named() -> None:
    fault = names_used("{{ a }}{% if b\n{{ c }}").fault
    assert fault is not None
    assert fault.message == "'{%' is never closed: %} is missing"


@pytest.mark.parametrize(
    ("template", "guarded"),
    [
        ("{% if not state.k %}{% else %}{{ state.k }}{% endif %}", [False, True]),
        ("{% if state.k is undefined %}{% else %}{{ state.k }}{% endif %}", [True, True]),
        ("{% if state.k == 'x' %}{{ state.k }}{% else %}{{ state.k }}{% endif %}", [False, True, False]),
        ("{% if state.k != 'x' %}{{ state.k }}{% else %}{{ state.k }}{% endif %}", [False, False, True]),
        ("{% if state.k in ['x', 'y'] %}{{ state.k }}{% endif %}", [False, True]),
        ("{% if 'x' in state.k %}{{ state.k }}{% endif %}", [False, True]),
        ("{% if 'k' in state %}{{ state.k }}{{ state.l }}{% endif %}", [False, True, False]),
        ("{% if 'k' not in state %}{{ state.k }}{% else %}{{ state.k }}{% endif %}", [False, False, True]),
        ("{% if state.k | length > 2 %}{{ state.k }}{% endif %}", [False, True]),
        ("{% if state.k | length >= 0 %}{{ state.k }}{% endif %}", [False, False]),
        ("{% if state.k | trim | length %}{{ state.k }}{% endif %}", [False, True]),
        (
            "{% if state.k > 3 %}{{ state.k }}{% elif state.l %}{{ state.l }}{{ state.k }}{% endif %}",
            [False, True, False, True, False],
        ),
        ("{% if not state.k %}{% elif state.k.z %}{{ state.k.z }}{% endif %}", [False, True, True]),
        ("{% if state.k is string %}{{ state.k }}{% endif %}", [False, True]),
        ("{% if state.k is not none %}{{ state.k }}{% endif %}", [False, False]),
        ("{% if state.k or state.l %}{{ state.k }}{% endif %}", [False, False, False]),
        ("{% if state.k or state.l %}{{ state.k or state.l }}{% endif %}", [False, False, False, True]),
        ("{% if state.k or state.l %}{{ state.l or state.k }}{% endif %}", [False, False, False, True]),
        ("{{ state.k or state.l if state.m and (state.k or state.l) }}", [False, True, False, False, False]),
        (
            "{% if state.k or state.l or state.m %}{{ state.k or state.l or state.m }}{% endif %}",
            [False, False, False, False, False, True],
        ),
        ("{% if state.k and state.l or state.k %}{{ state.k }}{% endif %}", [False, False, False, True]),
        ("{% if not state.k or state.k.z %}{% endif %}", [False, True]),
        ("{% if state.k.z %}{{ state.k.y }}{% endif %}", [False, True]),
        ("{{ 'none' if not state.k else state.k }}", [False, True]),
        ("{% if state.k == state.l %}{{ state.k }}{% endif %}", [False, False, False]),
    ],
)
def test_a_name_is_sure_where_the_condition_would_come_out_otherwise_without_it(
    template: str, guarded: list[bool]
) -> None:
    assert [sure for *_, sure in uses(template)] == guarded


@pytest.mark.parametrize(
    ("template", "tested"),
    [
        ("{{ state.k or 'x' }}", [True]),
        ("{{ (state.k or 'x') | upper }}", [True]),
        ("{{ 1 if state.k == 'x' else state.l }}", [True, False]),
        ("{% if state.k | length > 2 and state.l in ['a'] %}{% endif %}", [True, True]),
        ("{% if f(state.k) %}{% endif %}", [False, False]),
        ("{% for x in state.k or [] %}{% endfor %}", [True]),
        ("{{ state.k }}{{ state.k == 1 }}", [False, False]),
    ],
)
def test_what_a_condition_asks_for_may_be_missing(template: str, tested: list[bool]) -> None:
    assert [use.tested for use in names_used(template).uses] == tested
