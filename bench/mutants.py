"""Do the tests see a mistake? Samples mutants of the program and runs the tests that run their lines.

    python -m bench.tested_lines                                          # once: which tests run which lines
    python -m bench.mutants --seed 7 --count 60
    python -m bench.mutants --seed 7 --count 20 --path workbench/importers
    python -m bench.mutants --count 99 --path workbench/cli/printer.py --function _row --tests tests/cli/test_output.py

A mutant is the program with one small mistake: a comparison, a constant, a condition, a sum, a returned value, an
argument or a statement is another one or missing. The sample follows from the seed and the tree. The tests of a mutant
are those that run its line by the record of ``bench.tested_lines``, as many as took 40 seconds: those that name its
function and whose files are named like its module first, then the quickest. Tests that the record lacks are chosen by
the words that they share with the function: then a survivor is to be tried again with the tests of its subject, which
``--tests`` names. They run within limits of time and memory, in forks of one process (``bench.forked_mutants``).
A mutant that no test fails under is a survivor; survivors that change nothing anybody can see are listed in
``bench/equivalent_mutants.txt`` by the key that is printed, and are not counted. The exit code is 1 where more than 4 %
survive.
"""

from __future__ import annotations

import argparse
import ast
import json
import math
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from bench.forked_mutants import PLAN, VERDICTS, end_family, watched
from bench.tested_lines import TestedLines, copied

ROOT = Path(__file__).parents[1]
EQUIVALENT = ROOT / "bench" / "equivalent_mutants.txt"
ALLOWED = 0.04
COMPARISONS: Mapping[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
SUMS: Mapping[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.Div: ast.Mult,
}


_CLAIMS = ("frozen", "gc", "strict")


@dataclass(frozen=True)
class Mutant:
    """One mistake: bytes ``start`` to ``end`` of a file become ``after``."""

    path: str
    line: int
    function: str
    operator: str
    start: int
    end: int
    before: str
    after: str
    lines: tuple[tuple[int, int], ...]
    """The first and the last line of what is changed, of its statement, and of the function that it is in."""

    @property
    def key(self) -> str:
        """What names it in the list of equivalents, wherever its line moves."""
        before, after = (" ".join(text.split()) for text in (self.before, self.after))
        return f"{self.path} | {self.function} | {before} | {after}"

    def applied(self, source: bytes) -> bytes:
        return source[: self.start] + self.after.encode() + source[self.end :]


def mutants_of(path: Path, root: Path = ROOT) -> list[Mutant]:
    """Every mutant of a module, in the order of its text."""
    source = path.read_bytes()
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    found: list[Mutant] = []

    def add(node: ast.expr | ast.stmt, operator: str, function: str, after: str, around: list[tuple[int, int]]) -> None:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        start, end = starts[node.lineno - 1] + node.col_offset, starts[node.end_lineno - 1] + node.end_col_offset
        before = source[start:end].decode()
        if before != after:
            name = path.relative_to(root).as_posix()
            lines = ((node.lineno, node.end_lineno), *reversed(around))
            found.append(Mutant(name, node.lineno, function, operator, start, end, before, after, lines))

    def visit(node: ast.AST, function: str, around: list[tuple[int, int]]) -> None:
        if isinstance(node, (ast.Import, ast.ImportFrom, ast.Assert, ast.JoinedStr)):
            return
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            function, around = f"{function}.{node.name}".lstrip("."), [(node.lineno, node.end_lineno or node.lineno)]
        elif isinstance(node, ast.stmt):
            inner = [child.lineno - 1 for child in ast.iter_child_nodes(node) if isinstance(child, ast.stmt)]
            around = [*around[:1], (node.lineno, max(min([node.end_lineno or 0, *inner]), node.lineno))]
        for operator, changed in _changes(node, function):
            assert isinstance(node, (ast.expr, ast.stmt))
            add(node, operator, function, changed, around)
        for child in _inner(node):
            visit(child, function, around)

    visit(ast.parse(source), "", [])
    return sorted(found, key=lambda mutant: (mutant.start, mutant.end, mutant.after))


def _inner(node: ast.AST) -> Iterator[ast.AST]:
    """The children that a mistake may be in: no annotation, decorator or docstring, and neither whether the values of a
    class are frozen, which the type checker sees, or looked at by the collector of garbage, nor ``strict`` of ``zip``,
    which asserts equal lengths."""
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "type_comment", "type_params", "format_spec"):
            continue
        children = value if isinstance(value, list) else [value]
        for child in children:
            is_text = isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant)
            is_claim = isinstance(child, ast.keyword) and child.arg in _CLAIMS
            if isinstance(child, ast.AST) and not is_text and not is_claim:
                yield child


