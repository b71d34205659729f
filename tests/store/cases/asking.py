"""Questions: the user's SQL, the guard, the query functions, hostile text, threads, ending a query."""

from __future__ import annotations

import json
import signal
import sys
import threading
from pathlib import Path
from typing import Any

from tests.engine.contest_cases import many_contests
from tests.store.examples import HOSTILE, Writer, candidate_run, rich_run, save
from tests.support.waiting import until
from workbench.context.message import Message
from workbench.context.place import Place
from workbench.store.faults import StoreError
from workbench.store.index.database import Engine
from workbench.store.index.index import Index
from workbench.store.index.queries import Cancel
from workbench.store.index.table import as_csv, as_json, summary_line, write_parquet
from workbench.store.store import Store

FORBIDDEN = (
    "SELECT file('/etc/hostname')",
    "SELECT * FROM file('/etc/hostname', LineAsString)",
    "SELECT * APPLY(file) FROM (SELECT '/etc/hostname')",
    "SELECT x FROM (SELECT 1 AS x ORDER BY x WITH FILL INTERPOLATE (x AS file('a')))",
    "DESCRIBE file('/etc/hostname', LineAsString)",
    "EXPLAIN SELECT file('/etc/hostname')",
    "EXPLAIN AST SELECT 1; DROP TABLE messages",
    "SELECT 1; SELECT 2",
    "SELECT 1 INTO OUTFILE 'out.csv'",
    "SELECT 1 /* */ INTO/**/OUTFILE 'out.csv'",
    "SELECT 1 FORMAT Null",
    "SELECT 1 FORMAT Null SETTINGS max_threads = 1",
    "SHOW TABLES FORMAT CSV SETTINGS limit = 1",
    "KILL QUERY WHERE 1",
    "SELECT * FROM url('http://127.0.0.1:9/', LineAsString)",
    "SELECT * FROM remote('127.0.0.1', system.one)",
    "SELECT * FROM executable('x.sh', CSV, 'a String')",
    "SELECT * FROM eval('SELECT 1')",
    "SELECT * FROM python('x')",
    "SELECT aiGenerate('x')",
    "SELECT sleep(3)",
    "SELECT filesystemAvailable()",
    "INSERT INTO messages SELECT * FROM messages",
    "EXPLAIN INSERT INTO messages SELECT * FROM messages",
    "DROP TABLE messages",
    "ALTER TABLE messages DELETE WHERE 1",
    "SYSTEM SHUTDOWN",
    "SET readonly = 0",
    "SELECT 1 SETTINGS readonly = 0",
    "BACKUP DATABASE workbench TO File('x')",
    "ATTACH TABLE x",
    "CREATE TABLE x (a Int8) ENGINE = Memory",
    "SELECT 'open",
    "-- nothing",
    "",
)
ALLOWED = (
    "SELECT COUNT(*) FROM all_data",
    "select session_id, phase_name, cost from ALL_DATA where cost > 0 limit 10",
    "SELECT a.session_id FROM all_data a JOIN all_evals e ON a.session_id = e.session_id",
    "SELECT 'INTO OUTFILE; ALL_DATA', count() FROM All_Data -- ; INTO OUTFILE",
    "SELECT $$a;b$$, 1;",
    "WITH x AS (SELECT 1 AS n) SELECT n FROM x UNION ALL SELECT 2",
    "SELECT countIf(cost > 0), sumOrNull(cost), quantile(0.5)(duration_ms) FROM all_data",
    "SELECT row_number() OVER (PARTITION BY phase_name ORDER BY seq) FROM all_data",
    "SELECT JSONExtractString(tool_calls_json, 1, 'tool') FROM all_data WHERE tool_calls_json != ''",
    "SELECT * EXCEPT (content_json) REPLACE (upper(role) AS role) FROM all_data",
    "SELECT node_type FROM all_data ORDER BY rand()",
    "EXPLAIN SELECT 1",
    "SHOW TABLES",
    "DESCRIBE TABLE messages",
    "SELECT cascade_id, AVG(full_history_size), AVG(context_size), SUM(tokens_saved) * 0.000015 FROM unified_logs "
    "WHERE node_type = 'context_selection' GROUP BY cascade_id",
)


