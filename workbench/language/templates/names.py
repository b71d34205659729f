"""Finds the names that a template refers to, without rendering it: with places, unknown filters and tests, syntax
errors."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from operator import eq, ge, gt, le, lt, ne
from typing import Any

from jinja2 import TemplateSyntaxError, nodes
from jinja2.meta import find_undeclared_variables
from msgspec import Struct
from msgspec.structs import replace

from workbench.language.clean import clean_line
from workbench.language.templates.sandbox import SANDBOX, place_of

# What is wrong with a template, and where in it.

_CHARACTER = re.compile(r"(unexpected char .+) at (\d+)", re.DOTALL)
_ENDED = "Unexpected end of template"
_ENDLESS = ("Missing end of comment tag", "Missing end of raw directive")
_TAG = re.compile(
    r"\{#.*?#\}|\{%[-+]?\s*raw\s*[-+]?%\}.*?\{%[-+]?\s*endraw\b.*?%\}|\{%[-+]?\s*(?P<name>\w+)(?P<rest>.*?)%\}",
    re.DOTALL,
)
_OPENING = frozenset({"if", "for", "macro", "call", "filter", "with", "block", "autoescape", "set"})
_WRONG_END = re.compile(
    r"Encountered unknown tag 'end(?P<end>\w+)'\.(?:.*needs to be closed is '(?P<open>\w+)')?", re.DOTALL
)
_LINE_END = re.compile(r"\r\n?")


class TemplateFault(Exception):
    """A template that could not be rendered. Line and column are within the template, from 1."""

    def __init__(self, message: str, line: int = 1, column: int = 1) -> None:
        super().__init__(message)
        self.message = message
        self.line = line
        self.column = column


def syntax_fault(fault: TemplateSyntaxError, template: str) -> TemplateFault:
    """A syntax error with its place."""
    message = fault.message or "syntax error"
    if match := _CHARACTER.fullmatch(message):
        before = _LINE_END.sub("\n", template)[: int(match[2])]
        return TemplateFault(clean_line(match[1]), before.count("\n") + 1, len(before) - before.rfind("\n"))
    if message.startswith(_ENDED) and (opened := _open_block(_LINE_END.sub("\n", template))) is not None:
        return opened
    if message.startswith(_ENDLESS) and (begun := _endless(_LINE_END.sub("\n", template))) is not None:
        return begun
    if match := _WRONG_END.match(message):
        end, still = f"'{{% end{match['end']} %}}'", match["open"]
        message = f"{end} comes while '{{% {still} %}}' is still open" if still else f"{end} closes nothing"
    line = int(fault.lineno)
    column = getattr(fault.lineno, "column", 0) or first_tag(template, line)
    return _cut(_LINE_END.sub("\n", template), line, column) or TemplateFault(clean_line(message, 300), line, column)


_PIECE = re.compile(
    r"\{#.*?(?:#\}|\Z)|\{%[-+]?\s*raw\s*[-+]?%\}.*?\{%[-+]?\s*endraw\b.*?%\}"
    r"|(?P<print>\{\{(?:(?!\{\{|\{%).)*?(?:\}\}|(?=\{\{|\{%|\Z)))"
    r"|(?P<tag>\{%(?:(?!\{\{|\{%).)*?(?:%\}|(?=\{\{|\{%|\Z)))",
    re.DOTALL,
)
"""A comment, raw text, an expression or a tag. One without its end ends where the next one begins."""


def _pieces(template: str) -> list[re.Match[str]]:
    """The expressions and tags of a template."""
    return [piece for piece in _PIECE.finditer(template) if piece["print"] or piece["tag"]]


def _endless(template: str) -> TemplateFault | None:
    """The comment or raw text that never ends, at its beginning: Jinja names the place behind it."""
    for piece in _PIECE.finditer(template):
        raw = piece["tag"] is not None and _name(piece) == "raw"
        if raw or (piece[0].startswith("{#") and not (piece[0].endswith("#}") and len(piece[0]) > 3)):
            at = piece.start() + (piece[0].index("raw") if raw else 0)
            message = (
                "'{% raw %}' is never closed: {% endraw %} is missing" if raw else "'{#' is never closed: #} is missing"
            )
            return TemplateFault(message, template.count("\n", 0, at) + 1, at - template.rfind("\n", 0, at))
    return None


def _is_cut(piece: re.Match[str]) -> bool:
    return not piece[0].endswith(("}}", "%}"))


def _cut(template: str, line: int, column: int) -> TemplateFault | None:
    """The expression or tag without an end that a fault behind it comes from: Jinja names where the next one begins."""
    at = _offset(template, line, column)
    if not template.startswith(("{{", "{%"), at) and at < len(template.rstrip()):
        return None
    for piece in reversed(_pieces(template)):
        if _is_cut(piece) and piece.end() <= at:
            end, begin = ("}}", "{{") if piece["print"] else ("%}", "{%")
            message = f"'{begin}' is never closed: {end} is missing"
            start = piece.start()
            return TemplateFault(message, template.count("\n", 0, start) + 1, start - template.rfind("\n", 0, start))
    return None


def _offset(template: str, line: int, column: int) -> int:
    return sum(len(one) + 1 for one in template.split("\n")[: line - 1]) + column - 1


def _open_block(template: str) -> TemplateFault | None:
    """The innermost block that is still open at the end of a template, at its tag. Jinja names only its kind, at the
    end.
    """
    blocks: list[tuple[str, int]] = []
    for tag in _TAG.finditer(template):
        name = tag["name"] or ""
        if name.startswith("end") and blocks:
            blocks.pop()
        elif name in _OPENING and not (name == "set" and "=" in tag["rest"]):
            blocks.append((name, tag.start("name")))
    if not blocks:
        return None
    name, at = blocks[-1]
    message = f"'{{% {name} %}}' is never closed: {{% end{name} %}} is missing"
    return TemplateFault(message, template.count("\n", 0, at) + 1, at - template.rfind("\n", 0, at))


def first_tag(template: str, line: int) -> int:
    """The column of the first tag on a line, or 1."""
    lines = template.splitlines()
    text = lines[line - 1] if 0 < line <= len(lines) else ""
    found = [at for tag in ("{{", "{%", "{#") if (at := text.find(tag)) >= 0]
    return min(found) + 1 if found else 1


_OWN = frozenset({"loop", "self", "caller", "varargs", "kwargs", "super"})
"""Names that Jinja provides in places."""


class NameUse(Struct, frozen=True):
    """A name that must come from outside, with the attributes read from it: ``("outputs", "look")``."""

    path: tuple[str | int, ...]
    line: int
    column: int
    """Of the first character of the name, from 1."""
    guarded: bool = False
    """``default(…)``, ``is defined``, or the like stands for the case that it is not there."""
    tested: bool = False
    """Only whether it is true is asked: it may be missing."""

    @property
    def root(self) -> str:
        return str(self.path[0])

    @property
    def text(self) -> str:
        """As a person writes it: ``outputs.look``."""
        return str(self.path[0]) + "".join(
            f".{part}" if isinstance(part, str) and part.isidentifier() else f"[{part!r}]" for part in self.path[1:]
        )


class Word(Struct, frozen=True):
    """A filter or test by name, with its place."""

    name: str
    line: int
    column: int


class ComparedName(Struct, frozen=True):
    """A name compared with a constant: ``turn == 1``. ``operator`` is eq, ne, lt, lteq, gt or gteq."""

    path: tuple[str | int, ...]
    operator: str
    constant: Any
    line: int
    column: int


class TemplateNames(Struct, frozen=True):
    """All that a template refers to. With a ``fault``, what the rest of it refers to, as far as it can be read."""

    uses: tuple[NameUse, ...] = ()
    unknown_filters: tuple[Word, ...] = ()
    unknown_tests: tuple[Word, ...] = ()
    comparisons: tuple[ComparedName, ...] = ()
    fault: TemplateFault | None = None
    further: tuple[TemplateFault, ...] = ()
    """Those behind the first fault, in other tags."""

    @property
    def roots(self) -> frozenset[str]:
        return frozenset(use.root for use in self.uses)


_ROUNDS = 8
"""So many faulty tags of a template are looked over."""


@lru_cache(maxsize=512)
def names_used(template: str) -> TemplateNames:
    """Read a template's names. Never raises; a template that cannot be parsed gives its faults: each tag that is wrong
    is taken out, so that the rest can be read. What such a tag seems to name is not missed in the rest."""
    faults: list[TemplateFault] = []
    text, given = template, frozenset[str]()
    for _ in range(_ROUNDS):
        found = _names_of(text, given)
        if found.fault is None:
            break
        faults.append(found.fault)
        text, named = _without(_LINE_END.sub("\n", text), found.fault)
        given |= named
        if not text:
            break
    return replace(found, fault=faults[0], further=tuple(faults[1:])) if faults else found


_NAME_OF_TAG = re.compile(r"\{%[-+]?\s*(\w*)")
_IDENTIFIER = re.compile(r"(?<![\w.])[A-Za-z_]\w*")
_GIVING = frozenset({"for", "set", "macro", "with", "call", "import", "from"})
"""Tags that give names to what follows."""


def _without(template: str, fault: TemplateFault) -> tuple[str, frozenset[str]]:
    """The template with the expression or tag at a fault made harmless, all else at its place, and the names that the
    tag may have given to the rest. The text is empty if no expression or tag is at the fault."""
    at, pieces = _offset(template, fault.line, fault.column), _pieces(template)
    cut = [i for i, piece in enumerate(pieces) if piece.start() <= at and _is_cut(piece)]
    here = cut[-1] if cut else next((i for i, one in enumerate(pieces) if one.start() <= at < one.end()), None)
    if here is None:
        return "", frozenset()
    gone, stays = _gone_with(pieces, here)
    given, left = frozenset[str](), template
    for i in sorted(gone, reverse=True):
        given |= _given(pieces[i])
        left = left[: pieces[i].start()] + _harmless(pieces[i], branch=stays) + left[pieces[i].end() :]
    return "" if left == template else left, given


def _gone_with(pieces: list[re.Match[str]], here: int) -> tuple[set[int], bool]:
    """The expressions and tags to take out if one of them is wrong: for a tag that begins a block, its end as well; for
    an end that fits no open block, the innermost block, and for one that fits an outer block, those inside it instead.
    And whether a condition of a whole ``if`` is taken out, which still begins its branch.
    """
    name = _name(pieces[here])
    partners, opened = _partners(pieces, here)
    if not name.startswith("end"):
        begin = here if name == "if" else next((i for i, own in partners.items() if here in own), None)
        block = [] if begin is None else [_name(pieces[i]) for i in (begin, *partners[begin])]
        if name in ("if", "elif") and block[:1] == ["if"] and "endif" in block:
            return {here}, True
        return {here, *partners.get(here, ())}, False
    outer = next((i for i, begin in enumerate(opened) if _name(pieces[begin]) == name[3:]), None)
    wrong = opened[-1:] if outer is None else opened[outer + 1 :]
    inside = {i for begin in wrong for i in (begin, *partners[begin])}
    return inside if outer is not None and inside else inside | {here}, False


def _name(piece: re.Match[str]) -> str:
    """The name of a tag; empty for an expression."""
    found = _NAME_OF_TAG.match(piece[0])
    return found[1] if found else ""


def _harmless(piece: re.Match[str], *, branch: bool) -> str:
    """A text as long as an expression or tag that renders nothing. ``branch``: a condition begins its branch."""
    written = piece[0]
    blank = re.sub(r"[^\n]", " ", written)
    condition = f"{{%{_name(piece)} 0"
    if branch and len(written) >= len(condition) + 2 and "\n" not in written[: len(condition)]:
        return condition + blank[len(condition) : -2] + "%}"
    return blank


def _partners(pieces: list[re.Match[str]], here: int) -> tuple[dict[int, tuple[int, ...]], list[int]]:
    """For each tag that begins a block, those that belong to it (its ``else`` and its end, as far as they are there);
    and the tags whose blocks are open at the piece ``here``, the innermost last."""
    found: dict[int, tuple[int, ...]] = {}
    opened: list[int] = []
    at_here: list[int] = []
    for i, piece in enumerate(pieces):
        if i == here:
            at_here = list(opened)
        name = _name(piece)
        if name in _OPENING and not (name == "set" and "=" in piece[0]):
            found[i] = ()
            opened.append(i)
        elif opened and (name in ("else", "elif") or name == f"end{_name(pieces[opened[-1]])}"):
            found[opened[-1]] += (i,)
            if name.startswith("end"):
                opened.pop()
    return found, at_here


def _given(piece: re.Match[str]) -> frozenset[str]:
    """The names that a tag gives to what follows, as far as it can be read."""
    name = _name(piece)
    if name not in _GIVING:
        return frozenset()
    inside = piece[0].partition(name)[2]
    if name == "for":
        inside = re.split(r"\bin\b", inside)[0]
    elif name in ("set", "with"):
        inside = inside.partition("=")[0]
    return frozenset(_IDENTIFIER.findall(inside))


def _names_of(template: str, given: frozenset[str]) -> TemplateNames:
    """The names of a template but for those ``given`` by tags that were taken out, or its first fault."""
    try:
        tree = SANDBOX.parse(template)
        filters = tuple(_unknown(tree, nodes.Filter, SANDBOX.filters, "string"))
        tests = tuple(_unknown(tree, nodes.Test, SANDBOX.tests, "none"))
        free = find_undeclared_variables(tree)
        stored = {name.name for name in tree.find_all(nodes.Name) if name.ctx != "load"}
        found = _Reader(frozenset(free - stored - given - _OWN))
        found.read(tree, _Sure())
    except TemplateSyntaxError as fault:
        return TemplateNames(fault=syntax_fault(fault, template))
    except RecursionError:
        return TemplateNames(fault=TemplateFault("it is nested too deeply"))
    return TemplateNames(
        tuple(sorted(found.uses, key=lambda use: (use.line, use.column))),
        filters,
        tests,
        tuple(found.comparisons),
    )


FILTERS: frozenset[str] = frozenset(SANDBOX.filters)
TESTS: frozenset[str] = frozenset(SANDBOX.tests)


def _unknown(tree: nodes.Template, kind: type[nodes.Filter | nodes.Test], known: Any, instead: str) -> Iterator[Word]:
    """Filters or tests that do not exist; each is replaced, for the search for free names would stop at it."""
    for node in tree.find_all(kind):
        if node.name not in known:
            yield Word(node.name, int(node.lineno), getattr(node.lineno, "column", 1))
            node.name = instead


Path = tuple[str | int, ...]


class _Sure(Struct, frozen=True):
    """What the conditions around a place have found."""

    paths: frozenset[Path] = frozenset()
    """They are there."""
    either: tuple[nodes.Or, ...] = ()
    """Conditions that hold, by one side or the other."""

    def given(self, test: nodes.Node, *, holds: bool) -> _Sure:
        """What is known where one more condition holds, or does not."""
        if holds and isinstance(test, nodes.And):
            return self.given(test.left, holds=True).given(test.right, holds=True)
        paths = self.paths | _there(test, holds=holds)
        for one in () if holds else self.either:
            if test in (one.left, one.right):
                paths |= _there(one.right if one.left == test else one.left, holds=True)
        return _Sure(paths, (*self.either, test) if holds and isinstance(test, nodes.Or) else self.either)


class _Reader:
    """Walks the tree, carrying what the conditions around have found."""

    def __init__(self, free: frozenset[str]) -> None:
        self.free = free
        self.uses: list[NameUse] = []
        self.comparisons: list[ComparedName] = []

    def read(self, node: nodes.Node, sure: _Sure, *, guarded: bool = False, tested: bool = False) -> None:
        if isinstance(node, nodes.Name | nodes.Getattr | nodes.Getitem):
            self._chain(node, sure, guarded, tested)
        elif isinstance(node, nodes.Filter) and node.name in ("default", "d") and node.node is not None:
            self.read(node.node, sure, guarded=True)
            for rest in (*node.args, *node.kwargs):
                self.read(rest, sure)
        elif isinstance(node, nodes.Test) and node.name in ("defined", "undefined"):
            self.read(node.node, sure, guarded=True)
        elif isinstance(node, nodes.If):
            self._branches(node, sure)
        elif isinstance(node, nodes.CondExpr):
            self.read(node.test, sure, tested=True)
            self.read(node.expr1, sure.given(node.test, holds=True), tested=tested)
            if node.expr2 is not None:
                self.read(node.expr2, sure.given(node.test, holds=False), tested=tested)
        elif isinstance(node, nodes.And | nodes.Or):
            self.read(node.left, sure, tested=True)
            self.read(node.right, sure.given(node.left, holds=isinstance(node, nodes.And)), tested=tested)
        elif isinstance(node, nodes.Not):
            self.read(node.node, sure, tested=True)
        else:
            if isinstance(node, nodes.Compare):
                self._comparison(node)
            asks = tested and isinstance(node, nodes.Compare | nodes.Operand | nodes.Test | nodes.Filter)
            for child in node.iter_child_nodes():
                self.read(child, sure, tested=asks)

    def _branches(self, node: nodes.If, sure: _Sure) -> None:
        for branch in (node, *node.elif_):
            self.read(branch.test, sure, tested=True)
            for child in branch.body:
                self.read(child, sure.given(branch.test, holds=True))
            sure = sure.given(branch.test, holds=False)
        for child in node.else_:
            self.read(child, sure)

    def _chain(self, node: nodes.Expr, sure: _Sure, guarded: bool, tested: bool) -> None:
        root, path, rest = _path(node)
        for other in rest:
            self.read(other, sure)
        if not isinstance(root, nodes.Name):
            self.read(root, sure, guarded=guarded)
        elif root.ctx == "load" and root.name in self.free:
            line, column = place_of(root)
            known = guarded or any(path[: len(known)] == known for known in sure.paths)
            self.uses.append(NameUse(path, line, column, known, tested))

    def _comparison(self, node: nodes.Compare) -> None:
        if len(node.ops) != 1:
            return
        left, operator, right = node.expr, node.ops[0].op, node.ops[0].expr
        if isinstance(left, nodes.Const):
            left, operator, right = right, _MIRRORED.get(operator, operator), left
        root, path, _ = _path(left)
        if isinstance(right, nodes.Const) and isinstance(root, nodes.Name) and root.name in self.free:
            self.comparisons.append(ComparedName(path, operator, right.value, *place_of(root)))


_MIRRORED = {"lt": "gt", "gt": "lt", "lteq": "gteq", "gteq": "lteq"}


def _path(node: nodes.Node) -> tuple[nodes.Node, Path, list[nodes.Node]]:
    """The root of a chain, the path of names read from it, and expressions inside brackets; the path ends there."""
    steps: list[str | int | None] = []
    rest: list[nodes.Node] = []
    while isinstance(node, nodes.Getattr | nodes.Getitem):
        if isinstance(node, nodes.Getattr):
            steps.append(node.attr)
        elif isinstance(node.arg, nodes.Const) and isinstance(node.arg.value, str | int):
            steps.append(node.arg.value)
        else:
            steps.append(None)
            rest.append(node.arg)
        node = node.node
    path: list[str | int] = [node.name] if isinstance(node, nodes.Name) else []
    for step in reversed(steps):
        if step is None:
            break
        path.append(step)
    return node, tuple(path), rest


# What a condition says of the names in it: one without which it would come out the other way is there.

_MISSING = object()
_UNKNOWN = object()
_OF_NOTHING: dict[str, Any] = {"count": 0, "length": 0} | dict.fromkeys(
    ("capitalize", "first", "join", "last", "list", "lower", "string", "title", "trim", "upper"), ""
)
"""What filters make of something that is missing or empty."""
_OF_TYPES = frozenset({"boolean", "false", "float", "integer", "mapping", "none", "number", "string", "true"})
"""Tests that hold for nothing that is missing."""
_COMPARED: dict[str, Callable[[Any, Any], bool]] = {"eq": eq, "ne": ne, "lt": lt, "lteq": le, "gt": gt, "gteq": ge}


def _there(test: nodes.Node, *, holds: bool) -> frozenset[Path]:
    """The paths that must be there if a condition holds, or if it does not."""
    return frozenset(path for path in _asked(test) if _truth(_without_path(test, path)) is (not holds))


def _asked(node: nodes.Node) -> Iterator[Path]:
    """The paths in a condition, and what they are read from but for their roots."""
    path = _key_asked(node) if isinstance(node, nodes.Compare) else _whole_path(node)
    if path:
        yield path
        yield from (path[:length] for length in range(2, len(path)))
        return
    for child in node.iter_child_nodes():
        yield from _asked(child)


def _whole_path(node: nodes.Node) -> Path:
    """The path of a chain of names; empty for anything else."""
    root, path, rest = _path(node)
    return path if isinstance(root, nodes.Name) and not rest else ()


def _key_asked(node: nodes.Compare) -> Path:
    """The path that ``'key' in names`` asks for."""
    of = _whole_path(node.ops[0].expr) if len(node.ops) == 1 and node.ops[0].op in ("in", "notin") else ()
    key = node.expr.value if isinstance(node.expr, nodes.Const) else None
    return (*of, key) if of and isinstance(key, str) else ()


def _truth(value: Any) -> bool | None:
    """Whether a value is true; None if it is unknown."""
    return None if value is _UNKNOWN else value is not _MISSING and bool(value)


def _without_path(node: nodes.Node, path: Path) -> Any:
    """The value of an expression if a path is missing, as far as it follows from that."""
    if chain := _whole_path(node):
        return _MISSING if chain[: len(path)] == path else _UNKNOWN
    if isinstance(node, nodes.Const):
        return node.value
    if isinstance(node, nodes.List | nodes.Tuple):
        items = [_without_path(item, path) for item in node.items]
        return _UNKNOWN if any(item in (_UNKNOWN, _MISSING) for item in items) else items
    if isinstance(node, nodes.Not):
        truth = _truth(_without_path(node.node, path))
        return _UNKNOWN if truth is None else not truth
    if isinstance(node, nodes.And | nodes.Or):
        left, right = _without_path(node.left, path), _without_path(node.right, path)
        decides = isinstance(node, nodes.Or)
        if _truth(left) is not None:
            return left if _truth(left) is decides else right
        return right if _truth(right) is decides else _UNKNOWN
    if isinstance(node, nodes.Compare) and len(node.ops) == 1:
        return _compared(node, path)
    if isinstance(node, nodes.Filter | nodes.Test) and node.node is not None:
        return _made_of(node, _without_path(node.node, path))
    return _UNKNOWN


def _made_of(node: nodes.Filter | nodes.Test, value: Any) -> Any:
    """What a filter or a test makes of a value that is missing or empty."""
    if isinstance(node, nodes.Filter):
        return _OF_NOTHING.get(node.name, _UNKNOWN) if value is _MISSING or value == "" else _UNKNOWN
    if value is not _MISSING:
        return _UNKNOWN
    return node.name == "undefined" if node.name in ("defined", "undefined", *_OF_TYPES) else _UNKNOWN


def _compared(node: nodes.Compare, path: Path) -> Any:
    left, operator, right = _without_path(node.expr, path), node.ops[0].op, _without_path(node.ops[0].expr, path)
    if operator in ("in", "notin"):
        lacks = _key_asked(node)[: len(path)] == path or right is _MISSING
        lacks = lacks or (left is _MISSING and isinstance(right, list))
        return (operator == "notin") if lacks else _UNKNOWN
    if _MISSING in (left, right) and operator not in ("eq", "ne"):
        return False
    if _UNKNOWN in (left, right):
        return _UNKNOWN
    try:
        return _COMPARED[operator](left, right)
    except TypeError:
        return _UNKNOWN
