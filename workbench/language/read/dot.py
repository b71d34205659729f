"""DOT text to nodes, edges and attributes with their places. What it cannot read it names, and goes on behind it.

This is the part of DOT that pipelines are written in: one directed graph, attributes with simple values, subgraphs
that only group. Defaults are resolved here, because they depend on the order of the text.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from difflib import get_close_matches
from itertools import pairwise

from msgspec import Struct, field

from workbench.language.problem import Severity
from workbench.language.read.reading import MAX_DEPTH, MAX_NODES, Fault, too_deep

_GAP = r"(?:[ \t\r\f\v]++|\n[ \t]*+\#[^\n]*+|\n|//[^\n]*+|/\*(?:[^*]|\*(?!/))*+\*/)*+"
"""The characters between tokens."""
_STRING = r'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_WORD = r"(?:(?!->|--)[^\s\[\]{}();,=\"<>])+"
_KEY = r"[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*"

_ID = r"[A-Za-z_][A-Za-z0-9_]*+"
_BLANK = r"[ \t\r\n\f\v]*+"

# What nearly every statement is: a node or one edge, its attributes with commas, no comment within. One match for the
# head and one for each attribute; a statement that these do not match whole is read step by step.
_head = re.compile(
    rf"[ \t\r\n\f\v;]*+({_ID})[ \t]*+(?:->[ \t]*+({_ID})[ \t]*+)?(?:(\[)|;|(?={_BLANK}(?:[A-Za-z_}}])))"
).match
_pair = re.compile(
    rf'{_BLANK}({_ID}(?:\.{_ID})*+)[ \t]*+=[ \t]*+(?:"([^"\\]*+(?:\\.[^"\\]*+)*+)"'
    r"|([A-Za-z_][A-Za-z0-9_.:-]*+|-?\d++(?:\.\d++)?(?![A-Za-z0-9_.])|\d++(?:ms|s|m|h|d)(?![A-Za-z0-9_.])))"
    rf"{_BLANK}(?:,|(\](?={_BLANK};?{_BLANK}[A-Za-z_}}])))",
    re.DOTALL | re.ASCII,
).match
KEYWORDS = frozenset(("graph", "node", "edge", "subgraph", "digraph", "strict"))

_subgraph = re.compile(r"subgraph\b").match
_gap = re.compile(_GAP).match
_word = re.compile(_WORD).match
_string = re.compile(_STRING, re.DOTALL).match
_attribute = re.compile(
    rf'{_GAP}(?P<key>{_KEY}){_GAP}=(?!=){_GAP}(?:"(?P<text>[^"\\]*+(?:\\.[^"\\]*+)*+)"'
    rf"|(?P<bare>[^\s\[\]{{}};,=\"<>]++))(?=[\s,;\]/]){_GAP}(?P<end>[,;]?)",
    re.DOTALL,
).match
_edge_or_list = re.compile(rf"{_GAP}(?P<what>->|--|\[|=(?!=)|:|\{{)").match
_identifier = re.compile(r"[A-Za-z_][A-Za-z0-9_]*").fullmatch
_bare = re.compile(r"[A-Za-z_][A-Za-z0-9_.:-]*|-?\d+(?:\.\d+)?|-?\.\d+|\d+(?:ms|s|m|h|d)").fullmatch
_header = re.compile(r"(?m)^[ \t]*(?:strict[ \t\r\n]+)?(?:di)?graph\b(?=[^{\n;]*(?:\n\s*)?\{)").search
_hashes = re.compile(r"(?m)^[ \t]*(?=#)").finditer
_ESCAPE = re.compile(r'\\(["\\nt])')
_HASH = "lines that begin with # are read as comments"
_MEANING = {'"': '"', "\\": "\\", "n": "\n", "t": "\t"}


MAX_VALUES = 200_000
"""Edges and attributes of a file."""
MAX_ERRORS = 300
"""Errors of a file after which the rest is not read."""
MAX_REMARKS = 400
"""Warnings and tolerances that are told of one file."""
MAX_DEFAULTS = 200
"""Attributes that ``node [..]`` or ``edge [..]`` may set at one place; each node there carries them all."""


class Attribute(Struct, frozen=True, gc=False):
    """One ``key = value`` with its places: offsets into the text, ends exclusive.

    Here and below ``gc=False``: nothing of a file refers back to what holds it, and the collector would otherwise look
    at each of the 100,000 values of a large one again and again.
    """

    key: str
    value: str
    """Escapes undone."""
    quoted: bool
    key_start: int
    key_end: int
    start: int
    end: int


Attributes = dict[str, Attribute]


class DotGroup(Struct):
    """A subgraph, which only groups."""

    parent: DotGroup | None = None
    id: str = ""
    label: str = ""


class DotNode(Struct, gc=False):
    """A node as the text has it."""

    id: str
    start: int
    end: int
    """Of its id where it is declared; of one that is only named, there."""
    declared: bool = False
    own: Attributes = field(default_factory=dict)
    defaults: Attributes = field(default_factory=dict)
    groups: tuple[DotGroup, ...] = ()
    """The subgraphs that it stands in directly."""

    @property
    def attributes(self) -> Attributes:
        return {**self.defaults, **self.own} if self.defaults else self.own


class DotEdge(Struct, gc=False):
    """An edge as the text has it."""

    src: str
    dst: str
    start: int
    end: int
    """From the first end to the last."""
    own: Attributes = field(default_factory=dict)
    defaults: Attributes = field(default_factory=dict)

    @property
    def attributes(self) -> Attributes:
        return {**self.defaults, **self.own} if self.defaults else self.own


class DotFile(Struct):
    """The content of a DOT text."""

    id: str = ""
    start: int = 0
    end: int = 0
    """Of the name, or of the keyword before it."""
    attributes: Attributes = field(default_factory=dict)
    nodes: dict[str, DotNode] = field(default_factory=dict)
    edges: list[DotEdge] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    broken: bool = False
    """Something was not understood: parts of the graph may be missing."""


class _Scope(Struct):
    node: Attributes
    edge: Attributes
    group: DotGroup | None


def _plain_list(text: str, at: int, own: Attributes) -> int:
    """Read a list of attributes of which there is nothing to say, from behind its bracket; where it ends. 0 for any
    other list."""
    while (pair := _pair(text, at)) is not None:
        key, value, bare, last = pair.groups()
        if key in own:
            return 0
        first, after = pair.span(1)
        at = pair.end()
        if bare is None:
            start, end = pair.span(2)
            own[key] = Attribute(key, unescaped(value), True, first, after, start - 1, end + 1)
        else:
            start, end = pair.span(3)
            own[key] = Attribute(key, bare, False, first, after, start, end)
        if last:
            return at
    return 0


def read_dot(text: str) -> DotFile:
    """Read a text. Never raises for what it holds."""
    return _Reader(text).read()


def unescaped(raw: str) -> str:
    """The value of a string as it is written: ``\\"``, ``\\\\``, ``\\n`` and ``\\t`` undone, other pairs left."""
    if "\\" not in raw:
        return raw
    if "\\\\" in raw:
        return _ESCAPE.sub(lambda match: _MEANING[match[1]], raw)
    return raw.replace('\\"', '"').replace("\\n", "\n").replace("\\t", "\t")


