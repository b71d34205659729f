"""Files made to hurt: each gives a diagnostic in under a second, and never an exception."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable

import pytest

from workbench.language.load import load


def alias_bomb() -> str:
    lines = ["a: &a [x, x, x, x, x, x, x, x, x, x]"]
    for before, name in zip("abcdefgh", "bcdefghi", strict=True):
        lines.append(f"{name}: &{name} [{', '.join([f'*{before}'] * 10)}]")
    return "\n".join(lines)


HOSTILE: dict[str, tuple[str | bytes, str, str]] = {
    "alias bomb": (alias_bomb(), "f.yaml", "aliases expand beyond the limit"),
    "many aliases": ("a: &a x\nb: [" + "*a," * 200_000 + "]", "f.yaml", "aliases expand beyond the limit"),
    "recursive alias": ("a: &a\n  b: *a", "f.yaml", "an alias is inside the value that it names"),
    "recursive merge": ("&a {<<: *a}", "f.yaml", "an alias is inside the value that it names"),
    "brackets": ("[" * 100_000, "f.yaml", "too deep"),
    "brackets in JSON": ('{"a":' * 100_000, "f.json", "too deep"),
    "dashes": ("- " * 50_000, "f.yaml", "too deep"),
    "indentation": ("".join(" " * n + "a:\n" for n in range(1200)), "f.yaml", "too deep"),
    "complex keys": ("? " * 50_000, "f.yaml", "too deep"),
    "five megabytes": ("a: " + "x" * 5_000_000, "f.yaml", "too large: 5,000,003 bytes"),
    "many items": ("[" + "a," * 110_000 + "]", "f.yaml", "too large: more than 100,000 values"),
    "many items in JSON": ("[" + "1," * 110_000 + "1]", "f.json", "too large: more than 100,000 values"),
    "many keys": ("cascade_id: c\n" + "".join(f"k{i}: {i}\n" for i in range(20_000)), "f.yaml", "unknown key 'k0'"),
    "many documents": ("---\n" * 200_000, "f.yaml", "too large"),
    "many wrong phases": ("cascade_id: c\nphases: [" + "1," * 20_000 + "]", "f.yaml", "'phases[0]' must be a mapping"),
    "a long number": ("a: " + "9" * 100_000, "f.yaml", "too many digits"),
    "a long number in JSON": ('{"a": ' + "9" * 100_000 + "}", "f.json", "too many digits"),
    "comments in JSON": ("//\n" * 100_000, "f.json", "JSON has no comments"),
    "remarks without end in DOT": ("digraph g {" + "= =\n" * 300_000 + "}", "f.dot", "300 errors; what follows"),
    "quotes without end in DOT": ('digraph g { a [x="' + '\n\\"' * 100_000, "f.dot", "is never closed"),
    "brackets in DOT": ("digraph g {" + "a[{" * 300_000, "f.dot", "is never closed"),
    "values in DOT": ("digraph g { a -> b [" + "x=1," * 210_000 + "] }", "f.dot", "200,000 edges and attributes"),
    "edges in DOT": ("digraph g {" + "a->b;" * 210_000 + "}", "f.dot", "200,000 edges and attributes"),
    "defaults in DOT": ("digraph g {" + "".join(f"node[k{i}=1]" for i in range(30_000)), "f.dot", "more than 200 def"),
    "misspelt ids in DOT": (
        "digraph g { = \n"
        + "".join(f"node_{i};" for i in range(4_000))
        + "".join(f"x{i} -> node_{i};" for i in range(450)),
        "f.dot",
        "expected a statement",
    ),
    "a large graph in DOT": ("digraph g {" + "a" * (17 << 20), "f.dot", "the limit of a graph in DOT is 16,777,216"),
    "NUL": ("a: \0", "f.yaml", "U+0000 is not allowed"),
    "an escape sequence": ("a: \x1b[2J", "f.yaml", "U+001B is not allowed"),
    "half a surrogate pair": ("a: \ud800", "f.yaml", "not UTF-8 at byte 4"),
    "not UTF-8": (b"a: \xff", "f.yaml", "not UTF-8 at byte 4"),
}


PROOFS = {"values in DOT": pytest.mark.proof}
"""Their limit is that of the edges in DOT, which takes as long."""


@pytest.mark.fault("F18")
@pytest.mark.parametrize("name", [pytest.param(each, marks=PROOFS.get(each, ())) for each in HOSTILE])
def test_a_hostile_file_gives_a_diagnostic_and_takes_no_time_that_grows_with_it(name: str) -> None:
    text, file, message = HOSTILE[name]
    start = time.process_time()
    loaded = load(text, file)
    assert time.process_time() - start < 10
    assert any(message in problem.message for problem in loaded.problems)
    assert loaded.cascade is None
    assert len(loaded.problems) < 500


@pytest.mark.fault("F18")
def test_an_alias_bomb_is_refused_before_it_takes_memory() -> None:
    tracemalloc.start()
    load(alias_bomb(), "f.yaml")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 30_000_000


WHOLE = """\
cascade_id: desk
inputs_schema: {name: who is greeted}
phases:
  - name: look
    instructions: "Read for {{ input.name }} — exactly."
    tackle: [read_file]
    handoffs: [{target: answer, description: when all is read}]
  - name: answer
    instructions: |
      Greet them.
    context: {from: [look]}
"""


@pytest.mark.fault("F15")
def test_a_file_cut_at_any_byte_is_read_or_refused_at_a_line() -> None:
    data = WHOLE.encode()
    for cut in range(len(data)):
        loaded = load(data[:cut], "f.yaml")
        assert loaded.cascade is not None or loaded.problems, cut
        assert all(problem.span.line >= 1 for problem in loaded.problems), cut
    assert load(data, "f.yaml").problems == ()


@pytest.mark.parametrize(
    ("nested", "file", "most"),
    [
        (lambda levels: f"a: {'[' * levels}{']' * levels}", "f.yaml", 99),
        (lambda levels: "".join(f"{' ' * level}a:\n" for level in range(levels)), "f.yaml", 99),
        (lambda levels: f'{{"a": {"[" * levels}{"]" * levels}}}', "f.json", 99),
        (lambda levels: f"digraph g {{ {'subgraph x {' * levels}{'}' * levels} }}", "f.dot", 100),
    ],
)
def test_the_deepest_file_is_read_and_a_deeper_one_is_not(nested: Callable[[int], str], file: str, most: int) -> None:
    deep = [[one.message for one in load(nested(levels), file).problems] for levels in (most, most + 1)]
    assert ["too deep: more than 100 levels" in messages for messages in deep] == [False, True]
