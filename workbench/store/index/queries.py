"""Questions to the tables: the user's own SQL behind the guard, and the query functions."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from workbench.context.place import Place, visit_named
from workbench.store.faults import StoreError
from workbench.store.index.database import READS, DatabaseError, marked
from workbench.store.index.row_values import json_text
from workbench.store.index.table import ResultTable, marked_predictions
from workbench.store.index.tables import MessageRow
from workbench.store.index.values import Value
from workbench.store.sqltext import BadSql, one_statement

# Work that the main thread waits for without going deaf: it hears signals while native code runs.

T = TypeVar("T")
_LISTEN = 0.1
"""Seconds. A signal that the kernel gives to one of the engine's threads does not wake a waiting main thread."""


def attended(work: Callable[[], T], stop: Callable[[], None]) -> T:
    """The result of ``work``. On the main thread it is done in another one; Ctrl+C calls ``stop`` and is raised.

    Raises what ``work`` raises.
    """
    if threading.current_thread() is not threading.main_thread():
        return work()
    with ThreadPoolExecutor(1, thread_name_prefix="query") as pool:
        future = pool.submit(work)
        try:
            while not future.done():
                wait([future], _LISTEN)
        except KeyboardInterrupt:
            stop()
            raise
        return future.result()


# Functions that SQL of a user may call: they compute on their arguments and reach no file, network or other query.
# ``name*`` stands for every name that begins so. Aggregate functions may carry the engine's combinators.

_SCALAR = """
and or not xor if ifNull nullIf coalesce multiIf caseWithExpression least greatest clamp assumeNotNull toNullable
isNull isNotNull isNullable isZeroOrNull isDistinctFrom isNotDistinctFrom
equals notEquals less greater lessOrEquals greaterOrEquals between in notIn globalIn globalNotIn nullIn notNullIn
exists inIgnoreSet
plus minus multiply divide divideOrNull intDiv intDivOrZero intDivOrNull modulo mod moduloOrZero positiveModulo negate
abs sign sqrt cbrt exp exp2 exp10 log log2 log10 log1p ln pow power pi e floor ceil ceiling round roundBankers trunc
truncate gcd lcm sin cos tan asin acos atan atan2 sigmoid isNaN isFinite isInfinite ifNotFinite max2 min2 widthBucket
bitAnd bitOr bitXor bitNot bitCount bitShiftLeft bitShiftRight bitTest bin unbin hex unhex char
CAST _CAST accurateCast* to* reinterpret* parseDateTime* parseReadableSize* formatReadable* formatDateTime* formatRow*
now now64 today yesterday timezone timezoneOf timeZoneOf timeZone makeDate* makeDateTime* date* addDate subDate add*
subtract* age dateDiff timeDiff timestampDiff timestamp_diff date_diff dateTrunc date_trunc time_bucket timeSlot
fromUnixTimestamp* monthName YEAR MONTH DAY HOUR MINUTE SECOND QUARTER DAYOFWEEK DAYOFMONTH DAYOFYEAR week yearweek
UUIDv7ToDateTime snowflakeIDToDateTime* curdate timestamp localtimestamp current_timestamp current_date tumble* hop*
length lengthUTF8 empty notEmpty lower upper lowerUTF8 upperUTF8 lcase ucase initcap initcapUTF8 reverse reverseUTF8
concat concatWithSeparator concat_ws substring substr mid substringUTF8 substringIndex left right leftUTF8 rightUTF8
leftPad rightPad lpad rpad leftPadUTF8 rightPadUTF8 trim trimLeft trimRight trimBoth ltrim rtrim repeat space format
printf replace replaceAll replaceOne replaceRegexpAll replaceRegexpOne translate translateUTF8 overlay
startsWith* endsWith* position positionCaseInsensitive positionUTF8 positionCaseInsensitiveUTF8 locate instr
countSubstrings* like notLike ilike notILike match notMatch extract extractAll extractGroups extractAllGroups*
regexpExtract regexpQuoteMeta countMatches* hasToken* hasAllTokens hasAnyTokens hasAllToken hasAnyToken hasPhrase
hasSubsequence* multiSearch* multiMatch* ngram* splitBy* alphaTokens tokens arrayStringConcat extractKeyValuePairs*
extractURLParameter* domain* protocol path pathFull queryString decodeURLComponent encodeURLComponent base64* base58*
editDistance* levenshteinDistance* jaroSimilarity jaroWinklerSimilarity stringJaccardIndex* damerauLevenshteinDistance
normalizeUTF8* isValidUTF8 toValidUTF8 ascii soundex firstLine highlight removeDiacriticsUTF8 stringBytesEntropy
MD5 SHA1 SHA224 SHA256 SHA384 SHA512 sipHash* cityHash64 xxHash* xxh3 murmurHash* farmHash64 halfMD5 CRC32 CRC64
JSON* simpleJSON* visitParam* isValidJSON toJSONString prettyPrintJSON
array array* has hasAll hasAny hasSubstr indexOf countEqual range flatten emptyArray* arrayJoin notHas unnest
tuple tuple* untuple map map* lambda L1Distance L2Distance LinfDistance cosineDistance L1Norm L2Norm dotProduct
rand rand32 rand64 randUniform randNormal generateUUIDv4 generateUUIDv7 identity materialize ignore bar
currentDatabase database version uptime toTypeName toColumnTypeName byteSize transform throwIf grouping
rowNumberInAllBlocks rowNumberInBlock runningDifference neighbor visibleWidth getSetting dictGet dictGetOrDefault
dictGetOrNull dictGetString dictHas
"""

