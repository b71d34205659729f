"""Checks one SQL statement of a model: it only reads, and only files of the workspace. The child checks it again."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from enum import Enum

from msgspec import Struct, field

from workbench.tools.calling import check

# Splits SQL into tokens by the rules of the engine that will read it, so that words in strings are not mistaken.


class Lexeme(Enum):
    """Kinds of token."""

    SPACE = "space"
    """White space and comments."""
    STRING = "string"
    QUOTED = "quoted"
    """An identifier in quotes."""
    WORD = "word"
    NUMBER = "number"
    SIGN = "sign"


class Token(Struct, frozen=True):
    """One token with its text as written."""

    kind: Lexeme
    text: str

    @property
    def word(self) -> str:
        """In capitals, for an unquoted word; empty otherwise."""
        return self.text.upper() if self.kind is Lexeme.WORD else ""

    @property
    def value(self) -> str:
        """The value of a string or identifier, its quotes and escapes removed."""
        if self.kind is Lexeme.QUOTED or (self.kind is Lexeme.STRING and self.text[0] == "'"):
            return _unquoted(self.text)
        return self.text


class SqlError(ValueError):
    """SQL that is refused, or that cannot be read; the message is for the model."""


MAX_SQL = 200_000
"""Characters of a statement; the engine takes 262,144 bytes."""
_SPACE = re.compile(r"\s+|--[^\n]*|#(?:[ !][^\n]*|(?=\n|$))")
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NUMBER = re.compile(r"\d[A-Za-z0-9_]*(?:\.\d+(?:[eE][+-]?\d+)?)?")
_QUOTES = {"'": Lexeme.STRING, '"': Lexeme.QUOTED, "`": Lexeme.QUOTED}
_HEREDOC = re.compile(r"\$\w*\$")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "b": "\b", "f": "\f", "a": "\a", "v": "\v"}


def tokens(sql: str) -> list[Token]:
    """All tokens; their texts joined give the SQL back. Raises SqlError where it cannot be split with certainty."""
    if len(sql) > MAX_SQL:
        raise SqlError(f"the statement has {len(sql):,} characters; it may have {MAX_SQL:,}")
    found: list[Token] = []
    position = 0
    while position < len(sql):
        check()
        kind, end = _next(sql, position)
        found.append(Token(kind, sql[position:end]))
        position = end
    return found


def _next(sql: str, start: int) -> tuple[Lexeme, int]:
    char = sql[start]
    if sql.startswith("/*", start):
        return Lexeme.SPACE, _comment_end(sql, start)
    if char in _QUOTES:
        return _QUOTES[char], _quote_end(sql, start)
    for pattern, kind in ((_SPACE, Lexeme.SPACE), (_WORD, Lexeme.WORD), (_NUMBER, Lexeme.NUMBER)):
        if match := pattern.match(sql, start):
            return kind, match.end()
    if match := _HEREDOC.match(sql, start):
        end = sql.find(match[0], match.end())
        if end < 0:
            raise SqlError("a $…$ text is not closed")
        return Lexeme.STRING, end + len(match[0])
    if not 32 < ord(char) < 127:
        raise SqlError(f"the character {char!r} may only stand in quotes")
    return Lexeme.SIGN, start + 1


def _comment_end(sql: str, start: int) -> int:
    """Comments nest."""
    depth, position = 0, start
    while position < len(sql):
        if sql.startswith("/*", position):
            depth, position = depth + 1, position + 2
        elif sql.startswith("*/", position):
            depth, position = depth - 1, position + 2
            if not depth:
                return position
        else:
            position += 1
    raise SqlError("a comment is not closed")


def _quote_end(sql: str, start: int) -> int:
    """A quote inside is written twice, or after a backslash."""
    quote, position = sql[start], start + 1
    while position < len(sql):
        if sql[position] == "\\":
            position += 2
        elif sql[position] != quote:
            position += 1
        elif sql.startswith(quote * 2, position):
            position += 2
        else:
            return position + 1
    raise SqlError(f"a {quote} is not closed")


def _unquoted(text: str) -> str:
    quote, body = text[0], text[1:-1].replace(text[0] * 2, text[0])
    return re.sub(r"\\(.)", lambda m: _ESCAPES.get(m[1], m[1]), body, flags=re.DOTALL) if quote else body


STATEMENTS = frozenset({"SELECT", "WITH", "DESCRIBE", "DESC", "EXPLAIN", "SHOW"})
TABLE_FUNCTIONS = frozenset(
    {
        *("file", "numbers", "numbers_mt", "zeros", "zeros_mt", "values", "null", "view", "format", "primes"),
        *("generate_series", "generateseries", "generaterandom"),
    }
)
"""All table functions that may be used; the child refuses the engine's others by its own list."""
DENIED = re.compile(
    r"(dict|region|ai(filter|similarity|embed|classify|generate|extract|redact|translate)|sleep|filesystem|addressto|"
    r"demangle|hostname|fullhostname|fqdn|getmacro|getserver|serveruuid|showcertificate|catboost|joinget|zookeeper|"
    r"getclienthttp|getoskernel|tcpport|buildid|hascolumnintable|executable|remote|url$|urlcluster|s3|gcs|oss|cosn|hdfs|"
    r"azure|mysql|postgresql|sqlite|mongo|redis|odbc|jdbc|iceberg|paimon|hudi|deltalake|cluster|python|eval$|input$|"
    r"merge$|mergetree|loop$|dictionary|fuzz|viewifpermitted|viewexplain|arrowstream|ytsaurus|bigquery|prometheus|"
    r"timeseries(data|tags|metric|samples|selector))",
    re.IGNORECASE,
)
"""Functions that reach beyond the data: by the beginning of their names, in any letter case."""
SETTINGS = re.compile(
    r"(input_format_(csv|tsv|json|parquet|null|skip|allow_errors)\w*|schema_inference_\w+|format_csv_\w+|"
    r"date_time_input_format|join_use_nulls|group_by_use_nulls|join_default_strictness)",
    re.IGNORECASE,
)
_READERS = frozenset({"READ_CSV", "READ_CSV_AUTO", "READ_PARQUET", "PARQUET_SCAN", "READ_JSON", "READ_JSON_AUTO"})
_BEFORE_TABLE = frozenset({"FROM", "JOIN", "DESCRIBE", "DESC", "TABLE"})
_PLAIN = re.compile(r"[^\x00-\x1f'\\{}*?\[\]]+")