def main(folder: Path) -> dict[str, Any]:
    store = Store(folder)
    save(store, rich_run())
    save(store, candidate_run())
    save(store, hostile_run())
    save(store, many_contests().events, "many-1")
    with Index(store) as index:
        index.catch_up()
        return {
            "refused": {sql: refusal(index, sql) for sql in FORBIDDEN},
            "refused under a limit": [sql for sql in FORBIDDEN if not refusal(index, sql, 1)],
            "allowed": {sql: refusal(index, sql) for sql in ALLOWED},
            "files left": sorted(path.name for path in Path.cwd().glob("out.csv*")),
            "tables left": index.sql("SELECT count() FROM messages").one() > 0,
            "written": {run_id: store.summary(run_id).seq for run_id in store.run_ids()},
            **functions(index),
            **hostile(index),
            **limits(index, folder),
            "wrong values in threads": in_threads(index.engine),
            "cancelled": cancelled(index),
            "time limit": time_limit(index),
            "interrupted": interrupted(index),
        }


def refusal(index: Index, sql: str, limit: int | None = None) -> str:
    """Why a statement is refused; empty when it ran."""
    try:
        index.sql(sql, limit)
    except StoreError as error:
        return str(error) or "refused"
    return ""


def functions(index: Index) -> dict[str, Any]:
    rows = list(index.query_unified("node_type = 'agent' AND session_id = 'test' ORDER BY seq").dicts())
    request = json.loads(index.get_request(rows[1]["message_id"]))
    won = "is_winner = true AND role = 'assistant' AND session_id = 'contest'"
    winners = index.query_unified(won, columns="content_json, cost, callout_name")
    soundings = list(index.get_soundings_analysis("contest", "write").dicts())
    context = next(iter(index.get_context("test", Place("", "sort", 1, 1, 2, 1)).dicts()))
    return {
        "requests": [json.loads(row["full_request_json"])["messages"][-1]["role"] for row in rows],
        "request": [request["model"], [message["role"] for message in request["messages"]], request["tools"]],
        "response": json.loads(rows[1]["full_response_json"])["message"]["content"],
        "cascade_json": json.loads(rows[0]["cascade_json"])["cascade_id"],
        "phase_json": json.loads(rows[0]["phase_json"])["name"],
        "tool call": json.loads(rows[0]["tool_calls_json"]),
        "timestamp_iso": rows[0]["timestamp_iso"],
        "winners": [list(row) for row in winners.rows],
        "session": [list(row) for row in index.sql(
            "SELECT node_type, role, phase_name, turn_number, semantic_actor, semantic_purpose FROM unified_logs "
            "WHERE session_id = 'test' ORDER BY seq, toString(message_id)").rows],
        "session messages": len(index.get_session_messages("test")),
        "costs": list(index.get_cascade_costs("triage").dicts()),
        "soundings": [[s["sounding_index"], s["is_winner"], s["mutation_type"], s["mutation_applied"], s["cost"],
                       s["unknown_costs"], json.loads(s["last_answer_json"])] for s in soundings],
        "scores": [s["scores"] for s in soundings],
        "training": training(index),
        "evals": [list(row) for row in index.sql("SELECT sounding_index, score, preferred, rater FROM ALL_EVALS "
                                                 "WHERE session_id = 'contest' ORDER BY 1").rows],
        "context": [context["positions"], context["actions"], context["tokens_full"], context["entries"]],
        "runs": [list(row) for row in index.sql("SELECT run_id, status, calls, cost, unknown_costs, journal_rows "
                                                "FROM runs ORDER BY run_id").rows],
        "card": [list(row) for row in index.sql(
            "SELECT c.summary, c.generator_model, u.content_json FROM unified_logs u "
            "JOIN context_cards c ON u.session_id = c.session_id AND u.content_hash = c.content_hash "
            "WHERE u.node_type = 'agent' ORDER BY u.session_id, u.seq").rows],
        "search": [[r["run_id"], r["node_type"]] for r in index.search_text(["NO SUCH", "ValueError"]).dicts()],
        "search nothing": refusal_of(lambda: index.search_text([""])),
        "no request": refusal_of(lambda: index.get_request("nope")),
    }  # fmt: skip