_AGGREGATE = """
count countDistinct sum avg min max any anyLast any_value anyHeavy first_value last_value argMin argMax uniq uniqExact
uniqCombined uniqHLL12 uniqCombined64 median median* quantile quantile* quantiles quantiles* stddev* varPop varSamp
varPopStable varSampStable covarPop covarSamp corr skewPop skewSamp kurtPop kurtSamp entropy groupArray*
groupUniqArray group_concat groupConcat string_agg groupBitAnd groupBitOr groupBitXor topK topKWeighted histogram
sumMap minMap maxMap sumWithOverflow sumKahan sumCount avgWeighted deltaSum deltaSumTimestamp boundingRatio
simpleLinearRegression regr_* rankCorr studentTTest welchTTest mannWhitneyUTest sparkbar singleValueOrNull
windowFunnel sequenceMatch sequenceCount retention exponentialMovingAverage largestTriangleThreeBuckets contingency
row_number rank dense_rank percent_rank percentRank cume_dist ntile nth_value lag lead lagInFrame leadInFrame
"""

_TABLE = "numbers values view generate_series generateSeries zeros"

_COMBINATORS = (
    "If|Array|Map|Distinct|OrDefault|OrNull|State|SimpleState|Merge|MergeState|ForEach|Resample|ArgMin|ArgMax|Tuple"
)


def _pattern(names: str, suffix: str = "") -> str:
    return "|".join(
        re.escape(name.removesuffix("*")) + (r"\w*" if name.endswith("*") else suffix) for name in names.split()
    )


_ALLOWED = re.compile(
    f"{_pattern(_SCALAR)}|{_pattern(_TABLE)}|{_pattern(_AGGREGATE, f'({_COMBINATORS})*')}", re.IGNORECASE
)


def is_allowed(name: str) -> bool:
    """Returns whether a function of this name may be called; letter case does not matter."""
    return _ALLOWED.fullmatch(name) is not None


