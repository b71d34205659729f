"""Writes ``docs/reference/``: every page is made from the tables that the program itself uses.

``python -m scripts.make_reference`` writes, ``--check`` says which pages are out of date and exits with 1.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec import Struct
from msgspec.structs import fields

if TYPE_CHECKING:
    from workbench.engine.contracts import ToolSpec

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs" / "reference"
DESIGN = re.compile(r" \([\w-]+\.md [^)]*\)")
NOTICE = "<!-- Made by `python -m scripts.make_reference`; edits here are lost. -->\n\n"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table; bars and line breaks in the fields are made harmless."""
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(_field(field) for field in row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def _field(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())


def _sentence(text: str) -> str:
    """A docstring for Markdown: literals in single backticks, without references to design documents."""
    return " ".join(DESIGN.sub("", text).replace("``", "`").split())


# -- the language ----------------------------------------------------------------------------------------------------


def language() -> str:
    """Every mapping of a cascade file with its fields."""
    from workbench.language.model.schema import json_schema

    schema = json_schema()
    parts = [
        "# The cascade language\n",
        "One section per mapping of a cascade file. A type in **bold** links to its section. `workbench schema` prints "
        "the same as JSON Schema for editors.\n",
        "## Cascade\n",
        _fields(schema),
    ]
    for name in _in_order(schema):
        definition = schema["$defs"][name]
        body = next((option for option in definition.get("anyOf", ()) if option.get("type") == "object"), definition)
        parts += [f"## {name}\n", f"{_sentence(definition['description'])}\n"]
        short = [option for option in definition.get("anyOf", ()) if option is not body]
        if short:
            parts.append(
                "Short forms: " + "; ".join(f"{_type(o)} ({o['description'].rstrip('.')})" for o in short) + ".\n"
            )
        parts.append(_fields(body))
    return "\n".join(parts)


def _fields(body: Mapping[str, Any]) -> str:
    required = set(body.get("required", ()))
    rows = []
    for key, schema in body["properties"].items():
        if schema.get("deprecated"):
            continue
        default = "required" if key in required else f"`{_json(schema['default'])}`" if "default" in schema else ""
        rows.append((f"`{key}`", _type(schema), default, _sentence(schema.get("description", ""))))
    return table(("field", "type", "default", "meaning"), rows)


def _type(schema: Mapping[str, Any]) -> str:
    """A JSON Schema type in a few words."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"**[{name}](#{name.lower()})**"
    if "enum" in schema:
        return " · ".join(f"`{choice}`" for choice in schema["enum"])
    if "const" in schema:
        return f"`{schema['const']}`"
    options = [o for o in schema.get("anyOf", schema.get("oneOf", ())) if o.get("type") != "null"]
    if options:
        return " or ".join(dict.fromkeys(_type(option) for option in options))
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items', {}))}"
    if schema.get("type") == "object" and isinstance(schema.get("additionalProperties"), dict):
        return f"map to {_type(schema['additionalProperties'])}"
    words = {"string": "text", "integer": "int", "boolean": "bool", "object": "map", "number": "number"}
    name = words.get(schema.get("type", ""), "any")
    return f"{name} ≥ {schema['minimum']}" if "minimum" in schema else name


def _json(value: object) -> str:
    import json

    return json.dumps(value, ensure_ascii=False)


def _in_order(schema: Mapping[str, Any]) -> Iterator[str]:
    """Definitions in the order in which a reader meets them."""
    seen: dict[str, None] = {}

    def walk(value: Any) -> None:
        if isinstance(value, dict):
            name = str(value.get("$ref", "")).rpartition("/")[2]
            if name and name not in seen:
                seen[name] = None
                walk(schema["$defs"][name])
            for item in value.values():
                walk(item)
        elif isinstance(value, list):
            for item in value:
                walk(item)

    walk(schema["properties"])
    yield from seen


# -- the command line ------------------------------------------------------------------------------------------------


def command_line() -> str:
    """The help of every command."""
    from workbench.cli.errors import Exit
    from workbench.cli.main import COMMANDS, main

    parts = ["# The command line\n", "The same text as `workbench COMMAND --help`.\n", "## Exit codes\n"]
    rows = [(f"`{code.value}`", EXIT_CODES[code]) for code in Exit if code is not Exit.INTERRUPTED]
    parts.append(table(("code", "when"), [*rows, ("`128 + n`", "A signal n ended it; 130 after Ctrl+C.")]))
    parts.append(JSON_ERRORS)
    root = click.Context(main, info_name="workbench", **main.context_settings)
    for group, names in COMMANDS.items():
        parts.append(f"## {group}\n")
        for name in names:
            command = main.get_command(root, name)
            assert command is not None
            parts += _help(command, click.Context(command, parent=root, info_name=name))
    return "\n".join(parts)


JSON_ERRORS = """## Errors as JSON

With `--json` (and `workbench sql --format json`) an error is one line of JSON on stderr, an object with the only key
`error`. It has `kind` (`failed`, `usage`, `trust`, `provider`, `store`), `exit_code`, `message`, `file`, `line`,
`column`, `hint` (null where there is nothing to say) and `problems` (what is wrong with a file that cannot run, as
`check --json` tells it). stdout is as without the error.
"""

EXIT_CODES = {
    0: "It worked; for `run`, also when it paused at `--until`.",
    1: "The run or test did not succeed (failed, blocked, stopped, diverged), or `check` found errors.",
    2: "The command line was wrong, or a file cannot run.",
    3: "Something needs trust: see `workbench trust`.",
    4: "The provider of the model did not answer, or refused the credentials.",
    5: "The store cannot be used.",
}


def _help(command: click.Command, context: click.Context) -> list[str]:
    context.max_content_width = context.terminal_width = 100
    parts = [
        f"### workbench {context.command_path.partition(' ')[2]}\n",
        f"```text\n{command.get_help(context)}\n```\n",
    ]
    if isinstance(command, click.Group):
        for name, inner in command.commands.items():
            parts += _help(inner, click.Context(inner, parent=context, info_name=name))
    return parts


# -- tables of the program -------------------------------------------------------------------------------------------


def checks() -> str:
    """Everything that ``check`` can say."""
    from workbench.language.lint.catalogue import CATALOGUE

    rows = [(f"`{lint.code}`", str(lint.severity), lint.message, lint.when, lint.hint) for lint in CATALOGUE.values()]
    return (
        "# What `workbench check` says\n\n"
        "An error opens but does not run; a warning runs, probably not as meant. Words in braces are filled in.\n\n"
        + table(("code", "severity", "message", "when", "what to do"), rows)
    )


def settings() -> str:
    """Every setting."""
    from workbench.workspace.settings import TABLE

    rows = [
        (
            f"`{row.name}`",
            row.type.__name__,
            f"`{_json(row.default)}`" if row.default not in (None, "", [], {}) else "",
            " ".join(f"`{name}`" for name in row.env),
            "yes" if row.workspace else "no",
            row.help + (f" One of {', '.join(row.choices)}." if row.choices else ""),
        )
        for row in TABLE
    ]
    return (
        "# Settings\n\nA value comes from a flag, else the environment, else `workbench.yaml` of the workspace, else "
        "`config.yaml` of the user's config folder, else the default. `workbench config show` says which it was.\n\n"
        + table(("setting", "type", "default", "environment", "in a workspace", "meaning"), rows)
    )


def keys() -> str:
    """Every key of the app."""
    from workbench.views.keys import KEYS

    parts = ["# Keys\n", "Every command has an id; `keys:` in the settings binds it to other keys.\n"]
    for group in dict.fromkeys(key.group for key in KEYS):
        rows = [(_keys(key.keys), key.help, key.context, f"`{key.id}`") for key in KEYS if key.group == group]
        parts += [f"## {group}\n", table(("key", "does", "where", "id"), rows)]
    return "\n".join(parts)


def _keys(keys: str) -> str:
    """Keys of the table as the guide writes them: ``[`` and ``ctrl+p``, without what terminals make of another one."""
    from workbench.views.keys import SHOWN

    signs = {name: sign for name, sign in SHOWN.items() if len(sign) == 1 and sign.isascii()}
    names = (name.strip() for name in keys.split(","))
    return ", ".join(f"`{signs.get(name, name)}`" for name in names if name != "ctrl+@")


def contexts() -> str:
    """Strategies and the reasons that a context gives."""
    from workbench.context.parts.auto import SIGNALS, Auto
    from workbench.context.reasons import REASONS
    from workbench.context.strategy import PARTS

    strategies = [
        (
            f"`{name}`",
            str(part.ROLE),
            ", ".join(_parameters(part)),
            _sentence((part.__doc__ or "").partition("\n\n")[0]),
        )
        for name, part in PARTS.items()
    ]
    defaults = {field.name: field.default for field in fields(Auto)}
    signals = [
        (f"`{name}`", str(defaults[name]), meaning, f"{100 * float(str(defaults[name])):g}")
        for name, meaning in SIGNALS.items()
    ]
    reasons = [(f"`{words.text}`", words.meaning, f"`{code}`") for code, words in REASONS.items()]
    return "\n".join(
        [
            "# Contexts\n",
            "A strategy is one or more parts joined by `+`: `selective+mask(after=3)`. `workbench context --strategy` "
            "tries one on a stored run without a call.\n",
            "## Parts of a strategy\n",
            table(("part", "decides what", "parameters", "meaning"), strategies),
            "## How the heuristic of automatic context weighs\n",
            "The score of a message is the sum of these, each from 0 to 1 times 100 times its weight. By the defaults "
            "the message that suits the task best by its words comes before any that shares none, however new, unless "
            "that one was called out.\n",
            table(("weight", "default", "of what", "points at most"), signals),
            "## Why an entry is as it is\n",
            table(("shown as", "meaning", "code"), reasons),
        ]
    )


def _parameters(part: type[Struct]) -> Iterator[str]:
    for field in fields(part):
        if field.name != "written":
            yield f"`{field.name}={field.default}`"


def tools() -> str:
    """The built-in tools, as a model sees them."""
    from workbench.engine.engine_tools import ENGINE_SPECS, RAG_SPECS, bank_spec
    from workbench.tools.paths import Workspace
    from workbench.tools.sandbox import Sandbox
    from workbench.tools.toolbox import Toolbox

    with tempfile.TemporaryDirectory() as folder:
        workspace = Workspace.of(Path(folder))
        toolbox = Toolbox.of(workspace, Sandbox(workspace.root), [], trusted=False)
        specs = [spec for name in toolbox.names() if (spec := toolbox.spec(name)) is not None]
    head = ("name", "parameters", "what it does")
    own = [_tool(ENGINE_SPECS[name]) for name in sorted(ENGINE_SPECS)]
    retrieving = [*map(_tool, RAG_SPECS.values()), _tool(bank_spec("NAME"))]
    return (
        f"# Built-in tools and validators\n\n{table(head, map(_tool, specs))}\n## Tools of the run itself\n\n"
        "The engine runs these: they read or change the run. `route_to` is offered where there is a choice, the others "
        f"where a phase lists them.\n\n{table(head, own)}\n## Retrieval\n\n"
        "The `rag_` tools are offered to a phase with a `rag` block; with `memory: NAME` phases may list NAME.\n\n"
        f"{table(head, retrieving)}"
    )


def _tool(spec: ToolSpec) -> tuple[str, str, str]:
    parameters = [p.name + ("" if p.required else f"={_json(p.default)}") for p in spec.parameters]
    return f"`{spec.name}`", f"`{', '.join(parameters)}`" if parameters else "", spec.description.partition("\n")[0]


def events() -> str:
    """The journal's events."""
    from workbench.engine.journal.event import KINDS

    rows = [(f"`{kind}`", fields_) for kind, fields_ in KINDS.items()]
    return (
        "# Events of a journal\n\nWhat `workbench run --json` prints and `.workbench/journal/` holds, one JSON object "
        "per line. Each has `seq`, `at`, `run_id`, `kind`, the place (`branch`, `phase`, `visit`, `attempt`, `turn`, "
        "`call`) and `data` with the fields below.\n\n" + table(("kind", "data"), rows)
    )


def replies() -> str:
    """The format of offline replies."""
    from pydantic import BaseModel

    from workbench.models.replies import EXAMPLE, Defaults, RepliesFile, Reply, ScriptedCall, ScriptedUsage

    parts = [
        "# Offline replies\n\nThe offline model answers the calls of `flow.yaml` from `flow.replies.yaml` beside it; "
        "the tools run for real. `workbench check flow.replies.yaml` checks the file and whether it fits the cascade; "
        "`workbench schema replies` prints its JSON Schema.\n\nA call that no entry answers ends the run: exit code 1, "
        "and `workbench resume` goes on once the entry is written. "
        "With `--unscripted ok`, or the setting `unscripted: ok`, a placeholder answers instead: "
        "no check judges it, nor judges by one, and a warning names the phase.\n\n"
        f"```yaml\n{EXAMPLE}```\n"
    ]
    titles: dict[type[BaseModel], str] = {
        RepliesFile: "The file",
        Defaults: "defaults",
        Reply: "An entry",
        ScriptedCall: "calls",
        ScriptedUsage: "usage",
    }
    for model, title in titles.items():
        properties = model.model_json_schema()["properties"]
        rows = [(f"`{name}`", schema.get("description", "")) for name, schema in properties.items()]
        parts.append(f"\n## {title}\n\n{' '.join((model.__doc__ or '').split())}\n\n" + table(("key", "meaning"), rows))
    return "".join(parts)


def pipelines() -> str:
    """The attributes of pipelines in DOT, and what shapes and types do."""
    from workbench.language.dot.attributes import SHAPES, TABLE, TYPES

    parts = [
        "# Pipelines in DOT\n\nAttributes that only draw (`color`, `rankdir`, …) are kept and mean nothing here; "
        "`workbench check` warns of others that nothing reads.\n"
    ]
    for scope, rows in TABLE.items():
        cells = (
            (
                f"`{row.name}`",
                row.kind + (f": {' · '.join(f'`{one}`' for one in row.choices)}" if row.choices else ""),
                f"`{row.default}`" if row.default else "",
                row.about,
                " ".join(f"`{name}`" for name in (*row.also, *row.dialects)),
            )
            for row in rows
        )
        title = f"An {scope}" if scope == "edge" else f"A {scope}" if scope == "node" else "The graph"
        parts.append(f"\n## {title}\n\n" + table(("attribute", "value", "default", "meaning", "also read"), cells))
    shapes = {type: [shape for shape, of in SHAPES.items() if of == type] for type in TYPES}
    rows_of_types = ((f"`{type}`", " ".join(f"`{one}`" for one in shapes[type]), kind) for type, kind in TYPES.items())
    parts.append(
        "\n## Types and shapes\n\n`type` decides before `shape`, and `shape` before the ids `start`, `exit`, `end`. "
        "`workbench.shapes` of the graph gives shapes another type.\n\n"
        + table(("type", "shape", "kind"), rows_of_types)
    )
    return "".join(parts)


def sql_tables() -> str:
    """The tables of the index and their columns."""
    from workbench.store.index.catalogue import COLUMNS, INTERNAL, TABLES

    outer = [(f"`{name}`", about) for name, about in TABLES.items() if name not in INTERNAL]
    inner = [(f"`{name}`", about) for name, about in TABLES.items() if name in INTERNAL]
    return "\n".join(
        (
            "# The tables\n",
            "What `workbench sql` and the console (`Q`) query. `DESCRIBE all_data` lists the columns of a table.\n",
            table(("table", "holds"), outer),
            "Tables that serve the index, or that one of these shows better:\n",
            table(("table", "holds"), inner),
            "## Columns\n",
            "A name means the same in every table that has it.\n",
            table(("column", "meaning"), [(f"`{name}`", about) for name, about in COLUMNS.items()]),
        )
    )


PAGES: dict[str, Callable[[], str]] = {
    "language.md": language,
    "command-line.md": command_line,
    "checks.md": checks,
    "settings.md": settings,
    "keys.md": keys,
    "contexts.md": contexts,
    "tools.md": tools,
    "events.md": events,
    "replies.md": replies,
    "pipelines.md": pipelines,
    "tables.md": sql_tables,
}


def outdated() -> list[str]:
    """Names of the pages that are not as they would be made now."""
    return [
        name
        for name, make in PAGES.items()
        if not (FOLDER / name).is_file() or (FOLDER / name).read_text("utf-8") != NOTICE + make()
    ]


def main(arguments: Sequence[str]) -> int:
    if "--check" in arguments:
        found = outdated()
        for name in found:
            print(f"docs/reference/{name} is out of date; run python -m scripts.make_reference")
        return 1 if found else 0
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, make in PAGES.items():
        (FOLDER / name).write_text(NOTICE + make(), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
