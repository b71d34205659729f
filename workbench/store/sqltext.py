"""SQL as tokens: enough to tell strings and comments from the rest, never to understand a statement."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from workbench.store.faults import StoreError

MAGIC = frozenset({"all_data", "all_evals"})
"""Names that may be written in any letter case."""

_TOKEN = re.compile(
    r"""
    (?P<comment>--[^\n]*|//[^\n]*|\#[ !][^\n]*|/\*.*?\*/)
  | (?P<space>\s+)
  | (?P<heredoc>\$(?P<tag>\w*)\$.*?\$(?P=tag)\$)
  | (?P<string>'(?:[^'\\]|\\.|'')*'|\u2018[^\u2019]*\u2019)
  | (?P<quoted>`(?:[^`\\]|\\.|``)*`|"(?:[^"\\]|\\.|"")*"|\u201c[^\u201d]*\u201d)
  | (?P<word>[A-Za-z_][A-Za-z0-9_]*)
  | (?P<end>;)
  | (?P<other>.)
    """,
    re.VERBOSE | re.DOTALL,
)
_OPENING = re.compile(r"""['"`\u2018\u201c]|/\*|\$\w*\$""")


class BadSql(StoreError):
    """SQL that is not run, and why."""


class Token(NamedTuple):
    """A piece of the text. The pieces together are the text."""

    kind: str
    """comment, space, heredoc, string, quoted, word, end or other."""
    text: str


def tokens(sql: str) -> Iterator[Token]:
    """The pieces of a text. Raises BadSql where a string, a name or a comment is not closed."""
    for match in _TOKEN.finditer(sql):
        kind = match.lastgroup if match.lastgroup != "tag" else "heredoc"
        if kind == "other" and _OPENING.match(sql, match.start()):
            line = sql.count("\n", 0, match.start()) + 1
            raise BadSql(f"line {line}: {match[0]} is not closed")
        yield Token(kind or "other", match[0])


def one_statement(sql: str) -> str:
    """The text with the magic names in lower case. Raises BadSql for several statements, none, or an output clause."""
    found = list(tokens(sql))
    while found and (found[-1].kind in ("space", "comment", "end")):
        found.pop()
    if not any(token.kind not in ("space", "comment") for token in found):
        raise BadSql("there is no statement")
    if any(token.kind == "end" for token in found):
        raise BadSql("one statement at a time")
    words = [token.text.upper() for token in found if token.kind not in ("space", "comment")]
    for before, word in pairwise(words):
        if before == "INTO" and word == "OUTFILE":
            raise BadSql("INTO OUTFILE is not allowed (--format writes files)")
    if len(words) > 2 and words[-2] == "FORMAT":
        raise BadSql("FORMAT is not allowed (--format chooses the form)")
    return "".join(_lowered(token) for token in found)


def _lowered(token: Token) -> str:
    return token.text.lower() if token.kind == "word" and token.text.lower() in MAGIC else token.text