def _changes(node: ast.AST, function: str) -> Iterator[tuple[str, str]]:
    """The operators that fit a node, each with the text that takes its place."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        swapped = COMPARISONS[type(node.ops[0])]()
        yield "comparison", f"({ast.unparse(ast.Compare(node.left, [swapped], node.comparators))})"
    elif isinstance(node, ast.BoolOp):
        other = ast.And() if isinstance(node.op, ast.Or) else ast.Or()
        yield "condition", f"({ast.unparse(ast.BoolOp(other, node.values))})"
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield "condition", f"bool({ast.unparse(node.operand)})"
    elif isinstance(node, ast.IfExp):
        yield "condition", f"({ast.unparse(ast.IfExp(node.test, node.orelse, node.body))})"
    elif isinstance(node, ast.BinOp) and type(node.op) in SUMS and function:
        yield "sum", f"({ast.unparse(ast.BinOp(node.left, SUMS[type(node.op)](), node.right))})"
    elif isinstance(node, ast.Constant):
        if isinstance(node.value, bool):
            yield "constant", str(not node.value)
        elif isinstance(node.value, int):
            yield "constant", str(node.value + 1)
        elif isinstance(node.value, str) and node.value and function:
            # Python takes "utf-8~" for the same encoding.
            yield "constant", repr("latin-1" if node.value == "utf-8" else node.value + "~")
    elif isinstance(node, ast.Return) and node.value is not None:
        if not (isinstance(node.value, ast.Constant) and node.value.value is None):
            yield "return", "return None"
    elif isinstance(node, ast.Call) and node.keywords:
        for at, keyword in enumerate(node.keywords):
            if keyword.arg is not None and keyword.arg not in _CLAIMS:
                rest = [*node.keywords[:at], *node.keywords[at + 1 :]]
                yield "argument", ast.unparse(ast.Call(node.func, node.args, rest))
    elif (isinstance(node, ast.Expr) and isinstance(node.value, (ast.Call, ast.Await))) or (
        isinstance(node, (ast.AugAssign, ast.Raise, ast.Continue, ast.Break)) and function
    ):
        yield "statement", "pass"


# -- which tests -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Chosen:
    """The tests of a mutant: their names, how many there would be, and the seconds that they took when recorded."""

    tests: tuple[str, ...]
    of: int
    seconds: float
    runs: bool = True
    """A test runs the line; otherwise these are the nearest that run its function, or import its module."""


class Tests:
    """Chooses the tests that run a line: those of its own subject first, then those of fewer seconds. Of the tests that
    the record lacks, it takes those whose words are most like those of the function."""

    def __init__(self, seconds: float, files: int) -> None:
        self._record = TestedLines()
        self._seconds, self._files = seconds, files
        self._words = {test: words for test, words in _words_of_tests().items() if test not in self._record.seconds}
        counts = Counter(word for words in self._words.values() for word in words)
        self._weight = {word: math.log(len(self._words) / count) for word, count in counts.items()}

    def of(self, mutant: Mutant) -> Chosen:
        words = {word for word in re.split(r"[/_.]", mutant.path.removesuffix(".py")) if len(word) > 3} - {"workbench"}
        found = [self._record.of(mutant.path, *lines) for lines in mutant.lines]
        runs = any(found[:2])
        near = next(filter(None, found), None) or self._alike(words)
        if near <= self._record.at_import(mutant.path):  # What is made at import shows wherever the module is used.
            near |= self._record.of(mutant.path, 1, sys.maxsize)
        called = mutant.function.rpartition(".")[2].lstrip("_")

        def rank(test: str) -> tuple[int, float]:
            file = test.partition("::")[0]
            named = len(called) > 4 and called in _text(file)
            return -sum(word in file for word in words) - 2 * named, self._cost(test)

        chosen: list[str] = []
        files: set[str] = set()
        total = 0.0
        for test in (*sorted(near, key=rank), *self._like(mutant)):
            file, cost = test.partition("::")[0], self._cost(test)
            if (chosen and total + cost > self._seconds) or len(files | {file}) > self._files:
                continue
            chosen.append(test)
            files.add(file)
            total += cost
        return Chosen(tuple(chosen), len(near), total, runs or not self._record.seconds)

    def _cost(self, test: str) -> float:
        return self._record.seconds.get(test, 0.3)

    def _alike(self, words: set[str]) -> set[str]:
        """Tests of files named like the module: for what only other processes run, or the import of the module."""
        files = {test: test.partition("::")[0] for test in self._record.seconds}
        return {test for test, file in files.items() if sum(word in file for word in words) > 1}

    def _like(self, mutant: Mutant) -> list[str]:
        """The tests that were not recorded, by the words that they share with the function, its statement twice."""
        lines = _text(mutant.path).splitlines()
        said = Counter[str](dict.fromkeys(_words(mutant.path), 2))
        for (first, last), times in zip(reversed(mutant.lines), (1, 2, 2), strict=False):
            for word in _words("\n".join(lines[first - 1 : last])):
                said[word] += times

        near = {mutant.path: 3, **dict.fromkeys(_importers(mutant.path), 1)}
        closeness = {file: self._closeness(file, near) for file in {test.partition("::")[0] for test in self._words}}

        def likeness(test: str) -> float:
            shared = said.keys() & self._words[test]
            alike = sum(self._weight[word] * said[word] for word in shared) / math.log(20 + len(self._words[test]))
            return alike * closeness[test.partition("::")[0]]

        return sorted(self._words, key=likeness, reverse=True)

    @staticmethod
    def _closeness(file: str, near: Mapping[str, int]) -> float:
        """More for a file of tests that imports one of these modules, or is of the folder of one."""
        imported = max((worth for path, worth in near.items() if _module(path) in _imports(file)), default=0)
        of_folder = any(path.split("/")[1] == file.split("/")[1] for path in near)
        return 1 + imported / 2 + of_folder / 2


def _module(path: str) -> str:
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


@cache
def _imports(file: str) -> frozenset[str]:
    return frozenset(re.findall(r"^\s*from (workbench[\w.]*) import", _text(file), re.MULTILINE))


@cache
def _importers(path: str) -> frozenset[str]:
    """The modules that import a module."""
    every = (file.relative_to(ROOT).as_posix() for file in (ROOT / "workbench").rglob("*.py"))
    return frozenset(file for file in every if _module(path) in _imports(file))


def _words_of_tests() -> dict[str, set[str]]:
    """The words of each test, and of the name of its file."""
    found: dict[str, set[str]] = {}
    for file in sorted((ROOT / "tests").rglob("test_*.py")):
        name = file.relative_to(ROOT).as_posix()
        lines = _text(name).splitlines()
        for node in ast.parse(_text(name)).body:
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name.startswith("test_"):
                first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
                text = "\n".join(lines[first - 1 : node.end_lineno])
                found[f"{name}::{node.name}"] = _words(text) | _words(name)
    return found


def _words(text: str) -> set[str]:
    """The words of a text: names too, and the parts of names."""
    names = set(re.findall(r"[a-z]\w{3,}", text.lower()))
    return names | {part for name in names for part in name.split("_") if len(part) > 3}


@cache
def _text(file: str) -> str:
    return (ROOT / file).read_text("utf-8")


# -- running them ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Verdict:
    """``killed``, ``survived``, ``not run`` (survived, and no test runs its line), or ``unsure``: its tests fail
    without it too, or did not end, which a busy machine may be the reason for."""

    mutant: Mutant
    word: str
    by: str
    seconds: float

    def __str__(self) -> str:
        return f"{self.word:9} {self.seconds:5.0f} s  {self.mutant.key}  {self.by}"


class Judge:
    """Judges mutants in a copy of the tree: in forks of one process, else each in a process of its own."""

    def __init__(self, copy: Path, limit: float, memory: int) -> None:
        self._copy, self._limit, self._memory = copy, limit, memory
        self._green: dict[str, bool] = {}
        copied(copy)

    def of(self, chosen: Mapping[Mutant, Chosen]) -> Iterator[Verdict]:
        """The verdicts of mutants, each as soon as it is known."""
        left = list(chosen)
        for mutant in [mutant for mutant in left if not chosen[mutant].tests]:
            left.remove(mutant)
            yield Verdict(mutant, "not run", "no test is near", 0.0)
        apart = []
        for mutant, word, by, seconds in self._forked(list(left), chosen):
            left.remove(mutant)
            if word == "apart":
                apart.append(mutant)
            else:
                yield self._verdict(mutant, chosen[mutant], word, by, seconds)
        for mutant in (*apart, *left):
            target, began = self._copy / mutant.path, time.monotonic()
            source = target.read_bytes()
            try:
                target.write_bytes(mutant.applied(source))
                word, failed = _run(self._copy, chosen[mutant].tests, self._limit, self._memory)
            finally:
                target.write_bytes(source)
            if word == "killed" and failed and not self._passes(failed):
                word = "unsure"
            yield self._verdict(mutant, chosen[mutant], word, failed, time.monotonic() - began)

    def _forked(
        self, mutants: Sequence[Mutant], chosen: Mapping[Mutant, Chosen]
    ) -> Iterator[tuple[Mutant, str, str, float]]:
        asked = [
            {
                "at": at,
                "path": mutant.path,
                "start": mutant.start,
                "end": mutant.end,
                "after": mutant.after,
                "tests": chosen[mutant].tests,
            }
            for at, mutant in enumerate(mutants)
        ]
        plan, told = self._copy / "mutants.json", self._copy / "mutants.verdicts"
        plan.write_text(json.dumps({"mutants": asked, "limit": self._limit, "memory": self._memory}), "utf-8")
        told.write_text("", "utf-8")
        files = sorted({test.partition("::")[0] for mutant in mutants for test in chosen[mutant].tests})
        if not files:
            return
        env = {PLAN: str(plan), VERDICTS: str(told)}
        with _pytest(self._copy, ["-p", "bench.forked_mutants", *files], env) as process, told.open("rb") as verdicts:
            ended = False
            while not ended:
                ended = process.poll() is not None
                for line in verdicts:
                    verdict = json.loads(line)
                    yield mutants[verdict["at"]], verdict["word"], verdict["by"], verdict["seconds"]
                time.sleep(0.3)

    def _verdict(self, mutant: Mutant, chosen: Chosen, word: str, by: str, seconds: float) -> Verdict:
        if word in ("hung", "grew"):
            # It shows by never ending, or by its memory, where the same tests end soon without it.
            calm = _run(self._copy, chosen.tests, self._limit / 2, self._memory)[0] == "survived"
            word, by = ("killed" if calm else "unsure"), word
        elif word == "survived":
            word, by = word if chosen.runs else "not run", f"{len(chosen.tests)} of {chosen.of} tests"
        return Verdict(mutant, word, by, seconds)

    def _passes(self, test: str) -> bool:
        """A test passes without any mutant; each is tried once."""
        if test not in self._green:
            self._green[test] = _run(self._copy, [test], self._limit, self._memory)[0] == "survived"
        return self._green[test]


@contextmanager
def _pytest(folder: Path, arguments: Sequence[str], more: Mapping[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    """A process of pytest in a copy; what it prints goes to ``stdout``, from its beginning."""
    options = ["-q", "--tb=no", "-p", "no:cacheprovider", "--hypothesis-seed=0"]
    env = {**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1", **more}
    with (folder / "printed").open("wb") as out:
        command = [sys.executable, "-m", "pytest", *options, *arguments]
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            yield process
        finally:
            end_family(process.pid)
            process.wait()


def _run(folder: Path, tests: Sequence[str], limit: float, memory: int) -> tuple[str, str]:
    """How the tests ended in a folder within seconds and bytes, and the first that failed, without its parameters: they
    may hold blanks."""
    with _pytest(folder, ["-x", *tests], {}) as process:
        word = watched(process.pid, process.poll, limit, memory)
    failed = re.search(rb"^(?:FAILED|ERROR) ([^\s\[]+)", (folder / "printed").read_bytes(), re.MULTILINE)
    return word, failed[1].decode() if failed else ""


def sample(paths: list[Path], seed: int, count: int, function: str | None = None) -> list[Mutant]:
    """The mutants of a seed, without those listed as equivalent; ``function``: of what is so called."""
    listed = EQUIVALENT.read_text("utf-8").splitlines() if EQUIVALENT.exists() else []
    known = {line.strip() for line in listed if line.strip() and not line.startswith("#")}
    files = sorted(file for path in paths for file in (path.rglob("*.py") if path.is_dir() else [path]))
    every = [mutant for file in files for mutant in mutants_of(file) if mutant.key not in known]
    if function is not None:
        every = [mutant for mutant in every if f".{function}." in f".{mutant.function}."]
    return random.Random(seed).sample(every, min(count, len(every)))


def report(verdicts: list[Verdict], say: Callable[[str], object] = print) -> float:
    """Say what survived; its share of what was judged."""
    for word in ("survived", "not run", "unsure"):
        for verdict in verdicts:
            if verdict.word == word:
                say(f"{word}: {verdict.mutant.path}:{verdict.mutant.line} {verdict.mutant.operator}, {verdict.by}")
                say(f"    {verdict.mutant.key}")
    judged = [verdict for verdict in verdicts if verdict.word != "unsure"]
    left = [verdict for verdict in judged if verdict.word != "killed"]
    share = len(left) / max(len(judged), 1)
    low, high = interval(len(left), len(judged))
    say(
        f"{len(judged)} mutants, {len(left)} survived ({share:.1%}; of all mutants {low:.1%} to {high:.1%} with 95%), "
        f"{len(verdicts) - len(judged)} unsure"
    )
    return share


def interval(left: int, judged: int) -> tuple[float, float]:
    """Wilson's interval of a share, with 95% certainty."""
    if not judged:
        return 0.0, 1.0
    z, share = 1.96, left / judged
    middle = (share + z * z / (2 * judged)) / (1 + z * z / judged)
    half = z * math.sqrt(share * (1 - share) / judged + z * z / (4 * judged**2)) / (1 + z * z / judged)
    return max(0.0, middle - half), min(1.0, middle + half)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.mutants", description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=60, help="how many mutants")
    parser.add_argument("--first", type=int, default=0, help="skip so many of them")
    parser.add_argument("--path", type=Path, action="append", help="a module or package; may be given again")
    parser.add_argument("--seconds", type=float, default=40, help="of recorded tests per mutant")
    parser.add_argument("--files", type=int, default=12, help="test files per mutant")
    parser.add_argument("--limit", type=float, default=120, help="seconds until the tests of a mutant hang")
    parser.add_argument("--memory", type=float, default=3, help="gigabytes that they may use")
    parser.add_argument("--function", help="only of this function, or class")
    parser.add_argument("--tests", action="append", help="a file of tests to run, instead of choosing; may be repeated")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--list", action="store_true", help="only say which mutants and tests they are")
    asked = parser.parse_args()
    paths = [path.resolve() for path in asked.path or [ROOT / "workbench"]]
    mutants = sample(paths, asked.seed, asked.first + asked.count, asked.function)[asked.first :]
    if asked.tests:
        given = tuple(test for test in _words_of_tests() if test.partition("::")[0] in asked.tests)
        chosen = dict.fromkeys(mutants, Chosen(given, len(given), 0.0))
    else:
        tests = Tests(asked.seconds, asked.files)
        chosen = {mutant: tests.of(mutant) for mutant in mutants}
    if asked.list:
        for mutant, its in chosen.items():
            print(f"{mutant.key}\n    {len(its.tests)} of {its.of}, {its.seconds:.0f} s: {' '.join(its.tests)}")
        return 0
    with tempfile.TemporaryDirectory(prefix="mutants-") as place, ThreadPoolExecutor(asked.jobs) as pool:

        def judged(number: int) -> list[Verdict]:
            judge, verdicts = Judge(Path(place).resolve() / f"{number}", asked.limit, int(asked.memory * 1e9)), []
            for verdict in judge.of({mutant: chosen[mutant] for mutant in mutants[number :: asked.jobs]}):
                print(verdict, flush=True)
                verdicts.append(verdict)
            return verdicts

        verdicts = [verdict for part in pool.map(judged, range(asked.jobs)) for verdict in part]
    return 1 if report(verdicts) > ALLOWED else 0


if __name__ == "__main__":
    sys.exit(main())