class GuardedSql(Struct):
    """A statement that may run."""

    sql: str
    files: list[str] = field(default_factory=list)
    """The arguments of ``file()`` in it, as written."""


Find = Callable[[str], Sequence[str]]
"""Names a file or a pattern as in the SQL; gives the paths to read, relative to the child's folder or absolute."""


def guard(sql: str, find: Find) -> GuardedSql:
    """Check a statement and put the files' real paths into it.

    ``'x.csv'`` or ``"x.csv"`` after FROM, JOIN or DESCRIBE and the usual ``read_csv('x.csv')`` become
    ``file('x.csv')``. Raises SqlError with what is refused; what ``find`` raises passes through.
    """
    words = _one_statement(tokens(sql))
    _refuse_words(words)
    return _with_files(_without_format(words), find)


def _one_statement(found: list[Token]) -> list[Token]:
    """The tokens without comments (one space stands for all in a row) and without a last semicolon."""
    words: list[Token] = []
    for token in found:
        if token.kind is not Lexeme.SPACE:
            words.append(token)
        elif not words or words[-1].kind is not Lexeme.SPACE:
            words.append(Token(Lexeme.SPACE, " "))
    while words and (words[-1].kind is Lexeme.SPACE or words[-1].text == ";"):
        words.pop()
    if any(token.text == ";" and token.kind is Lexeme.SIGN for token in words):
        raise SqlError("one statement at a time")
    first = next((token.word for token in words if token.kind is not Lexeme.SPACE and token.text != "("), "")
    if first == "FROM":
        raise SqlError("begin with SELECT, then FROM")
    if first not in STATEMENTS:
        raise SqlError(f"only {', '.join(sorted(STATEMENTS))} can be run, not {first or 'this'}")
    return words


