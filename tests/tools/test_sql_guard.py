"""What the guard lets through, what it rewrites, and a corpus of what it refuses."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.tools.builtin.sql_guard import SqlError, guard, tokens
from workbench.tools.paths import PathRefused

FILES = {"x.csv": ["x.csv"], "d/y.json": ["d/y.json"], "*.csv": ["a.csv", "x.csv"], "it's.csv": ["it's.csv"]}
FILES |= {"a,b.csv": ["a,b.csv"], "?.csv": ["a,b.csv", "x.csv"]}


def find(name: str) -> Sequence[str]:
    if name not in FILES:
        raise PathRefused(f"'{name}' does not exist in the workspace")
    return FILES[name]


@pytest.mark.parametrize(
    ("sql", "rewritten"),
    [
        ("SELECT 1", "SELECT 1"),
        ("select * from file('x.csv') where a = ';' ;", "select * from file('x.csv') where a = ';'"),
        ("SELECT * FROM 'x.csv'", "SELECT * FROM file('x.csv')"),
        ('SELECT * FROM "x.csv" t JOIN "d/y.json" u USING id', None),
        ("SELECT * FROM read_csv_auto('x.csv')", "SELECT * FROM file('x.csv')"),
        ("SELECT * FROM FILE ( 'x.csv' , CSV, 'a Int8')", "SELECT * FROM file('x.csv' , CSV, 'a Int8')"),
        ("SELECT * FROM file('*.csv')", "SELECT * FROM file('{a.csv,x.csv}')"),
        ("SELECT * FROM 'a,b.csv'", "SELECT * FROM file('a,b.csv')"),
        ("DESCRIBE 'x.csv'", "DESCRIBE file('x.csv')"),
        ("WITH t AS (SELECT 1 AS a) SELECT a FROM t", "WITH t AS (SELECT 1 AS a) SELECT a FROM t"),
        ("(SELECT 1) UNION ALL (SELECT 2)", "(SELECT 1) UNION ALL (SELECT 2)"),
        ("SELECT 1 -- ; DROP TABLE x\n", "SELECT 1"),
        ("SELECT /* a /* nested ; */ b */ 2", "SELECT 2"),
        ("SELECT 'file(''/etc/passwd'')' AS s", "SELECT 'file(''/etc/passwd'')' AS s"),
        ("SELECT a FROM file('x.csv') FORMAT JSON", "SELECT a FROM file('x.csv')"),
        ("SELECT remote FROM 'x.csv'", "SELECT remote FROM file('x.csv')"),
        ("SHOW TABLES", "SHOW TABLES"),
        ("SELECT 1 SETTINGS format_csv_delimiter = ';', join_use_nulls=1", None),
    ],
)
def test_reading_is_let_through_with_real_file_names(sql: str, rewritten: str | None) -> None:
    result = guard(sql, find)
    if rewritten is not None:
        assert result.sql.strip() == rewritten
    assert all(f"file('{name}')" in result.sql or f"file('{name}' " in result.sql for name in result.files)


REFUSED = [
    "",
    ";",
    "-- nothing",
    pytest.param("SELECT 1" + "+1" * 100_000, id="long"),
    "DROP TABLE x",
    "INSERT INTO FUNCTION file('x.csv') SELECT 1",
    "CREATE TABLE t (a Int8) ENGINE = Memory",
    "ALTER TABLE t DELETE WHERE 1",
    "ATTACH TABLE t",
    "SYSTEM SHUTDOWN",
    "KILL QUERY WHERE 1",
    "SET max_memory_usage = 0",
    "USE system",
    "OPTIMIZE TABLE t",
    "BACKUP DATABASE d TO File('x')",
    "SELECT 1; DROP TABLE x",
    "EXPLAIN SELECT 1; DROP TABLE x",
    "SELECT 1 /* ; */ ; SELECT 2",
    "SELECT 1 INTO OUTFILE '/tmp/x.csv'",
    "SELECT 1 into\noutfile 'x.csv' truncate",
    "SELECT file('/etc/passwd')",
    "SELECT * FROM file('/etc/passwd', LineAsString)",
    "SELECT * FROM file('../../etc/passwd')",
    "SELECT * FROM file(concat('/etc/', 'passwd'))",
    "SELECT * FROM file('x.csv' || '')",
    "SELECT * FROM `file`('/etc/passwd')",
    "SELECT * FROM file($$/etc/passwd$$)",
    "SELECT * FROM file(path)",
    "SELECT * FROM file()",
    "SELECT * FROM file('x.zip :: x.csv')",
    "SELECT * FROM 'https://example.org/x.csv'",
    "SELECT * FROM '/etc/passwd'",
    "SELECT * FROM url('http://localhost/x.csv')",
    "SELECT * FROM `url`('http://localhost/x.csv')",
    "SELECT * FROM \"s3\"('x')",
    "SELECT * FROM s3('https://bucket/x')",
    "SELECT * FROM remote('127.0.0.1', system.one)",
    "SELECT * FROM remoteSecure('127.0.0.1', 'x')",
    "SELECT * FROM mysql('h', 'd', 't', 'u', 'p')",
    "SELECT * FROM postgresql('h', 'd', 't', 'u', 'p')",
    "SELECT * FROM sqlite('x.db', 't')",
    "SELECT * FROM executable('x.sh', CSV, 'a Int8')",
    "SELECT * FROM Python(df)",
    "SELECT * FROM python ('df')",
    "SELECT * FROM eval('select 1')",
    "SELECT * FROM input('a Int8')",
    "SELECT * FROM merge('system', '.*')",
    "SELECT * FROM clusterAllReplicas('c', system.one)",
    "SELECT * FROM hdfs('x')",
    "SELECT * FROM iceberg('x')",
    "SELECT * FROM deltaLake('x')",
    "SELECT * FROM odbc('x', 'y')",
    "SELECT * FROM filesystem('/')",
    "SELECT * FROM system.settings",
    "SELECT * FROM system . processes",
    "SELECT sleep(3)",
    "SELECT sleepEachRow(1) FROM numbers(100)",
    "SELECT hostName()",
    "SELECT FQDN()",
    "SELECT getServerPort('tcp_port')",
    "SELECT filesystemAvailable()",
    "SELECT dictGet('d', 'a', 1)",
    "SELECT aiGenerate('x')",
    "SELECT addressToLine(1)",
    "SELECT 1 SETTINGS max_execution_time = 0",
    "SELECT 1 SETTINGS join_use_nulls = 1, max_memory_usage = 0",
    "SELECT 1 SETTINGS format_schema = '/etc/passwd'",
    "SELECT 1 SETTINGS format_template_row = 'x'",
    "SELECT * FROM read_csv('x.csv', header = true)",
    'SELECT * FROM "it\'s.csv"',
    "SELECT ‘x’",
    "SELECT 'open",
    "SELECT /* open",
    "FROM 'x.csv' SELECT *",
]


@pytest.mark.parametrize("sql", REFUSED)
def test_everything_that_reaches_beyond_the_files_is_refused(sql: str) -> None:
    with pytest.raises((SqlError, PathRefused)) as caught:
        guard(sql, find)
    assert str(caught.value)


@given(st.text(alphabet="ab1_ '\"`\\\n;()-#/*$.,=é\0", max_size=60))
def test_tokens_give_the_sql_back(sql: str) -> None:
    try:
        found = tokens(sql)
    except SqlError:
        return
    assert "".join(token.text for token in found) == sql


@given(st.text(alphabet="fileFILE '\"`\\\n;()-#/*$.,xcsv", max_size=80))
def test_what_passes_is_one_statement_and_names_only_files_that_were_found(text: str) -> None:
    try:
        result = guard(f"SELECT {text}", find)
    except (SqlError, PathRefused):
        return
    found = [token for token in tokens(result.sql) if token.kind.value not in ("space", "string", "quoted")]
    assert ";" not in [token.text for token in found]
    assert set(result.files) <= {"x.csv"}