# Stands between a user's SQL and the engine: against accidents, not against an attacker. The embedded engine's
# ``readonly`` still reads files by a scalar function, writes them by ``INTO OUTFILE`` and kills queries, so a
# statement is read three times before it runs: by our tokenizer, by the engine's parser as a mere string, and as a
# syntax tree whose every node and function must be on a list.

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
_OWN = {"random": "rand()"}
"""Functions of other dialects that published queries for these tables use."""
_LINE = re.compile(r"( *)([A-Za-z:]+)(?: (\S+))?")


def checked(handle: Readable, sql: str, params: Mapping[str, Value] | None = None) -> str:
    """The statement as it may run on this read-only handle. Raises BadSql, which says what is not allowed, and
    DatabaseError if the statement cannot be parsed.
    """
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
            own = f" (ClickHouse has {_OWN[name.lower()]})" if name.lower() in _OWN else ""
            raise BadSql(f"function {name[:60]!a} is not allowed{own}")
        if node not in _NODES:
            raise BadSql(f"{node} is not allowed")
        if len(indent) == 1 and node in ("Identifier", "Literal") and not root.startswith(("Show", "Describe")):
            raise BadSql("FORMAT and INTO OUTFILE are not allowed (--format chooses the form)")


SECONDS = 30
"""After which a query is ended by the engine."""

_BODIES = "full_request_json, full_response_json, cascade_json, phase_json"
_COSTS = """
SELECT m.phase_name AS phase_name, countIf(NOT m.recorded) AS calls,
  sum(m.tokens_in) AS tokens_in, sum(m.tokens_out) AS tokens_out,
  sum(m.tokens_cached) AS tokens_cached, sum(m.cost) AS cost, countIf(m.cost IS NULL) AS unknown_costs
FROM messages AS m WHERE m.cascade_id = {cascade:String} AND m.response_hash != ''
GROUP BY m.phase_name ORDER BY cost DESC, phase_name"""
_SOUNDINGS = """
SELECT m.run_id AS run_id, m.branch AS branch, m.visit AS visit, m.sounding_index AS sounding_index,
  m.reforge_step AS reforge_step, any(m.is_winner) AS is_winner,
  any(m.mutation_type) AS mutation_type, any(m.mutation_applied) AS mutation_applied,
  groupUniqArrayIf(m.model, m.response_hash != '') AS models,
  countIf(m.response_hash != '' AND NOT m.recorded) AS calls,
  sum(m.tokens_in) AS tokens_in, sum(m.tokens_out) AS tokens_out, sum(m.cost) AS cost,
  countIf(m.response_hash != '' AND m.cost IS NULL) AS unknown_costs,
  argMaxIf(m.content_json, m.seq, m.node_type = 'agent') AS last_answer_json,
  any(e.scores) AS scores
FROM messages AS m LEFT JOIN (
  SELECT run_id, branch, visit, groupArray(tuple(sounding_index, score, notes)) AS scores FROM evals
  WHERE phase_name = {phase:String} AND rater = 'evaluator' GROUP BY run_id, branch, visit
) AS e ON e.run_id = m.run_id AND e.branch = m.branch AND e.visit = m.visit
WHERE m.phase_name = {phase:String} AND m.sounding_index IS NOT NULL AND m.run_id IN
  (SELECT run_id FROM messages WHERE session_id = {session:String})
GROUP BY m.run_id, m.branch, m.visit, m.sounding_index, m.reforge_step
ORDER BY run_id, visit, reforge_step NULLS FIRST, branch, sounding_index"""
_SEARCH = """
SELECT run_id, session_id, phase_name, branch, visit, attempt_number, turn_number, call, node_type, role, seq,
  toString(message_id) AS message_id,
  substringUTF8(content_json,
    greatest(1, toInt64(positionCaseInsensitiveUTF8(content_json, {words:Array(String)}[1])) - 60), 200) AS excerpt
FROM messages
WHERE arrayAll(word -> positionCaseInsensitiveUTF8(content_json, word) > 0, {words:Array(String)})
ORDER BY timestamp DESC, run_id, seq"""