def _refuse_words(words: list[Token]) -> None:
    dense = [token for token in words if token.kind is not Lexeme.SPACE]
    for token, following in zip(dense, [*dense[1:], Token(Lexeme.SIGN, "")], strict=True):
        if token.word == "OUTFILE":
            raise SqlError("INTO OUTFILE is refused: nothing is written")
        if token.word == "SYSTEM" and following.text == ".":
            raise SqlError("the tables of 'system' are not open")
        is_name = token.kind in (Lexeme.WORD, Lexeme.QUOTED)
        if is_name and following.text == "(" and DENIED.match(token.value):
            raise SqlError(f"the function {token.value} is refused: only files of the workspace can be read")
    _refuse_settings(dense)


def _refuse_settings(dense: list[Token]) -> None:
    """Every ``name =`` of a SETTINGS clause must be one that cannot lift a limit or name a file."""
    for index, token in enumerate(dense):
        if token.word != "SETTINGS":
            continue
        for name, sign in zip(dense[index + 1 :], dense[index + 2 :], strict=False):
            if sign.text == "=" and name.kind is Lexeme.WORD and not SETTINGS.fullmatch(name.text):
                raise SqlError(f"the setting {name.text} cannot be changed here")


def _without_format(words: list[Token]) -> list[Token]:
    """The result is always a table: a last ``FORMAT name`` is removed."""
    dense = [index for index, token in enumerate(words) if token.kind is not Lexeme.SPACE]
    if len(dense) > 2 and words[dense[-2]].word == "FORMAT" and words[dense[-1]].kind is Lexeme.WORD:
        return words[: dense[-2]]
    return words


def _with_files(words: list[Token], find: Find) -> GuardedSql:
    result = GuardedSql("")
    position, before = 0, ""
    while position < len(words):
        token = words[position]
        following = _after(words, position)
        name = token.value.upper() if token.kind in (Lexeme.WORD, Lexeme.QUOTED) else ""
        if following is not None and words[following].text == "(" and (name == "FILE" or name in _READERS):
            argument = _argument(words, following, name)
            result.sql += _file(words[argument].value, find, result)[:-1]
            position = argument
        elif before in _BEFORE_TABLE and _names_file(token):
            result.sql += _file(token.value, find, result)
        else:
            result.sql += token.text
        before = before if token.kind is Lexeme.SPACE else token.word
        position += 1
    return result


def _after(words: list[Token], position: int) -> int | None:
    """Index of the next token that is not space."""
    return next((i for i in range(position + 1, len(words)) if words[i].kind is not Lexeme.SPACE), None)


def _argument(words: list[Token], opening: int, name: str) -> int:
    """Index of the one literal that names the file; what follows it stays as written."""
    at = _after(words, opening)
    after = _after(words, at) if at is not None else None
    if at is None or after is None or words[at].kind is not Lexeme.STRING or words[after].text not in (",", ")"):
        raise SqlError(f"{name.lower()}() takes the name of a file in single quotes")
    if name != "FILE" and words[after].text == ",":
        raise SqlError(f"{name.lower()}() takes the name alone; use file('name', CSVWithNames) to say more")
    return at


def _names_file(token: Token) -> bool:
    """A string in place of a table, or a quoted name with an ending."""
    return token.kind is Lexeme.STRING or (token.kind is Lexeme.QUOTED and "." in token.value)


def _file(name: str, find: Find, result: GuardedSql) -> str:
    """``file('…')`` with the paths that the name stands for."""
    if "::" in name:
        raise SqlError("files inside archives cannot be read")
    paths = list(find(name))
    for path in paths:
        if not _PLAIN.fullmatch(path) or "::" in path or (len(paths) > 1 and "," in path):
            raise SqlError(f"the file name {path!r} cannot be used in SQL; rename the file")
    text = paths[0] if len(paths) == 1 else "{" + ",".join(paths) + "}"
    result.files.append(text)
    return f"file('{text}')"
