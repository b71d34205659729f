"""Runs one guarded SQL statement in an engine of its own. A program of its own: the engine exists once per process.

Standard input is JSON: ``sql``, ``files`` (arguments of ``file()`` that may occur), ``table_functions`` (those that
may be used), ``denied`` (expression over function names), ``parameters`` (encoded), ``site`` (folder that holds chdb),
``settings``, ``max_rows``, ``max_cell`` (characters).
Standard output is JSON: ``columns``, ``rows`` (of text or null), ``total``, ``complete``; or ``error``.
"""

import importlib
import json
import os
import re
import sys
from pathlib import Path
from typing import Any

NAME = re.compile(r"^ *Function (\S+)")
TABLE = re.compile(r"^ *TableIdentifier (.*)$")
LITERAL = re.compile(r"^ *Literal '(.*)'( \(alias .*\))?$")
STATEMENTS = re.compile(r"^(SelectWithUnionQuery|Explain|DescribeQuery|Show)")
SIMPLE = re.compile(r"[A-Za-z_]\w*( \(alias .*\))?")


class Refused(Exception):
    """The statement is not one that may run."""


def connect(site: str) -> Any:
    """A fresh engine that knows no files but those named by ``file()``."""
    folder = Path.cwd()
    sys.path.append(site)
    # Its handlers would swallow Ctrl+Z and hold a crash for minutes; its import changes directory.
    importlib.import_module("chdb._chdb").set_signal_handlers_enabled(False)
    import chdb

    os.chdir(folder)
    engine = chdb.connect(":memory:?async_insert=0")
    # The default database takes any quoted name for a file.
    for statement in ("CREATE DATABASE tables ENGINE = Memory", "USE tables", "DROP DATABASE default"):
        engine.query(statement)
    return engine


def check(engine: Any, job: dict[str, Any]) -> None:
    """Look at the statement as the engine itself reads it. Raises Refused."""
    tree = str(engine.query(f"EXPLAIN AST {job['sql']}", "TSVRaw", params=job["parameters"])).splitlines()
    if not tree or not STATEMENTS.match(tree[0]):
        raise Refused("this statement cannot be run")
    listed = str(engine.query("SELECT lower(name) FROM system.table_functions", "TSVRaw")).splitlines()
    forbidden = set(listed) - set(job["table_functions"])
    denied = re.compile(job["denied"], re.IGNORECASE)
    for index, line in enumerate(tree):
        function, table = NAME.match(line), TABLE.match(line)
        if table and not SIMPLE.fullmatch(table[1]):
            raise Refused(f"the table '{table[1]}' cannot be read; name files as file('name')")
        if function and function[1].lower() == "file":
            literal = LITERAL.match(tree[index + 2]) if index + 2 < len(tree) else None
            if literal is None or literal[1] not in job["files"]:
                raise Refused("file() takes the name of a file of the workspace")
        elif function and (function[1].lower() in forbidden or denied.match(function[1])):
            raise Refused(f"the function {function[1]} is refused")


def run(engine: Any, job: dict[str, Any]) -> dict[str, Any]:
    """The first rows of the result, and how many there are as far as they were counted."""
    for name, value in job["settings"].items():
        engine.query(f"SET {name} = {value!r}")
    result = engine.query(job["sql"], "JSONCompactEachRowWithNames", params=job["parameters"])
    lines = str(result).splitlines()
    columns = json.loads(lines[0]) if lines else []
    total = max(len(lines) - 1, 0)
    rows = [[cell(value, job["max_cell"]) for value in json.loads(line)] for line in lines[1 : job["max_rows"] + 1]]
    return {"columns": columns, "rows": rows, "total": total, "complete": total < job["settings"]["max_result_rows"]}


def cell(value: Any, longest: int) -> str | None:
    """A value as text; null stays null."""
    if value is None:
        return None
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= longest else f"{text[:longest]}…"


def main() -> None:
    job = json.load(sys.stdin)
    try:
        engine = connect(job["site"])
        check(engine, job)
        answer = run(engine, job)
    except Refused as fault:
        answer = {"error": str(fault)}
    except Exception as fault:  # noqa: BLE001 - the engine raises plain exceptions; the text goes to the model
        answer = {"error": re.sub(r"^Code: \d+\. DB::Exception: |\s*\(version [^)]*\)", "", str(fault)).strip()}
    json.dump(answer, sys.stdout)
    sys.stdout.flush()
    # The engine's threads would otherwise be joined one by one.
    os._exit(0)


if __name__ == "__main__":
    main()
