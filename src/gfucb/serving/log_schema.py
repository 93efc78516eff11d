"""The tables of a decision log, and how older ones become current."""

from __future__ import annotations

import sqlite3
from contextlib import closing

from gfucb.core.errors import DecisionLogError

# "gfuc" in ASCII: identifies our files among all SQLite files.
APPLICATION_ID = 0x67667563
VERSION = 3
TABLES = {
    # Tensors and texts, each distinct one once.
    "arrays": """
        digest BLOB PRIMARY KEY, dtype TEXT NOT NULL, shape TEXT NOT NULL, content BLOB NOT NULL
    """,
    # What changes an agent, in the order in which it is applied. Checksums are chained.
    "events": """
        event INTEGER PRIMARY KEY, time REAL NOT NULL, kind TEXT NOT NULL, detail TEXT NOT NULL,
        checksum BLOB NOT NULL
    """,
    "decisions": """
        decision INTEGER PRIMARY KEY, session INTEGER NOT NULL, event INTEGER NOT NULL,
        time REAL NOT NULL, offered BLOB NOT NULL, is_shared INTEGER NOT NULL, available BLOB,
        action_names BLOB, action_probabilities BLOB, monte_carlo_samples INTEGER,
        checksum BLOB NOT NULL
    """,
    "rows": """
        decision INTEGER NOT NULL, row INTEGER NOT NULL, task INTEGER NOT NULL,
        action INTEGER NOT NULL, probability REAL NOT NULL, optimistic_value REAL NOT NULL,
        mean REAL, variance REAL, low REAL, high REAL, status INTEGER NOT NULL, reward REAL,
        change_event INTEGER, change_position INTEGER, PRIMARY KEY (decision, row)
    """,
}
INDEXES = (
    "CREATE INDEX changed_rows ON rows (change_event, change_position) "
    "WHERE change_event IS NOT NULL",
    "CREATE INDEX open_rows ON rows (decision, row) WHERE status = 0",
)
# Statements that turn a log of this version into one of the next. All have the same tables. Events
# of version 2 say whether the first rewards were fitted at once; those of version 3 give tasks
# numbers with their first rewards, and say which parts of a model were fitted. A reader of an
# earlier version would ignore this.
MIGRATIONS: dict[int, tuple[str, ...]] = {1: (), 2: ()}


def prepare(connection: sqlite3.Connection, path: str, *, read_only: bool) -> None:
    """Create the tables of an empty database, migrate an older one, refuse any other."""
    is_empty = not connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    if is_empty and not read_only:
        _create(connection)
    found = connection.execute("PRAGMA application_id").fetchone()[0]
    if found != APPLICATION_ID:
        raise DecisionLogError(f"{path} is a SQLite database, but not a decision log of gfucb")
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version > VERSION or version < 1:
        raise DecisionLogError(
            f"{path} has version {version} of the format, this library reads 1 to {VERSION}; "
            "open it with the version of gfucb that wrote it"
        )
    if version < VERSION:
        if read_only and any(MIGRATIONS[step] for step in range(version, VERSION)):
            raise DecisionLogError(
                f"{path} has the older version {version} of the format; an agent that opens it "
                "for writing migrates it"
            )
        if not read_only:
            _migrate(connection, version)
    _require_structure(connection, path)


def _create(connection: sqlite3.Connection) -> None:
    connection.execute("BEGIN IMMEDIATE")
    for name, columns in TABLES.items():
        connection.execute(f"CREATE TABLE {name} ({columns})")
    for statement in INDEXES:
        connection.execute(statement)
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {VERSION}")
    connection.execute("COMMIT")


def _migrate(connection: sqlite3.Connection, version: int) -> None:
    """All steps in one transaction: a crash leaves the old version or the new one."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        for step in range(version, VERSION):
            for statement in MIGRATIONS[step]:
                connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {VERSION}")
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise


def _require_structure(connection: sqlite3.Connection, path: str) -> None:
    with closing(sqlite3.connect(":memory:")) as reference:
        for name, columns in TABLES.items():
            reference.execute(f"CREATE TABLE {name} ({columns})")
            expected, found = (
                [tuple(column[1:3]) for column in db.execute(f"PRAGMA table_info({name})")]
                for db in (reference, connection)
            )
            if expected != found:
                raise DecisionLogError(
                    f"the table {name!r} of {path} has other columns than a decision log: "
                    f"{', '.join(column for column, _ in found) or 'none'}"
                )