_NAMES = ("run_id", "session_id", "branch", "phase_name")
_COUNTS = ("visit", "attempt_number", "turn_number", "call")
"""Columns that say where a row stands; a count that is NULL is stored as 0 in other tables than ``messages``."""
_PLACED = "run_id, branch, phase_name, visit, ifNull(attempt_number, 0), ifNull(turn_number, 0), call"
_UNTELLING = frozenset({*_NAMES, *_COUNTS, "context_parts", "tags", "schema_version", "row_version"})
MOST_PLACES = 20_000
"""Rows that are looked at to find those that a row of a result may be."""


class Readable(Protocol):
    """A handle that answers."""

    def query(self, sql: str, params: Mapping[str, Value] | None = None) -> ResultTable: ...

    def raw(self, sql: str, form: str, params: Mapping[str, Value] | None = None) -> bytes: ...


@dataclass(slots=True)
class Cancel:
    """Ends a query from another thread. Good for one query."""

    _engine: Asked | None = None
    _mark: str = field(default="")
    _cancelled: bool = False

    def cancel(self) -> None:
        """End the query, or keep it from starting. Raises DatabaseError."""
        self._cancelled = True
        if self._engine is not None:
            self._engine.kill(self._mark)

    def marked(self, engine: Asked, sql: str) -> str:
        """The statement with the comment by which it is cancelled. Raises StoreError if it was cancelled before."""
        sql, self._mark = marked(sql)
        self._engine = engine
        self.check()
        return sql

    def check(self) -> None:
        """Raises StoreError when the query was cancelled."""
        if self._cancelled:
            raise StoreError("the query was cancelled")


class Asked(Protocol):
    """An engine, embedded or not, as far as questions need it."""

    @property
    def reader(self) -> Readable:
        """The calling thread's own handle for reading."""
        ...

    def borrowed(self, settings: str) -> AbstractContextManager[Readable]:
        """A handle for one statement with settings of its own."""
        ...

    def kill(self, mark: str) -> None:
        """End the running statement that holds this mark (see ``marked``), from whatever thread."""
        ...


def _equal(column: str, value: object) -> str:
    """A condition that a column of any type holds a value, given as a parameter of its name; empty for a list."""
    if value is None:
        return f"isNull({column})"
    if isinstance(value, str | bool):
        return f"toString({column}) = {{{column}:String}}"
    return f"toFloat64OrNull(toString({column})) = {{{column}:Float64}}" if isinstance(value, int | float) else ""


