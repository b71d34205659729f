"""Do the tests see a mistake? Samples mutants of the program and runs the tests nearest to each of them.

    python -m bench.mutants --seed 7 --count 50
    python -m bench.mutants --seed 7 --count 20 --path workbench/importers

A mutant is the program with one small mistake: a comparison, a constant, a condition, a sum, a returned value, an
argument or a statement is another one or missing. The sample follows from the seed and the tree. The tests of a mutant
are the files from which imports lead to its module on the shortest ways, those that name its function first. A mutant
that no test fails under is a survivor; survivors that change nothing anybody can see are listed in
``bench/equivalent_mutants.txt`` by the key that is printed, and are not counted. The exit code is 1 where more than 4 %
survive.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
EQUIVALENT = ROOT / "bench" / "equivalent_mutants.txt"
ALLOWED = 0.04
NEEDED = ("workbench", "tests", "cascades", "themes", "snapshots", "docs", "scripts", "bench")
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

    def add(node: ast.expr | ast.stmt, operator: str, function: str, after: str) -> None:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        start, end = starts[node.lineno - 1] + node.col_offset, starts[node.end_lineno - 1] + node.end_col_offset
        before = source[start:end].decode()
        if before != after:
            name = path.relative_to(root).as_posix()
            found.append(Mutant(name, node.lineno, function, operator, start, end, before, after))

    def visit(node: ast.AST, function: str) -> None:
        if isinstance(node, (ast.Import, ast.ImportFrom, ast.Assert, ast.JoinedStr)):
            return
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            function = f"{function}.{node.name}".lstrip(".")
        for operator, changed in _changes(node, function):
            assert isinstance(node, (ast.expr, ast.stmt))
            add(node, operator, function, changed)
        for child in _inner(node):
            visit(child, function)

    visit(ast.parse(source), "")
    return sorted(found, key=lambda mutant: (mutant.start, mutant.end, mutant.after))


def _inner(node: ast.AST) -> Iterator[ast.AST]:
    """The children that a mistake may be in: no annotation, decorator or docstring."""
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "type_comment", "type_params", "format_spec"):
            continue
        children = value if isinstance(value, list) else [value]
        for child in children:
            is_text = isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant)
            if isinstance(child, ast.AST) and not is_text:
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
            yield "constant", repr(node.value + "~")
    elif isinstance(node, ast.Return) and node.value is not None:
        if not (isinstance(node.value, ast.Constant) and node.value.value is None):
            yield "return", "return None"
    elif isinstance(node, ast.Call) and node.keywords:
        for at, keyword in enumerate(node.keywords):
            if keyword.arg is not None:
                rest = [*node.keywords[:at], *node.keywords[at + 1 :]]
                yield "argument", ast.unparse(ast.Call(node.func, node.args, rest))
    elif (isinstance(node, ast.Expr) and isinstance(node.value, (ast.Call, ast.Await))) or (
        isinstance(node, (ast.AugAssign, ast.Raise, ast.Continue, ast.Break)) and function
    ):
        yield "statement", "pass"


# -- which tests -------------------------------------------------------------------------------------------------------


class Tests:
    """The test files that lead to a module, nearest first."""

    def __init__(self, root: Path = ROOT) -> None:
        files = [file for top in ("workbench", "tests") for file in (root / top).rglob("*.py")]
        names = {_module_name(file.relative_to(root)): file for file in files}
        self._texts = {name: file.read_text("utf-8") for name, file in names.items()}
        self._paths = {name: file.relative_to(root).as_posix() for name, file in names.items()}
        self._importers: dict[str, set[str]] = {name: set() for name in names}
        for name, text in self._texts.items():
            for target in _imported(ast.parse(text), names):
                self._importers[target].add(name)
        for name in names:
            if name.startswith("workbench.cli.commands."):  # The command line imports them by the names of its table.
                self._importers[name].add("workbench.cli.main")

    def nearest(self, mutant: Mutant, limit: int) -> list[str]:
        """Paths of at most ``limit`` test files."""
        module = _module_name(Path(mutant.path))
        called = mutant.function.rpartition(".")[2]
        ranks: dict[str, tuple[int, ...]] = {}
        distances, todo = {module: 0}, deque([module])
        while todo:
            name = todo.popleft()
            for importer in self._importers[name]:
                if importer not in distances:
                    distances[importer] = distances[name] + 1
                    todo.append(importer)
        command = module.rpartition(".")[2] if ".commands." in module else ""
        words = [word for word in module.split(".")[1:] if len(word) > 3]
        for name, path in self._paths.items():
            is_test = path.rpartition("/")[2].startswith("test_")
            text = self._texts[name]
            runs_it = bool(command) and f'"{command}"' in text
            if is_test and (name in distances or runs_it):
                named = len(called) > 4 and re.search(rf"\b{re.escape(called.lstrip('_'))}\b", text) is not None
                alike = sum(word in path for word in words)
                distance = 1 if runs_it else distances[name]
                ranks[path] = (distance - 2 * named - 2 * alike, len(text))
        return sorted(ranks, key=lambda path: ranks[path])[:limit]


def _module_name(path: Path) -> str:
    parts = path.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imported(tree: ast.AST, known: Mapping[str, object]) -> Iterator[str]:
    """Modules that a text imports, or names in a text, as tables of commands and screens do."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                if inner in known or node.module in known:
                    yield inner if inner in known else node.module
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in known:
            yield node.value


