"""Stands between a user's SQL and the engine: against accidents, not against an attacker.

The embedded engine's ``readonly`` still reads files by a scalar function, writes them by ``INTO OUTFILE`` and kills
queries, so a statement is read three times before it runs: by our tokenizer, by the engine's parser as a mere
string, and as a syntax tree whose every node and function must be on a list.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from workbench.store.database import Handle
from workbench.store.functions import is_allowed
from workbench.store.sqltext import BadSql, one_statement
from workbench.store.values import Value

_ROOTS = re.compile(r"SelectWithUnionQuery|Explain|DescribeQuery|Show\w+")
_NODE_NAMES = """
SelectWithUnionQuery SelectQuery SelectIntersectExceptQuery ExpressionList TablesInSelectQuery
TablesInSelectQueryElement TableExpression TableIdentifier TableJoin ArrayJoin Subquery Identifier Literal Function
Asterisk QualifiedAsterisk ColumnsRegexpMatcher ColumnsListMatcher QualifiedColumnsRegexpMatcher
QualifiedColumnsListMatcher ColumnsTransformerList ColumnsExceptTransformer ColumnsReplaceTransformer
ColumnsReplaceTransformer::Replacement OrderByElement InterpolateElement WindowDefinition WindowListElement
WithElement Set QueryParameter Explain DescribeQuery
"""
_NODES = frozenset(_NODE_NAMES.split())
_LINE = re.compile(r"( *)([A-Za-z:]+)(?: (\S+))?")


def checked(handle: Handle, sql: str, params: Mapping[str, Value] | None = None) -> str:
    """The statement as it may be run on this read-only handle. Raises BadSql, which says what is not allowed, and
    DatabaseError where the statement cannot be parsed."""
    text = one_statement(sql)
    if "\0" in text:
        raise BadSql("a NUL character is not allowed")
    handle.query("SELECT formatQuerySingleLine({statement:String})", {"statement": text})
    tree = handle.raw(f"EXPLAIN AST {text}", "TabSeparatedRaw", params).decode("utf-8", "replace")
    _check_tree(tree)
    return text


def _check_tree(tree: str) -> None:
    found = [_LINE.match(line) for line in tree.split("\n") if line.strip()]
    root = found[0][2] if found and found[0] else ""
    if _ROOTS.fullmatch(root) is None:
        raise BadSql("only SELECT, EXPLAIN, SHOW and DESCRIBE are allowed")
    for match in found[1:]:
        if match is None:
            raise BadSql("the statement has a part that is not known to be harmless")
        indent, node, name = match[1], match[2], match[3] or ""
        if node == "Function" and not is_allowed(name):
            raise BadSql(f"function {name[:60]!a} is not allowed")
        if node not in _NODES:
            raise BadSql(f"{node} is not allowed")
        if len(indent) == 1 and node in ("Identifier", "Literal") and not root.startswith(("Show", "Describe")):
            raise BadSql("FORMAT and INTO OUTFILE are not allowed (--format chooses the form)")