def escaped(value: str) -> str:
    """A value as a string of DOT, with its quotes."""
    # A pair such as \d stays as written, so only what would be read as an escape needs a backslash more.
    text = re.sub(r'\\(?=["\\nt\t]|$)', r"\\\\", value) if "\\" in value else value
    return '"' + text.replace('"', '\\"').replace("\t", "\\t") + '"'


def is_bare(value: str) -> bool:
    """Returns whether a value can stand without quotes."""
    return _bare(value) is not None


def proposed_id(name: str) -> str:
    """The legal id nearest to a name."""
    made = re.sub(r"[^A-Za-z0-9_]+", "_", name).strip("_")
    return made if _identifier(made) else f"n_{made}" if made else "node_1"


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.file = DotFile()
        self.noted: set[str] = set()
        self.errors = 0
        self.values = 0
        """Attributes and edges so far."""
        self.unclosed = len(text)
        """From here on no string ends: found once, not looked for again at each quote."""
        self.last_bracket = text.rfind("]")
        self.hashes = [match.end() for match in _hashes(text)]
        """Where lines begin with #, inside strings too."""

    # -- what is said -------------------------------------------------------------------------------------------------

    def say(self, fault: Fault) -> None:
        """A remark; after very many errors the rest of the text is not read."""
        faults = self.file.faults
        if fault.severity is not Severity.ERROR:
            if len(faults) < MAX_REMARKS:
                faults.append(fault)
            return
        self.errors += 1
        faults.append(fault)
        if self.errors == MAX_ERRORS:
            message = f"{MAX_ERRORS:,} errors; what follows is not read"
            faults.append(Fault(Severity.ERROR, "L104", message, fault.start, fault.end))

    @property
    def given_up(self) -> bool:
        return self.errors >= MAX_ERRORS or "L104" in self.noted

    def error(self, code: str, message: str, start: int, end: int, hint: str = "") -> None:
        self.file.broken = True
        self.say(Fault(Severity.ERROR, code, message, start, max(end, start + 1), hint))

    def once(self, code: str, message: str, start: int, end: int) -> None:
        """A tolerance, told once a file."""
        if message not in self.noted:
            self.noted.add(message)
            self.say(Fault(Severity.INFO, code, message, start, end))

    # -- the file -----------------------------------------------------------------------------------------------------

    def read(self) -> DotFile:
        text, file = self.text, self.file
        if text.startswith("#"):
            self.once("dot_tolerated", _HASH, 0, 1)
            self.at = self._line_end(0)
        self.skip()
        match = _header(text, 0)
        if match is None:
            found = self._shown(self.at) if self.at < len(text) else "the end of the file"
            self.error("dot_syntax", f"expected 'digraph NAME {{', found {found}", self.at, self.at + 1)
            return file
        keyword = match.end() - len(match[0].lstrip())
        if keyword > self.at:
            self._outside()
        self.at = keyword
        self._head()
        self._statements(_Scope({}, {}, None), 0)
        self._tail()
        return file

    def _head(self) -> None:
        """``digraph NAME {``."""
        text, file = self.text, self.file
        word = _word(text, self.at)
        assert word is not None
        if word[0] == "strict":
            self.error("dot_strict", "'strict' graphs are not read; leave the word out", *word.span())
            self.at = word.end()
            self.skip()
            word = _word(text, self.at)
            assert word is not None
        if word[0] == "graph":
            self.error("dot_undirected", "'graph' has no directions; write 'digraph'", *word.span())
        file.start, file.end = word.span()
        self.at = word.end()
        self.skip()
        if (quoted := self._string(self.at)) is not None:
            file.id = unescaped(quoted[0][1:-1])
            file.start, file.end = quoted.span()
            if _identifier(file.id):
                self.once(
                    "dot_tolerated", "ids in quotes are accepted where they would be legal without", *quoted.span()
                )
            self.at = quoted.end()
        elif (name := _word(text, self.at)) is not None:
            file.id = name[0]
            file.start, file.end = name.span()
            if not _identifier(name[0]):
                self._bad_id(name[0], *name.span())
            self.at = name.end()
        elif text[self.at : self.at + 1] == "{":
            self.once("dot_tolerated", "a graph without a name has that of its file", file.start, file.end)
        self.skip()
        if text[self.at : self.at + 1] == "{":
            self.at += 1
        else:
            self.error("dot_syntax", f"expected '{{', found {self._shown(self.at)}", self.at, self.at + 1)
            self.at = text.find("{", self.at) + 1

    def _tail(self) -> None:
        """Checks the text after the graph."""
        self.skip()
        if self.at >= len(self.text):
            return
        rest = _word(self.text, self.at)
        second = rest is not None and rest[0] in ("digraph", "graph", "strict")
        if second:
            message = "a second graph in the file; one is read"
            self.error("dot_second_graph", message, self.at, self._line_end(self.at))
        else:
            self._outside()

    def _open_at_end(self, what: str, opened: int) -> None:
        """Not for what an open string or comment has swallowed the end of: that is told already."""
        if self.at < len(self.text) or not any(fault.code == "dot_unterminated" for fault in self.file.faults):
            self.error("dot_unterminated", f"the {what} that opens here is never closed", opened, opened + 1)

    def _outside(self) -> None:
        """Prose around the graph."""
        end = self._line_end(self.at)
        found = self.text[self.at : end].strip()
        shown = found if len(found) <= 40 else found[:39] + "…"
        hint = "a comment begins with //"
        self.error("dot_outside", f"text outside the braces of the graph: '{shown}'", self.at, end, hint)

    # -- statements ---------------------------------------------------------------------------------------------------

    def _statements(self, scope: _Scope, depth: int) -> None:
        """Up to the closing brace, which is read."""
        text, opened = self.text, self.at - 1
        while not self.given_up:
            self._plain_statements(scope)
            begin = self.at
            self.skip()
            if self.at > begin:
                continue
            char = text[self.at : self.at + 1]
            if not char:
                self._open_at_end("brace", opened)
                return
            if char == "}":
                self.at += 1
                return
            if char == ";":
                self.at += 1
            elif char == ",":
                hint = "write an edge for each node, a statement for each"
                self.error("dot_syntax", "expected ';' or the next statement, found ','", self.at, self.at + 1, hint)
                self.at += 1
            elif char == "{":
                self._group("", scope, depth, self.at)
            elif char == '"':
                self._quoted(scope)
            elif (word := _word(text, self.at)) is not None:
                self._statement(word[0], *word.span(), scope, depth)
            else:
                self._unexpected()
        self.at = len(text)

    def _plain_statements(self, scope: _Scope) -> None:
        """Read nodes and edges of which there is nothing to say, up to the first statement that is anything else."""
        text, nodes, edges = self.text, self.file.nodes, self.file.edges
        groups = () if scope.group is None else (scope.group,)
        of_node, of_edge = scope.node, scope.edge
        room = MAX_VALUES - self.values
        while room > 0 and (head := _head(text, self.at)) is not None:
            name, target, bracket = head.groups()
            if name in KEYWORDS or target in KEYWORDS:
                break
            own: Attributes = {}
            at = head.end()
            if bracket and not (at := _plain_list(text, at, own)):
                break
            room -= len(own) + 1
            self.at = at
            start, end = head.span(1)
            if target is not None:
                first, stop = head.span(2)
                if name not in nodes:
                    self._mention(name, start, end, scope)
                if target not in nodes:
                    self._mention(target, first, stop, scope)
                edges.append(DotEdge(name, target, start, stop, own, of_edge))
            elif name in nodes or len(nodes) >= MAX_NODES:
                self._declare(name, start, end, own, scope)
            else:
                nodes[name] = DotNode(name, start, end, True, own, of_node, groups)
        self.values = MAX_VALUES - room
        self._count(0, self.at)

    def _count(self, more: int, at: int) -> None:
        """Hold what a file may contain against the limit."""
        self.values += more
        if self.values > MAX_VALUES:
            self._too_many(at)

    def _string(self, at: int) -> re.Match[str] | None:
        """The string that begins here; None where none does, or where it never ends."""
        # Behind a string that never ends each quote has a backslash before it, so none of them opens one that does.
        if at >= self.unclosed or self.text[at : at + 1] != '"':
            return None
        found = _string(self.text, at)
        if found is None:
            self.unclosed = at
        return found

    def _unexpected(self) -> None:
        text = self.text
        if text[self.at] == "[":
            self.error("dot_syntax", "attributes that belong to nothing", self.at, self.at + 1)
            self._attributes({})
            return
        self.error("dot_syntax", f"expected a statement, found {self._shown(self.at)}", self.at, self.at + 1)
        self._recover()

    def _statement(self, word: str, start: int, end: int, scope: _Scope, depth: int) -> None:
        self.at = end
        following = _edge_or_list(self.text, end)
        what = following["what"] if following is not None else ""
        if what == "=":
            self.at = start
            self._graph_attribute(scope)
        elif what == "[" and word in ("graph", "node", "edge"):
            self._defaults(word, scope)
        elif word == "subgraph":
            self._subgraph(scope, depth, start)
        elif what == "{" and word in ("digraph", "graph"):
            self.error("dot_second_graph", "a graph inside a graph; 'subgraph' groups", start, end)
            assert following is not None
            self.at = following.end() - 1
            self._group("", scope, depth, start)
        else:
            self._node_or_edges(self._id(word, start, end), start, self.at, scope)

    def _quoted(self, scope: _Scope) -> None:
        """An id in quotes."""
        start = self.at
        if (name := self._name()) is not None:
            following = _edge_or_list(self.text, self.at)
            if following is not None and following["what"] == "=":
                self.at = start
                self._graph_attribute(scope)
                return
            self._node_or_edges(name, start, self.at, scope)

    def _name(self) -> str | None:
        """The id that stands here, legal or made so; None where there is none."""
        text = self.text
        if text[self.at : self.at + 1] == '"':
            match = self._string(self.at)
            if match is None:
                self._unterminated(self.at)
                return None
            start, self.at = self.at, match.end()
            value = unescaped(match[0][1:-1])
            if _identifier(value):
                self.once(
                    "dot_tolerated", "ids in quotes are accepted where they would be legal without", start, self.at
                )
                return value
            return self._bad_id(value, start, self.at)
        word = _word(text, self.at)
        if word is None:
            return None
        self.at = word.end()
        return self._id(word[0], *word.span())

    def _id(self, word: str, start: int, end: int) -> str:
        if word.isidentifier() and word.isascii():
            return word
        head, colon, _port = word.partition(":")
        if colon and _identifier(head):
            self.error("dot_port", f"ports are not read: '{word}'", start + len(head), end, f"write '{head}'")
            return head
        return self._bad_id(word, start, end)

    def _bad_id(self, name: str, start: int, end: int) -> str:
        made = proposed_id(name)
        shown = name if len(name) <= 60 else name[:59] + "…"
        self.error(
            "bad_id",
            f"'{shown}' is not an id: letters, digits and _, not beginning with a digit",
            start,
            end,
            f"write {made} [label={escaped(shown)}]",
        )
        return made

    def _node_or_edges(self, name: str, start: int, end: int, scope: _Scope) -> None:
        text = self.text
        names = [(name, start, end)]
        groups: list[tuple[int, list[str]]] = []
        while True:
            self.skip()
            arrow = text[self.at : self.at + 2]
            if arrow not in ("->", "--"):
                break
            if arrow == "--":
                self.error("dot_undirected", "'--' has no direction; write '->'", self.at, self.at + 2)
            self.at += 2
            self.skip()
            at = self.at
            if text[at : at + 1] == "{" or _subgraph(text, at) is not None:
                members = self._members(names[-1][0], at)
                groups.append((len(names), members))
                names += [(each, at, at + 1) for each in members[:1]]
                continue
            target = self._name()
            if target is None:
                self.error("dot_syntax", f"expected an id after '->', found {self._shown(at)}", at, at + 1)
                self._recover()
                break
            names.append((target, at, self.at))
        own: Attributes = {}
        while text[self.at : self.at + 1] == "[":
            if own:
                self.once("dot_tolerated", "several [..] after each other are read as one", self.at, self.at + 1)
            self._attributes(own)
            self.skip()
        if len(names) == 1 and not groups:
            self._declare(*names[0], own, scope)
            return
        for each in names:
            self._mention(*each, scope)
        for (src, begin, _), (dst, _, stop) in pairwise(names):
            self.file.edges.append(DotEdge(src, dst, begin, stop, own, scope.edge))
        self._count(len(names), start)
        for position, members in groups:
            for member in members[1:]:
                self._mention(member, self.at, self.at + 1, scope)
                source, begin, stop = names[position - 1]
                self.file.edges.append(DotEdge(source, member, begin, stop, own, scope.edge))

    def _members(self, src: str, at: int) -> list[str]:
        """The ids of a group that an edge leads to, which is refused; read past it."""
        open = self.text.find("{", at)
        close = self.text.find("}", at)
        if open < 0 or close < 0:
            self.error("dot_group_edge", "an edge to a group of nodes is not read", at, at + 1)
            self.at = len(self.text)
            return []
        members = [word for word in re.findall(r"[A-Za-z_]\w*", self.text[open + 1 : close]) if word != "subgraph"]
        edges = "; ".join(f"{src} -> {member}" for member in members[:6]) + ("; …" if len(members) > 6 else "")
        self.error("dot_group_edge", "an edge to a group of nodes is not read", at, close + 1, f"write {edges}")
        self.at = close + 1
        return members

    def _declare(self, name: str, start: int, end: int, own: Attributes, scope: _Scope) -> None:
        nodes = self.file.nodes
        node = nodes.get(name)
        if node is None:
            if len(nodes) >= MAX_NODES:
                self._too_many(start)
                return
            groups = () if scope.group is None else (scope.group,)
            nodes[name] = DotNode(name, start, end, True, own, scope.node, groups)
            return
        if scope.group is not None and scope.group not in node.groups:
            node.groups = (*node.groups, scope.group)
        if not node.declared:
            node.declared, node.start, node.end, node.defaults = True, start, end, scope.node
        elif own:
            again = f"node '{name}' is declared again; the later value wins"
            self.say(Fault(Severity.INFO, "declared_twice", again, start, end))
        node.own = {**node.own, **own}

    def _mention(self, name: str, start: int, end: int, scope: _Scope) -> None:
        nodes = self.file.nodes
        if name in nodes:
            return
        if len(nodes) >= MAX_NODES:
            self._too_many(start)
            return
        groups = () if scope.group is None else (scope.group,)
        nodes[name] = DotNode(name, start, end, False, {}, scope.node, groups)

    def _too_many(self, start: int) -> None:
        if "L104" not in self.noted:
            self.noted.add("L104")
            message = f"too large: more than {MAX_NODES:,} nodes, or {MAX_VALUES:,} edges and attributes"
            self.error("L104", message, start, start + 1)

    def _subgraph(self, scope: _Scope, depth: int, start: int) -> None:
        self.skip()
        name = ""
        if self.text[self.at : self.at + 1] != "{":
            at = self.at
            name = self._name() or ""
            if not name:
                self.error("dot_syntax", f"expected '{{', found {self._shown(at)}", at, at + 1)
                self._recover()
                return
            self.skip()
        if self.text[self.at : self.at + 1] != "{":
            self.error("dot_syntax", f"expected '{{', found {self._shown(self.at)}", self.at, self.at + 1)
            self._recover()
            return
        self._group(name, scope, depth, start)

    def _group(self, name: str, scope: _Scope, depth: int, start: int) -> None:
        """A subgraph, from its opening brace."""
        self.at += 1
        if depth >= MAX_DEPTH:
            self.error("L104", too_deep(), start, start + 1)
            self.at = len(self.text)
            return
        inner = _Scope(scope.node, scope.edge, DotGroup(scope.group, name))
        known = len(self.file.nodes)
        self._statements(inner, depth + 1)
        self.skip()
        if self.text[self.at : self.at + 2] in ("->", "--"):
            members = list(self.file.nodes)[known:]
            shown = "; ".join(f"{member} -> …" for member in members[:6])
            hint = f"write {shown}" if members else ""
            self.error("dot_group_edge", "an edge from a group of nodes is not read", self.at, self.at + 2, hint)
            self._recover()

    def _defaults(self, word: str, scope: _Scope) -> None:
        own: Attributes = {}
        self.skip()
        while self.text[self.at : self.at + 1] == "[":
            self._attributes(own)
            self.skip()
        if word == "graph":
            self._of_graph(own, scope)
            return
        merged = {**(scope.node if word == "node" else scope.edge), **own}
        if len(merged) > MAX_DEFAULTS:
            at = next(iter(own.values())).key_start
            self.error("dot_defaults", f"more than {MAX_DEFAULTS} defaults for each {word}", at, at + 1)
        elif word == "node":
            scope.node = merged
        else:
            scope.edge = merged

    def _graph_attribute(self, scope: _Scope) -> None:
        """``key = value`` as a statement."""
        own: Attributes = {}
        if not self._attribute(own):
            self._recover()
        self._of_graph(own, scope)

    def _of_graph(self, own: Attributes, scope: _Scope) -> None:
        if scope.group is None:
            self.file.attributes.update(own)
        elif "label" in own:
            scope.group.label = own["label"].value

    # -- attributes ---------------------------------------------------------------------------------------------------

    def _attributes(self, own: Attributes) -> None:
        """One ``[..]``; the later value wins."""
        text, opened = self.text, self.at
        at = self.at + 1
        seen: set[str] = set()
        before = ","
        """The text after the attribute before: a comma, a semicolon, nothing, or ? for a fault that was told
        already."""
        while not self.given_up:
            match = _attribute(text, at)
            if match is not None:
                key, bare, value, separator = match.group("key", "bare", "text", "end")
                if bare is None:
                    start, end = match.span("text")
                    made = Attribute(
                        key,
                        value if "\\" not in value else unescaped(value),
                        True,
                        *match.span("key"),
                        start - 1,
                        end + 1,
                    )
                elif _bare(bare) is not None and not text.startswith("+", match.end("bare")):
                    made = Attribute(key, bare, False, *match.span("key"), *match.span("bare"))
                else:
                    match = None
            if match is not None:
                if self.hashes:
                    self._hash(at, match.start("key"))
                if before not in (",", "?"):
                    self._separated(before, match.start("key"))
                before = separator
                self._set(own, made, seen)
                at = match.end()
                continue
            self.at = at
            self.skip()
            char = text[self.at : self.at + 1]
            if char == "]":
                if before == "," and seen:
                    self.once("dot_tolerated", "a comma behind the last attribute is accepted", self.at, self.at + 1)
                self.at += 1
                return
            if not char or (char in "{}" and self.at > self.last_bracket):
                self._open_at_end("bracket", opened)
                return
            before = "?"
            if char in ",;":
                self.at += 1
                before = ","
            elif char == "+":
                self._plus()
                self._resume_in_list()
            elif not self._attribute(own, seen):
                self._resume_in_list()
            at = self.at
        self.at = len(text)

    def _separated(self, separator: str, at: int) -> None:
        said = "; between attributes is read as a comma" if separator else "attributes without a comma are accepted"
        self.once("dot_tolerated", said, at, at + 1)

    def _set(self, own: Attributes, made: Attribute, seen: set[str]) -> None:
        if made.key in seen:
            message = f"'{made.key}' is written twice; the later value wins"
            self.say(Fault(Severity.WARNING, "key_twice", message, made.key_start, made.key_end))
        seen.add(made.key)
        own[made.key] = made
        self._count(1, made.key_start)

    def _attribute(self, own: Attributes, seen: set[str] | None = None) -> bool:
        """One ``key = value``, told in full what is wrong with it. Whether it could be read."""
        text = self.text
        key_start = self.at
        if (quoted := self._string(self.at)) is not None:
            key, self.at = unescaped(quoted[0][1:-1]), quoted.end()
            if not re.fullmatch(_KEY, key):
                self._no_value(key_start, self.at)
                return False
        else:
            word = _word(text, self.at)
            if word is None:
                found = self._shown(self.at)
                if text[self.at] == '"':
                    self._unterminated(self.at)
                    return False
                self.error("dot_syntax", f"expected an attribute, found {found}", self.at, self.at + 1)
                return False
            key, self.at = word[0], word.end()
        key_end = self.at
        self.skip()
        if text[self.at : self.at + 1] != "=":
            self._no_value(key_start, key_end)
            return False
        if not re.fullmatch(_KEY, key):
            self.error("dot_syntax", f"'{key[:60]}' is not an attribute name", key_start, key_end)
        self.at += 1
        self.skip()
        value = self._value(key, key_end)
        if value is None:
            return False
        self._set(
            own, Attribute(key, value[0], value[1], key_start, key_end, *value[2:]), seen if seen is not None else set()
        )
        return True

    def _plus(self) -> None:
        self.error("dot_concatenation", "strings cannot be put together with +; write one", self.at, self.at + 1)

    def _no_value(self, start: int, end: int) -> None:
        shown = self.text[start : min(end, start + 60)]
        hint = 'is there an unescaped " before it? inside a string write \\"'
        self.error("dot_value", f"attribute without a value: {shown}", start, end, hint)

    def _value(self, key: str, key_end: int) -> tuple[str, bool, int, int] | None:
        text, start = self.text, self.at
        char = text[start : start + 1]
        if char == '"':
            match = self._string(start)
            if match is None:
                self._unterminated(start)
                return None
            self.at = match.end()
            plus = self.at
            self.skip()
            if text[self.at : self.at + 1] == "+":
                self.error(
                    "dot_concatenation", "strings cannot be put together with +; write one", self.at, self.at + 1
                )
                return None
            self.at = plus
            return unescaped(match[0][1:-1]), True, start, match.end()
        if char == "<":
            depth, self.at = 0, start
            while self.at < len(text):
                depth += {"<": 1, ">": -1}.get(text[self.at], 0)
                self.at += 1
                if not depth:
                    break
            self.error("dot_html", "HTML-like values are not read; write a string", start, self.at)
            return None
        match = re.compile(r"[^\s\[\]{};,=\"<>]+").match(text, start)
        if match is None:
            self.error(
                "dot_value", f"attribute without a value: {key}", key_end - len(key), key_end, "a value follows '='"
            )
            return None
        self.at = match.end()
        if _bare(match[0]) is None:
            shown = escaped(match[0][:60])
            self.error("dot_value", f"this value needs quotes: {match[0][:60]}", start, self.at, f"write {key}={shown}")
            return match[0], False, start, self.at
        return match[0], False, start, self.at

    # -- going on -----------------------------------------------------------------------------------------------------

    def skip(self) -> None:
        """Past blanks and comments."""
        match = _gap(self.text, self.at)
        assert match is not None
        if self.hashes:
            self._hash(self.at, match.end())
        self.at = match.end()
        if self.text.startswith("/*", self.at):
            self.error("dot_unterminated", "the comment that opens here is never closed", self.at, self.at + 2)
            self.at = len(self.text)

    def _hash(self, start: int, end: int) -> None:
        """Told of a line of comment that begins with # between two tokens."""
        at = bisect_left(self.hashes, start)
        if at < len(self.hashes) and self.hashes[at] < end:
            self.once("dot_tolerated", _HASH, self.hashes[at], self.hashes[at] + 1)

    def _unterminated(self, at: int) -> None:
        self.error("dot_unterminated", "the string that opens here is never closed", at, at + 1)
        self.at = self._line_end(at)

    def _recover(self) -> None:
        """To the end of the statement: a ``;``, a ``}`` or the end of the line; strings are passed over whole."""
        text = self.text
        while self.at < len(text):
            char = text[self.at]
            if char == '"' and (match := self._string(self.at)) is not None:
                self.at = match.end()
                continue
            if char in "}":
                return
            self.at += 1
            if char in ";\n":
                return

    def _resume_in_list(self) -> None:
        """To the next attribute, or to the end of the list."""
        text = self.text
        while self.at < len(text):
            char = text[self.at]
            if char == '"':
                match = self._string(self.at)
                if match is not None and "\n" not in match[0]:
                    self.at = match.end()
                    continue
                self.at += 1
                continue
            if char in "],;":
                return
            if char == "\n" and _attribute(text, self.at) is not None:
                return
            self.at += 1

    def _line_end(self, at: int) -> int:
        end = self.text.find("\n", at)
        return end if end >= 0 else len(self.text)

    def _shown(self, at: int) -> str:
        """Returns the text at this place, for a message."""
        if at >= len(self.text):
            return "the end of the file"
        word = _word(self.text, at)
        found = word[0] if word is not None else self.text[at]
        return f"'{found[:40]}'"


def nearest_id(name: str, known: list[str]) -> str:
    """The declared id that a misspelt one probably stands for; empty where there is none."""
    near = get_close_matches(name, known, 1, 0.7)
    return near[0] if near else ""
