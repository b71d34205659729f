"""The tables of a team's server: those of the index, the journals, and their owners."""

from __future__ import annotations

from workbench.store.index import ddl
from workbench.store.index.tables import JOURNAL_ROWS
from workbench.store.team_server import TeamServer

JOURNALS = {row.table: row.create_statement() for row in JOURNAL_ROWS}
"""From which all other tables can be made."""
TABLES = {**ddl.TABLES, **JOURNALS, "schema_migrations": ddl.SCHEMA_MIGRATIONS.replace("schema_migrations", "{name}")}
"""Statements by name."""
_SHARDED_BY = {
    **dict.fromkeys(("messages", "context_cards", "contexts", "runs", "evals"), "session_id"),
    **dict.fromkeys(("events", "annotations", "ingested", *JOURNALS), "run_id"),
    "blobs": "hash",
    "context_parts": "id",
    "schema_migrations": "version",
}
"""A part of each table's key, so that all versions of a row lie on one shard."""
_KEPT_FOR_EVER = ("ingested", "schema_migrations")
"""Tables without retention: dropped runs stay known, so that they are not shipped again."""

VIEWS = (
    "CREATE OR REPLACE VIEW all_runs AS SELECT r.*, o.user AS user, o.machine AS machine, o.workspace AS workspace, "
    "o.shipped_at AS shipped_at FROM runs AS r LEFT JOIN origins AS o ON o.run_id = r.run_id",
)
"""Besides those of the index."""


def create_statements(server: TeamServer) -> list[str]:
    """All that makes the tables, dictionaries and views of an empty database, in order."""
    database = _text(server.database)
    who = f"USER '{_text(server.user)}' " + (f"PASSWORD '{_text(server.password)}' " if server.password else "")
    host = "HOST 'localhost' "  # Of a cluster, each server asks itself, in its own name.
    made = [statement for table in TABLES for statement in _tables(table, server)]
    made += [
        on_cluster(statement, server)
        for statement in (*ddl.dictionaries(database, (host if who else "") + who), *ddl.views(database), *VIEWS)
    ]
    return made


def drop_statements(server: TeamServer) -> list[str]:
    """All that makes way for the tables of another version; the journals stay."""
    tables = [name for name in ddl.TABLES for name in ((name, f"{name}_local") if server.cluster else (name,))]
    return [
        *(
            on_cluster(f"DROP VIEW IF EXISTS {view}", server)
            for view in ("unified_logs", "all_data", "all_evals", "all_runs")
        ),
        *(on_cluster(f"DROP DICTIONARY IF EXISTS {name}", server) for name in ("bodies", "parts")),
        *(on_cluster(f"DROP TABLE IF EXISTS {table} SYNC", server) for table in tables),
    ]


def retention_statements(server: TeamServer) -> list[str]:
    """Statements that make the server drop rows a number of days after they were shipped, by the settings; empty if
    they set none.
    """
    if server.retention_days is None:
        return []
    ttl = f"MODIFY TTL kept_from + toIntervalDay({server.retention_days})" if server.retention_days else "REMOVE TTL"
    tables = [table for table in TABLES if table not in _KEPT_FOR_EVER]
    return [on_cluster(f"ALTER TABLE {stored(table, server)} {ttl}", server) for table in tables]


def stored(table: str, server: TeamServer) -> str:
    """The table that holds the rows: on a cluster another one than the one that is asked."""
    return f"{table}_local" if server.cluster else table


def on_cluster(statement: str, server: TeamServer) -> str:
    """A statement over tables, dictionaries or views, for all servers of the cluster."""
    if not server.cluster:
        return statement
    words = statement.split(" ")
    at = 2 + words.index(next(word for word in words if word in ("TABLE", "VIEW", "DICTIONARY", "DATABASE")))
    while words[at - 1] in ("IF", "NOT", "EXISTS"):
        at += 1
    return " ".join((*words[:at], f"ON CLUSTER `{server.cluster}`", *words[at:]))


def _tables(table: str, server: TeamServer) -> list[str]:
    made = TABLES[table].strip().format(name=stored(table, server))
    # How words are looked up is not a server's of last year.
    made = made.replace("TYPE text(tokenizer='splitByNonAlpha')", "TYPE tokenbf_v1(32768, 3, 0)")
    made = made.replace("\n) ENGINE=", ",\n  kept_from DateTime DEFAULT now()\n) ENGINE=")
    if not server.cluster:
        return [made]
    path = f"'/clickhouse/tables/{{shard}}/{_text(server.database)}/{table}', '{{replica}}'"
    made = made.replace("ENGINE=ReplacingMergeTree(", f"ENGINE=ReplicatedReplacingMergeTree({path}, ")
    over = (
        f"CREATE TABLE IF NOT EXISTS {table} AS {stored(table, server)} ENGINE=Distributed"
        f"('{_text(server.cluster)}', '{_text(server.database)}', '{stored(table, server)}', "
        f"cityHash64({_SHARDED_BY[table]}))"
    )
    return [on_cluster(made, server), on_cluster(over, server)]


def _text(value: str) -> str:
    """Inside quotes."""
    return value.replace("\\", "\\\\").replace("'", "\\'")