def training(index: Index) -> dict[str, Any]:
    """Winners and pairs of the run with many contests, by the queries that people ask for training data."""
    here = "run_id = 'many-1' ORDER BY seq"
    fine = f"is_winner = true AND sounding_index IS NOT NULL AND cost > 0 AND {here}"
    winners = index.query_unified(fine, columns="content_json")
    asked = index.query_unified(
        f"is_winner = true AND role = 'assistant' AND node_type != 'tool_call' AND {here}", columns="content_json"
    )
    pairs = index.sql("""
      SELECT substring(e.branch, 1, 2), e.phase_name, e.visit, e.branch, max(e.preferred), uniq(u.message_id)
      FROM all_evals e JOIN unified_logs u
        ON u.run_id = e.run_id AND u.branch = e.branch AND u.phase_name = e.phase_name AND u.visit = e.visit
      WHERE e.run_id = 'many-1' AND u.node_type = 'agent' AND e.rater = 'evaluator' GROUP BY ALL""")
    analysis = index.get_soundings_analysis("many", "b").dicts()
    return {
        "winners": [json.loads(text).split("\n")[0] for (text,) in winners.rows],
        "asked": [json.loads(text).split("\n")[0] for (text,) in asked.rows],
        "pairs": [list(row) for row in pairs.rows],
        "analysis": [[row["visit"], row["branch"]] for row in analysis if row["is_winner"] and "/" in row["branch"]],
    }


def refusal_of(ask: Any) -> str:
    try:
        ask()
    except StoreError as error:
        return str(error)
    return ""


def hostile_run() -> list[Any]:
    """A run whose every text is hostile, ids aside."""
    w = Writer("run-3")
    events = [w.event("run_started", session_id="hostile", cascade_id="h")]
    for turn, text in enumerate(HOSTILE, 1):
        place = Place("", text or "empty", 1, 1, turn, 1)
        message = Message("assistant", text)
        added = [{"m": message.body_hash, "kind": "answer", "place": str(place._replace(phase="p"))}]
        events += [
            w.event("context_assembled", place, request={"model": text}, digest=f"h{turn}", strategy=text),
            w.body(message),
            w.event("call_finished", place, digest=f"h{turn}", added=added, model=text, provider=text, purpose="turn"),
        ]
    return [*events, w.event("run_finished", status="success", output=HOSTILE[-1])]