# -- running them ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Verdict:
    """``killed``, ``survived``, ``untested``, or ``unsure``: it fails without the mutant too, or takes too long."""

    mutant: Mutant
    word: str
    by: str
    seconds: float


class Copies:
    """Copies of the tree for mutants to be made in: the tests of one never see another."""

    def __init__(self, count: int, place: Path) -> None:
        self._free: deque[Path] = deque()
        for number in range(count):
            copy = place / f"copy{number}"
            for name in NEEDED:
                ignore = shutil.ignore_patterns("__pycache__", ".workbench")
                shutil.copytree(ROOT / name, copy / name, ignore=ignore)
            for file in ROOT.glob("*.*"):
                if file.is_file():
                    shutil.copy(file, copy / file.name)
            self._free.append(copy)

    def judged(self, mutant: Mutant, files: list[str], limit: float) -> Verdict:
        if not files:
            return Verdict(mutant, "untested", "", 0.0)
        copy = self._free.popleft()
        target = copy / mutant.path
        source = target.read_bytes()
        began = time.monotonic()
        try:
            target.write_bytes(mutant.applied(source))
            word, by = _run(copy, files, limit)
            target.write_bytes(source)
            if word == "timeout" or (word == "killed" and _run(copy, [by], limit)[0] != "survived"):
                word = (
                    "unsure"  # A test that hangs fails by its own time-out; this machine was too slow for all of them.
                )
        finally:
            target.write_bytes(source)
            self._free.append(copy)
        return Verdict(mutant, word, by, time.monotonic() - began)


def _run(folder: Path, tests: list[str], limit: float) -> tuple[str, str]:
    """How the tests ended in a folder, and the first that failed, without its parameters: they may hold blanks."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-x",
        "--tb=no",
        "-p",
        "no:cacheprovider",
        "--hypothesis-seed=0",
        *tests,
    ]
    env = {**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    with subprocess.Popen(
        command, cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True
    ) as process:
        try:
            out, _ = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            process.communicate()
            return "timeout", ""
    if process.returncode == 0:
        return "survived", ""
    failed = re.search(rb"^(?:FAILED|ERROR) ([^\s\[]+)", out, re.MULTILINE)
    return "killed", failed[1].decode() if failed else tests[0]


def sample(paths: list[Path], seed: int, count: int) -> list[Mutant]:
    """The mutants of a seed, without those listed as equivalent."""
    listed = EQUIVALENT.read_text("utf-8").splitlines() if EQUIVALENT.exists() else []
    known = {line.strip() for line in listed if line.strip() and not line.startswith("#")}
    files = sorted(file for path in paths for file in (path.rglob("*.py") if path.is_dir() else [path]))
    every = [mutant for file in files for mutant in mutants_of(file) if mutant.key not in known]
    return random.Random(seed).sample(every, min(count, len(every)))


def report(verdicts: list[Verdict], say: Callable[[str], object] = print) -> float:
    """Say what survived; its share of what was judged."""
    for word in ("survived", "untested", "unsure"):
        for verdict in verdicts:
            if verdict.word == word:
                say(f"{word}: {verdict.mutant.path}:{verdict.mutant.line} {verdict.mutant.operator}")
                say(f"    {verdict.mutant.key}")
    judged = [verdict for verdict in verdicts if verdict.word != "unsure"]
    left = [verdict for verdict in judged if verdict.word in ("survived", "untested")]
    share = len(left) / max(len(judged), 1)
    say(f"{len(judged)} mutants, {len(left)} survived ({share:.1%}), {len(verdicts) - len(judged)} unsure")
    return share


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.mutants", description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=50, help="how many mutants")
    parser.add_argument("--path", type=Path, action="append", help="a module or package; may be given again")
    parser.add_argument("--files", type=int, default=12, help="test files per mutant")
    parser.add_argument("--limit", type=float, default=180, help="seconds per mutant")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--list", action="store_true", help="only say which mutants and tests they are")
    asked = parser.parse_args()
    paths = [path.resolve() for path in asked.path or [ROOT / "workbench"]]
    mutants, tests = sample(paths, asked.seed, asked.count), Tests()
    if asked.list:
        for mutant in mutants:
            print(f"{mutant.key}\n    {' '.join(tests.nearest(mutant, asked.files))}")
        return 0
    with tempfile.TemporaryDirectory(prefix="mutants-") as place, ThreadPoolExecutor(asked.jobs) as pool:
        copies = Copies(asked.jobs, Path(place))

        def judged(mutant: Mutant) -> Verdict:
            verdict = copies.judged(mutant, tests.nearest(mutant, asked.files), asked.limit)
            print(f"{verdict.word:9} {verdict.seconds:5.0f} s  {mutant.key}  {verdict.by}", flush=True)
            return verdict

        verdicts = list(pool.map(judged, mutants))
    return 1 if report(verdicts) > ALLOWED else 0


if __name__ == "__main__":
    sys.exit(main())