class Queries:
    """Answers questions from the tables as they are; bring them up to date first. Safe from any thread."""

    def __init__(self, engine: Asked) -> None:
        self._engine = engine

    def sql(
        self,
        text: str,
        limit: int | None = None,
        params: Mapping[str, Value] | None = None,
        *,
        seconds: float = SECONDS,
        cancel: Cancel | None = None,
    ) -> ResultTable:
        """The user's own statement, one of SELECT, EXPLAIN, SHOW, DESCRIBE. ``all_data`` and ``all_evals`` may be
        written in any letter case. Raises BadSql, and DatabaseError with the engine's words."""
        cancel = cancel or Cancel()

        def answer(statement: str) -> ResultTable:
            with self._guarded(limit, seconds) as handle:
                return handle.query(cancel.marked(self._engine, statement), params)

        def ask() -> ResultTable:
            statement = self._checked(text, params)
            marking, columns = self._marking_predictions(statement)
            for one in marking:
                try:
                    return answer(self._checked(one, params)).without_marks(columns)
                except (DatabaseError, BadSql):
                    cancel.check()  # Else the tables have no such column: those of calls may, and some have none.
            return answer(statement)

        table = attended(ask, cancel.cancel)
        cancel.check()
        table = table.with_costs(text)
        return table if limit is None else table.first(limit)

    def arrow(self, text: str, limit: int | None = None, params: Mapping[str, Value] | None = None) -> bytes:
        """The same answer as an Arrow file. Raises as ``sql``."""
        cancel = Cancel()

        def ask() -> bytes:
            statement = cancel.marked(self._engine, self._checked(text, params))
            with self._guarded(limit and limit - 1, SECONDS) as handle:
                return handle.raw(statement, "Arrow", params)

        return attended(ask, cancel.cancel)

    def query_unified(
        self,
        where: str = "1",
        params: Mapping[str, Value] | None = None,
        columns: str = "*",
        limit: int | None = None,
    ) -> ResultTable:
        """Rows of ``unified_logs``. ``where`` and ``columns`` are the caller's own SQL and pass the guard; ORDER BY
        and LIMIT may follow the condition. Raises as ``sql``."""
        return self.sql(f"SELECT {columns} FROM unified_logs WHERE {where}", limit, params)

    def get_session_messages(self, session_id: str, *, bodies: bool = False) -> ResultTable:
        """All rows of a session in order; with ``bodies`` also whole requests, responses and definitions."""
        columns = "*" if bodies else f"* EXCEPT ({_BODIES})"
        order = "run_id, seq, toString(message_id)"
        sql = f"SELECT {columns} FROM unified_logs WHERE session_id = {{session:String}} ORDER BY {order}"
        return self._engine.reader.query(sql, {"session": session_id})

    def get_cascade_costs(self, cascade_id: str) -> ResultTable:
        """Per phase: calls, tokens, the sum of known costs in US dollars, and how many calls have no known cost."""
        return self._engine.reader.query(_COSTS, {"cascade": cascade_id})

    def get_soundings_analysis(self, session_id: str, phase: str) -> ResultTable:
        """Per candidate of a phase, at each visit and in each walk: winner or not, mutation, models, calls, tokens,
        cost, last answer, and the scores that it was given."""
        return self._engine.reader.query(_SOUNDINGS, {"session": session_id, "phase": phase})

    def get_context(self, session_id: str, place: Place) -> ResultTable:
        """Returns the changes in the context of the call at a place; the whole assembly is folded from the journal."""
        sql = """SELECT * FROM contexts WHERE session_id = {session:String} AND branch = {branch:String}
          AND phase_name = {phase:String} AND visit = {visit:UInt16} AND attempt_number = {attempt:UInt16}
          AND turn_number = {turn:UInt16} AND call = {call:UInt16}"""
        return self._engine.reader.query(sql, {"session": session_id, **place._asdict()})

    def places_of_row(self, row: Mapping[str, Any]) -> list[tuple[str, Place]]:
        """The run and place of each row of ``all_data`` that a row of a result may be.

        Columns that say where it stands must be equal; each further one narrows the choice, unless it is equal in no
        row: a sum under the name of a column. What is of the whole cascade has no phase here.
        """
        asked: dict[str, Value] = {name: row[name] for name in _NAMES if isinstance(row.get(name), str) and row[name]}
        asked |= {name: "" for name in ("branch", "phase_name") if row.get(name) == ""}
        where = [f"{name} = {{{name}:String}}" for name in asked]
        for name in _COUNTS:
            value = row.get(name, "")
            if value is None or (isinstance(value, int) and not isinstance(value, bool)):
                asked[name] = value or 0
                where.append(f"ifNull(toInt64({name}), 0) = {{{name}:Int64}}")
        tests: list[str] = []
        for name, value in row.items():
            if name in MessageRow.columns() and name not in _UNTELLING and (test := _equal(name, value)):
                tests.append(f"ifNull({test}, 0)")
                asked |= {} if value is None else {name: str(value).lower() if isinstance(value, bool) else value}
        likest = f"ORDER BY {' + '.join(tests)} DESC" if tests else ""
        sql = f"""SELECT DISTINCT {", ".join((_PLACED, *tests))} FROM messages FINAL
          WHERE {" AND ".join(where) or "1"} {likest} LIMIT {MOST_PLACES}"""
        found = list(self._engine.reader.query(sql, asked).rows)
        for at in range(7, 7 + len(tests)):
            found = [one for one in found if one[at]] or found
        return list(dict.fromkeys((one[0], Place(*one[1:7])) for one in found))

    def place_named(self, session_id: str, name: str) -> Place:
        """The call that ``[branch/]phase[#visit]:turn`` names, as the command line does: of the latest visit if none is
        named, of the last attempt, the first call of the turn. Also a place in full. Raises ValueError for a text that
        is neither, and for a call that the session does not have.
        """
        named, colon, turn = name.rpartition(":")
        if not (colon and turn.isdecimal()):
            return Place.parse(name)
        sql = """SELECT DISTINCT branch, phase_name, visit, attempt_number, call FROM contexts
          WHERE session_id = {session:String} AND turn_number = {turn:UInt32} ORDER BY visit, attempt_number, call"""
        found = self._engine.reader.query(sql, {"session": session_id, "turn": int(turn)}).rows
        branch, phase, visit = visit_named(named, {row[1] for row in found})
        calls = [row for row in found if row[1] == phase and visit in (0, row[2]) and branch in ("", row[0])]
        if not branch and any(row[0] == "" for row in calls):
            calls = [row for row in calls if row[0] == ""]
        branches = sorted({row[0] for row in calls})
        if len(branches) > 1:
            listed = ", ".join(f"{one}/{named}:{turn}" for one in branches[:5])
            raise ValueError(f"{name!r} is a call of several candidates: {listed}")
        if not calls:
            raise ValueError(f"the session {session_id!r} has no call {name!r}")
        _, _, latest, attempt, _ = calls[-1]
        first = min(row[4] for row in calls if row[2:4] == (latest, attempt))
        return Place(branches[0], phase, latest, attempt, int(turn), first)

    def get_request(self, message_id: str) -> str:
        """The whole request of an answer as JSON text. Raises StoreError if there is none."""
        sql = "SELECT full_request_json FROM unified_logs WHERE toString(message_id) = {id:String}"
        found = self._engine.reader.query(sql, {"id": message_id})
        if not found.rows or not found.rows[0][0]:
            raise StoreError(f"no answer has the message id {message_id[:80]!a}")
        return str(found.rows[0][0])

    def list_runs(self) -> ResultTable:
        """All runs that are in the tables, newest first."""
        return self._engine.reader.query("SELECT * FROM runs ORDER BY started DESC, run_id DESC")

    def search_text(self, words: Sequence[str], limit: int = 200) -> ResultTable:
        """Messages that hold every one of some words or phrases, in any letter case, newest first, with an excerpt."""
        wanted = [json_text(word)[1:-1] for word in words if word]
        if not wanted:
            raise StoreError("nothing to search for")
        return self._engine.reader.query(f"{_SEARCH} LIMIT {int(limit)}", {"words": wanted})

    def _marking_predictions(self, statement: str) -> tuple[tuple[str, ...], tuple[int, ...]]:
        """See ``marked_predictions``."""
        if "spent" not in statement.casefold():
            return (), ()
        with self._guarded(None, SECONDS) as handle:
            laid_out = handle.query("SELECT formatQuery({statement:String})", {"statement": statement}).one()
        return marked_predictions(str(laid_out))

    def _checked(self, text: str, params: Mapping[str, Value] | None) -> str:
        """Judged on a handle of its own: no limit of the query may cut what the guard sees."""
        with self._guarded(None, SECONDS) as handle:
            return checked(handle, text, params)

    @contextmanager
    def _guarded(self, limit: int | None, seconds: float) -> Iterator[Readable]:
        """A handle that cannot write; ``limit`` lets one row more through, to tell that there are more."""
        cut = f"&limit={int(limit) + 1}" if limit is not None else ""
        with self._engine.borrowed(f"{READS}&max_execution_time={seconds:g}{cut}&readonly=1") as handle:
            yield handle