def hostile(index: Index) -> dict[str, Any]:
    """What went in and came out unequal, through parameters and through ingest."""
    reader = index.engine.reader
    rows = index.sql("SELECT content_json, model, phase_name FROM unified_logs WHERE node_type = 'agent' "
                     "AND session_id = 'hostile' ORDER BY seq").rows  # fmt: skip
    wanted = [
        text.encode("utf-8", "replace").decode() if text.isascii() else _without_surrogates(text) for text in HOSTILE
    ]
    return {
        "hostile: text": [w for w, row in zip(wanted, rows, strict=True) if json.loads(row[0]) != w],
        "hostile: names": [w for w, row in zip(wanted, rows, strict=True) if row[1] != w or row[2] != (w or "empty")],
        "hostile: parameters": [w for w in wanted if reader.query("SELECT {x:String}", {"x": w}).one() != w],
        "hostile: arrays": reader.query("SELECT {x:Array(String)}", {"x": wanted}).one() == wanted,
        "hostile: nullable": reader.query("SELECT {x:Nullable(String)}", {"x": None}).one(),
        "hostile: word NULL": reader.query("SELECT {x:Nullable(String)}", {"x": "NULL"}).one(),
        "hostile: backslash N": reader.query("SELECT {x:String}", {"x": "\\N"}).one(),
        "hostile: numbers": list(reader.query("SELECT {a:Int64}, {b:Float64}, {c:Bool}, {d:Array(Nullable(Int8))}",
                                              {"a": -(2**62), "b": 1e-9, "c": True, "d": [1, None]}).rows[0]),
        "hostile: where": [w for w in wanted
                           if not index.query_unified("phase_name = {p:String}", {"p": w or "empty"}).rows],
        "hostile: session": [len(index.get_session_messages(w)) for w in wanted],
        "hostile: search": [w for w in wanted if w.strip() and not index.search_text([w]).rows],
    }  # fmt: skip


def _without_surrogates(text: str) -> str:
    return "".join("\ufffd" if "\ud800" <= char <= "\udfff" else char for char in text)


def limits(index: Index, folder: Path) -> dict[str, Any]:
    table = index.sql("SELECT seq, role, cost, context_hashes FROM all_data WHERE run_id = 'run-2' ORDER BY seq", 2)
    arrow = index.arrow("SELECT * FROM all_data ORDER BY seq", 5)
    import pyarrow.parquet

    rows = write_parquet(arrow, folder / "x.parquet")
    empty = write_parquet(index.arrow("SELECT * FROM all_data WHERE 0"), folder / "y.parquet")
    return {
        "limit": [len(table), table.cut],
        "no limit": index.sql("SELECT 1", 1).cut,
        "text": summary_line(table),
        "json": as_json(table),
        "csv": as_csv(table),
        "parquet rows": [rows, empty],
        "parquet": pyarrow.parquet.read_table(folder / "x.parquet").column_names[:3],
    }


def in_threads(engine: Engine) -> int:
    """Six threads ask for values of their own; how many answers were another's."""
    wrong = []

    def ask(number: int) -> None:
        for turn in range(40):
            value = f"{number} {turn}"
            if engine.reader.query("SELECT {x:String}", {"x": value}).one() != value:
                wrong.append(value)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return len(wrong)


SLOW = "SELECT count() FROM numbers(1000000000000) WHERE sipHash64(number) = 1"


def cancelled(index: Index) -> list[str]:
    """What a query says that is ended while it runs, and one that is ended before."""
    cancel, said = Cancel(), []

    def ask() -> None:
        said.append(refusal_of(lambda: index.sql(SLOW, cancel=cancel, seconds=60)))

    thread = threading.Thread(target=ask)
    thread.start()
    running = "SELECT count() FROM system.processes WHERE query LIKE '%sipHash64%' AND query NOT LIKE '%processes%'"
    until(lambda: not thread.is_alive() or index.engine.reader.query(running).one(), "the query")
    cancel.cancel()
    thread.join()
    before = Cancel()
    before.cancel()
    said.append(refusal_of(lambda: index.sql("SELECT 1", cancel=before)))
    return said


def time_limit(index: Index) -> str:
    return refusal_of(lambda: index.sql(SLOW, seconds=0.2))


def interrupted(index: Index) -> str:
    """Ctrl+C during a query on the main thread: heard at once, and the query is ended."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # What a shell starts beside itself ignores it.

    def interrupt() -> None:
        running = "SELECT count() FROM system.processes WHERE query LIKE '%sipHash64%' AND query NOT LIKE '%processes%'"
        until(lambda: index.engine.reader.query(running).one(), "the query")
        signal.raise_signal(signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    try:
        index.sql(SLOW, seconds=60)
    except KeyboardInterrupt:
        return "heard"
    finally:
        thread.join()
    return "not heard"


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]))))
