"""Every code that `check` can print: its severity, what it says, when it says so, and what to do about it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

from msgspec import Struct

from workbench.language.problem import Severity

_FIELD = re.compile(r"\{\w+\}")
_WORD = re.compile(r"[a-z]{3}")
E, W, I = Severity.ERROR, Severity.WARNING, Severity.INFO  # noqa: E741


class Lint(Struct, frozen=True):
    """One row. ``message`` has ``{name}`` fields that a finding fills in; ``hint`` is the usual advice."""

    code: str
    severity: Severity
    message: str
    when: str
    hint: str = ""

    @property
    def title(self) -> str:
        """What it says of any file: ``handoff target '…' is not a phase (handoffs)``."""
        said = _FIELD.sub("…", self.message)
        return f"{said} ({self.when})" if _WORD.search(said) else self.when


_FILE = (
    Lint("L101", E, "not valid {format}: {problem}", "the parser stops; comments in JSON are named as such"),
    Lint("L102", E, "the file holds {count} YAML documents; a cascade is one (the first is shown)", "a second ---"),
    Lint("L103", E, "key '{key}' is written twice, first at {place}", "the same key twice in one mapping"),
    Lint("L104", E, "too {much}: {limit}", "size in bytes, depth, and values after aliases are expanded"),
    Lint("L105", E, "not UTF-8 at byte {offset}", "the file is in another encoding"),
    Lint("L106", W, "tag '{tag}' is ignored; the plain value is used", "a custom YAML tag"),
)

_SHAPE = (
    Lint("L201", W, "unknown key '{key}' in {place}", "no field of that name; the key is kept as it is"),
    Lint("L202", E, "'{field}' must be {type}, got {value}", "a value of the wrong type"),
    Lint("L203", E, "'{field}' is missing", "a required key is absent, or phases is empty"),
    Lint("L204", E, "'{field}' must be one of {choices}; got '{value}'", "a value outside an enumeration"),
    Lint("L205", E, "'{field}' is a number; a template is not rendered here", "Jinja in a number or a boolean"),
    Lint("L206", E, "'{field}' must be at least {least}", "a number below its range, a weight below 0"),
    Lint(
        "L207",
        W,
        "'{written}' is read as '{meant}'",
        "accepted spellings: hyphens in enumerations, filter, if; yes, no, on, off",
    ),
    Lint("L208", E, "phase '{name}' is defined twice", "two phases of one name"),
    Lint("L209", E, "a phase needs one of 'instructions', 'tool', 'for_each_row', 'htmx'", "none or several"),
    Lint("L210", W, "id '{written}' is stored as '{slug}'", "an id that cannot be a file name"),
    Lint("L211", W, "'{field}' belongs under '{place}'", "a known key at the wrong level"),
    Lint("L212", I, '{value} is taken as the text "{text}"', "a value of inputs that is not text"),
    Lint("L213", W, "phase name '{name}' is a context keyword; from: cannot select it", "all, first, previous, prev"),
    Lint("L214", I, "'{field}' has no effect here: {reason}", "notes, and keys that only other programs read"),
)

_FLOW = (
    Lint(
        "L301",
        W,
        "phase '{name}' is unreachable: {reason}",
        "no walk from the first phase gets there",
        "name it in 'handoffs' of the phase that should come before it",
    ),
    Lint("L302", E, "handoff target '{name}' is not a phase", "handoffs", "the phases are {phases}"),
    Lint(
        "L303",
        E,
        "routing target '{name}' is not a phase",
        "routing, on_error, decision routing",
        "the phases are {phases}",
    ),
    Lint(
        "L304",
        I,
        "the run ends after '{name}'; '{branch}' below it is a branch",
        "a phase without handoffs stands before a phase that others lead to",
        "handoffs: [] says that the end is meant, handoffs: [{branch}] goes on",
    ),
    Lint(
        "L305",
        W,
        "every path from '{name}' returns to it; only the visit limit ends the run",
        "a cycle without exit",
        "add a handoff that leads out of {cycle}",
    ),
    Lint(
        "L306",
        E,
        "{kind} file '{ref}' not found",
        "ref, and the sql: or shell: file of a deterministic phase",
        "paths are relative to this file, then to the workspace and its tackle folders",
    ),
    Lint(
        "L307",
        W,
        "cascades call each other: {chain}",
        "recursion; a run is cut at depth 5",
        "make sure that something ends it earlier",
    ),
    Lint("L308", W, "handoff '{name}' is listed twice", "the same target again", "remove one of them"),
)

_SOURCES = (
    Lint(
        "L401",
        W,
        "'{name}' cannot have run before '{phase}'; this source is always skipped",
        "a source that only runs later, on another branch, or never",
        "let the source run first",
    ),
    Lint(
        "L402", W, "context source '{name}' is not a phase", "from, inject_from, from_phases", "the phases are {phases}"
    ),
    Lint(
        "L403",
        W,
        "'{field}' is ignored because {because}",
        "inject_from, fidelity or thread_id beside what wins over them; what a strategy covers",
        "keep one of the two",
    ),
    Lint(
        "L404",
        I,
        "'{name}' runs only on some paths to '{phase}'",
        "a source that some runs skip",
        "on the other paths this source is skipped",
    ),
    Lint(
        "L405",
        W,
        "nothing runs before the first phase",
        "a source keyword in the first phase, to which no loop returns",
        "only the input is there: by {{{{ input.… }}}}, or by include_input",
    ),
    Lint("L406", W, "'exclude: {name}' takes nothing away", "a name that 'from' never brings in", "{reason}"),
    Lint(
        "L407",
        W,
        "'{field}' has no effect without {needs}",
        "a filter without what it filters",
        "add it, or remove this key",
    ),
    Lint(
        "L408",
        W,
        "'{field}' has no effect with mode: explicit",
        "selection or anchors without auto",
        "write mode: auto",
    ),
    Lint(
        "L409",
        I,
        "native tool messages of '{name}' are injected as text",
        "include messages from a phase with native tools",
        "calls read [Called NAME with …]; results become user messages",
    ),
    Lint(
        "L410",
        I,
        "'{field}' cannot act: one turn, one attempt",
        "masking needs an earlier turn",
        "it masks earlier turns of the same visit",
    ),
    Lint("L411", W, "unknown context_ttl category '{name}'", "context_ttl", "the categories are {categories}"),
    Lint("L412", W, "the {part} of '{name}' is injected twice", "two sources bring the same part", "first by {first}"),
    Lint(
        "L413",
        W,
        "table '{name}': {reason}",
        "sql_data, python_data and their kin, for_each_row: a phase that cannot have run before, or no phase",
        "let that phase run first",
    ),
)

_TOOLS = (
    Lint("L501", W, "tool '{name}' is not known; it will not be offered", "tackle", "{why}"),
    Lint(
        "L502",
        E,
        "validator '{name}' is not known",
        "loop_until, wards, soundings, threshold, quality_metric",
        "define it under 'validators', as a function in tools/NAME.py, or as a cascade in tackle/",
    ),
    Lint(
        "L503",
        W,
        "'route_to' is not a tool to list; it is offered when there is a choice",
        "route_to in tackle",
        "give the phase two handoffs, or one with a description",
    ),
    Lint("L504", W, "tool '{name}' hides a built-in of that name", "registration", "rename it to have both"),
    Lint(
        "L505",
        W,
        "validator cascade '{name}' never reads input.content",
        "a validator that cannot see what it judges",
        "use {{{{ input.content }}}} in its instructions",
    ),
    Lint(
        "L506",
        W,
        "model '{name}' is not known to support native tool calls",
        "use_native_tools",
        "without use_native_tools, tools work with any model",
    ),
    Lint(
        "L507", W, "tool '{name}' needs {needs}", "it would be refused as things are", "until then each call is refused"
    ),
    Lint("L508", W, "{what}", "a manifest without any tool, or manifest_context without a manifest", "{advice}"),
    Lint("L509", W, "rag: {problem}", "rag.directory", "until it is there each search is an error"),
    Lint(
        "L510",
        W,
        "validator '{name}' is a function here; the cascade {file} is not asked",
        "a cascade of a tackle folder that is called like a function",
        "rename the cascade to have it asked",
    ),
    Lint("L511", E, "tool '{name}' is not known; the phase cannot run", "the tool of a phase without a model", "{why}"),
    Lint("L512", E, "the MCP server '{name}' cannot be used: {reason}", "mcp", "name it otherwise"),
)

_TEMPLATES = (
    Lint("L601", E, "template: {problem}", "Jinja syntax", "the phase would fail when it renders this"),
    Lint("L602", W, "'{name}' is undefined", "a name that no template of this kind has", "it renders as empty"),
    Lint("L603", E, "no {kind} named '{name}'", "an unknown Jinja filter or test", "see the list of Jinja's built-ins"),
    Lint(
        "L604",
        W,
        "{name}: {reason}",
        "no phase, or one that cannot have run before",
        "it renders as empty; default(…) says 'maybe'",
    ),
    Lint(
        "L605",
        I,
        "state.{name} is never set by this cascade",
        "no set_state, extraction, person or child sets it",
        "it renders as empty; default(…) says 'maybe'",
    ),
    Lint(
        "L606",
        W,
        "input.{name} is not in inputs_schema",
        "a schema is there and does not name it",
        "it renders as empty; add it to inputs_schema, or say default(…)",
    ),
    Lint(
        "L607",
        W,
        "'{comparison}' is never true in turn_prompt; {bound}",
        "a comparison of turn that cannot hold",
        "turn_prompt is rendered for turns 2 to max_turns",
    ),
    Lint(
        "L608",
        E,
        "template file '@{name}' not found",
        "instructions: @file",
        "paths are relative to this file, then to the workspace and its tackle folders",
    ),
    Lint("L609", W, "'{name}' exists only in {field}", "a variable of another field", "it renders as empty here"),
    Lint(
        "L610",
        I,
        "input.{name}, which a condition asks for, is not in inputs_schema",
        "a condition asks for a name like a declared one",
    ),
)

_SETTINGS = (
    Lint(
        "L701",
        W,
        "'model' only serves attempts without an assigned model",
        "phase.model beside soundings.models",
        "every candidate has a model of its own; the evaluator still uses this one",
    ),
    Lint(
        "L702",
        W,
        "factor {factor} is ignored; the models add up to {total}",
        "a models mapping with another sum",
        "write factor: {total}, or change the models' factors",
    ),
    Lint("L703", W, "pareto_frontier decides; cost_aware_evaluation only informs", "both are enabled", "disable one"),
    Lint(
        "L704",
        W,
        "one candidate: '{field}' has no effect",
        "factor 1 and no reforge",
        "set factor to 2 or more",
    ),
    Lint(
        "L705",
        W,
        "'{field}' has no effect: mutate is false",
        "mutate: false is written",
        "remove mutate, or set it true",
    ),
    Lint("L706", W, "'turn_prompt' is never used with max_turns 1", "there is no second turn", "raise max_turns"),
    Lint(
        "L707",
        W,
        "'retry_instructions' is never used: {reason}",
        "one attempt, or nothing that can fail",
        "{advice}",
    ),
    Lint("L708", W, "'loop_until_prompt' has no effect {why}", "with silent, or without loop_until", "remove it"),
    Lint(
        "L709",
        I,
        "loop_until without max_attempts: 5 attempts",
        "the limit is not written",
        "write max_attempts to choose it",
    ),
    Lint("L710", W, "{what}", "a pre-ward in mode retry, or a retry ward whose limit is 1", "{advice}"),
    Lint(
        "L711", W, "'max_attempts' has no effect {where}", "a ward that never repeats anything", "mode: retry uses it"
    ),
    Lint(
        "L712",
        W,
        "'{field}' has no effect without {needs}",
        "human_eval, llm_prefilter, aggregator_*",
        "add {needs}, or remove this key",
    ),
    Lint(
        "L713",
        W,
        "no price is known for '{name}'; costs cannot be compared",
        "Pareto, cost-aware evaluation",
        "its cost is taken as the mean of the known ones",
    ),
    Lint("L714", W, "'{field}' has no effect in {kind} phase", "fields of the other kind of phase", "remove it"),
    Lint(
        "L715", I, "'mode' has no effect in a threshold", "reforge.threshold", "a threshold only stops the refinement"
    ),
    Lint("L716", W, "use_native_tools without tools", "no tackle, no routing choice", "list tools in 'tackle'"),
    Lint(
        "L717",
        E,
        "'{field}' is not a valid expression: {problem}",
        "output_extraction, error_pattern",
        "a backslash takes the special meaning from a character",
    ),
    Lint(
        "L718",
        E,
        "'output_schema' is not a valid JSON Schema: {problem}",
        "output_schema",
        "JSON Schema, draft 2020-12",
    ),
    Lint(
        "L719",
        W,
        "'model_strategy: random' draws the dict's models at random; factors become weights",
        "a models mapping with random",
        "write weighted, or a list of models",
    ),
    Lint("L720", W, "storage '{name}' is not available; memory is used", "tool_caching.storage", "write memory"),
    Lint(
        "L721",
        E,
        "strategy '{name}' cannot be read: {problem}",
        "strategy, strategies",
        "docs/reference/contexts.md lists the parts",
    ),
    Lint(
        "L722",
        W,
        "'on_timeout: escalate' names no person; the phase fails then",
        "human_input with escalate and without escalate_to",
        "add escalate_to: a phase, or whom to ask once more",
    ),
    Lint(
        "L723",
        W,
        "a budget of {total} tokens leaves nothing beside the {reserve} kept for the answer",
        "token_budget.max_total, phase_overrides, reserve_for_output",
        "a larger budget, or a smaller reserve_for_output",
    ),
    Lint("L724", E, "'{name}' cannot stand in 'parameters': {reason}", "parameters"),
    Lint("L725", E, "'enforce: {enforce}' cannot work: {reason}", "enforce", "'enforce: prompt' always works"),
    Lint("L726", I, "'cache_control' has no effect: {reason}", "cache_control", "leave it out"),
    Lint(
        "L727",
        W,
        "'{field}' has no effect for '{name}', which is not a {kind}",
        "phase_overrides of a budget, tools of tool_caching",
        "write the name of a {kind}, or remove this key",
    ),
)

_NOT_RUN = (
    Lint("L801", W, "'{field}' is not run yet: {consequence}", "a field that is loaded and kept, but not executed"),
    Lint("L802", W, "tool type '{type}' is not run yet: not offered", "a .tool.json of that type", "tool '{name}'"),
)

_REPLIES = (
    Lint("L901", E, "{field}: {problem}", "a file of offline replies that does not have the form of one"),
    Lint("L902", E, "'{name}' is not a phase of this cascade, or of one that it starts", "a key of replies"),
    Lint("L903", E, "'{name}' has no replies", "a key of replies with an empty list", "write one, or remove it"),
    Lint("L904", W, "no candidate of this phase is called '{branch}'", "a branch of offline replies"),
    Lint("L905", W, "turn {turn} is never reached", "offline replies beyond max_turns, the attempts, or the visits"),
    Lint("L906", W, "phase '{name}' calls no model", "offline replies of a phase with tool or for_each_row"),
    Lint("L907", W, "the phase does not offer the tool '{name}'", "a call in offline replies"),
)

_DOT = (
    Lint("dot_syntax", E, "expected {expected}, found {found}", "DOT that cannot be read; what follows still is"),
    Lint("dot_unterminated", E, "the {thing} that opens here is never closed", "a string, comment, bracket or brace"),
    Lint("dot_value", E, "attribute without a value: {name}", "often an unescaped quote before it", 'write \\" inside'),
    Lint("dot_strict", E, "'strict' graphs are not read; leave the word out", "strict digraph"),
    Lint("dot_undirected", E, "'--' has no direction; write '->'", "graph in place of digraph, -- in place of ->"),
    Lint("dot_second_graph", E, "a second graph in the file; one is read", "more than one graph"),
    Lint("dot_outside", E, "text outside the braces of the graph: {found}", "prose before or behind the graph"),
    Lint("dot_html", E, "HTML-like values are not read; write a string", "label=<…>"),
    Lint("dot_port", E, "ports are not read: '{name}'", "a:n", "name the node alone"),
    Lint("dot_concatenation", E, "strings cannot be put together with +; write one", '"a" + "b"'),
    Lint("dot_group_edge", E, "an edge to a group of nodes is not read", "a -> {b c}", "write an edge for each"),
    Lint("bad_id", E, "'{name}' is not an id", "an id with other characters than letters, digits and _", "use a label"),
    Lint("dot_tolerated", I, "read all the same", "missing commas, several [..], ids in quotes, # lines; once a file"),
    Lint("declared_twice", I, "node '{name}' is declared again; the later value wins", "two declarations of a node"),
    Lint("key_twice", W, "'{name}' is written twice; the later value wins", "an attribute twice in one [..]"),
    Lint("implicit_node", W, "node '{name}' is named only by an edge", "a node without a declaration"),
    Lint("alias", I, "'{written}' is read as '{meant}'", "a spelling of another program; once a file"),
    Lint(
        "attribute_unknown", W, "nothing reads the attribute '{name}' of a {thing}", "kept as it is; once for each name"
    ),
    Lint("attribute_value", E, "'{name}' must be {expected}, got '{value}'", "a value of the wrong type"),
    Lint("attribute_choice", W, "'{name}' is one of {choices}; got '{value}'", "the default counts then"),
    Lint("type_known", W, "unknown {thing} '{name}'", "a type or shape that means nothing; it runs as a model phase"),
    Lint("fidelity_valid", W, "'{name}' is one of {choices}; got '{value}'", "the next level decides then"),
    Lint("stylesheet_syntax", E, "{problem}", "model_stylesheet: selector {{ property: value; }}"),
    Lint("stylesheet_property", W, "'{name}' is not a property of a stylesheet", "only models, providers and effort"),
)

_PIPELINE = (
    Lint("start_node", E, "a pipeline has one start; this one has {what}", "no start, or several", "shape=Mdiamond"),
    Lint("terminal_node", E, "a pipeline has one exit; this one has {what}", "no exit, or several", "shape=Msquare"),
    Lint(
        "reachability",
        E,
        "no way leads from '{start}' to '{name}'",
        "neither edges nor retry jumps lead there",
        "add an edge, or let it pass with workbench.allow",
    ),
    Lint("endless", W, "no way leads from here to the exit: {names}", "a loop that only a limit of visits ends"),
    Lint("start_no_incoming", E, "an edge leads into the start '{name}'", "the start is where a run begins"),
    Lint("exit_no_outgoing", E, "an edge leads out of the exit '{name}'", "the exit is where a run ends"),
    Lint(
        "dead_end",
        E,
        "no edge leads out of '{name}'",
        "a node that is not the exit and has no way on; a warning for one that asks a person",
        "add an edge to the exit, or let it pass with workbench.allow",
    ),
    Lint("condition_syntax", E, "{problem}", "a condition that cannot be read", "write key=value && key!=value"),
    Lint("condition_equals", I, "'==' is read as '='", "once a file"),
    Lint("condition_key", I, "'{key}' is read as a key of the context", "write context.{key}"),
    Lint("condition_value", W, "'{key}' is always empty: {reason}", "a condition on what nothing in the graph sets"),
    Lint(
        "outcome_never",
        W,
        "the outcome of '{name}' is never '{word}'",
        "a condition on a word with which a command, a parallel node or the start cannot end",
        "it is {known}",
    ),
    Lint(
        "conditions_not_exhaustive",
        W,
        "no edge out of '{name}' is taken with {case}; the run would fail there",
        "all edges have conditions, and they leave a case out",
        "add an edge without a condition",
    ),
    Lint(
        "parallel_edges_ignored",
        W,
        "only one of the edges from '{name}' is taken: {targets}",
        "several edges without condition and label",
        "shape=component takes all of them",
    ),
    Lint("parallel_no_meeting", E, "the branches of '{name}' never meet", "no node that every branch reaches"),
    Lint("join_unreached", W, "no parallel branch reaches the join '{name}'", "a tripleoctagon without a component"),
    Lint("child_missing", E, "'{name}' cannot run a child: {problem}", "stack.child_dotfile"),
    Lint("child_circle", E, "the child of '{name}' leads back to this file: {chain}", "a run would never end"),
    Lint(
        "prompt_missing",
        E,
        "there is no file '{name}' with the prompt",
        "prompt_file, or prompt with @",
        "the path begins at the folder of this file",
    ),
    Lint(
        "tool_command_missing",
        E,
        "'{name}' has no tool_command to run",
        "a tool node without a command",
        "its shape or type says that it runs one: add tool_command, or make it another node",
    ),
    Lint("tool_unknown", E, "tool '{name}' is not known", "workbench.tools"),
    Lint("tool_absent", W, "not here, and not offered: {name}", "a tool of another program, in allowed_tools"),
    Lint("retry_target_exists", W, "'{key}' names '{name}', which is not a node", "a jump that cannot be made"),
    Lint(
        "goal_gate_has_retry",
        W,
        "the gate '{name}' has no retry_target: a run that does not meet it fails",
        "neither the node nor the graph names one",
    ),
    Lint("prompt_on_llm_nodes", W, "'{name}' has neither prompt nor label: its id is the task", "a model phase"),
    Lint(
        "prompt_ignored",
        W,
        "the prompt of '{name}' is sent to no model",
        "a prompt of a node whose shape or type asks none",
        "shape=box asks a model; it can say which edge comes next",
    ),
    Lint("default_choice", W, "'{name}' is none of the choices: {choices}", "human.default_choice"),
    Lint(
        "thread_fallback",
        W,
        "'{name}' continues the thread of '{key}' alone, and sees nothing else of the run",
        "fidelity full without a thread: the key is the id of the phase before",
        "name a thread_id, or a default_thread of the graph",
    ),
    Lint(
        "thread_without_full",
        W,
        "thread '{name}' of '{node}' has no effect",
        "only fidelity full has threads",
        "nothing gives the node fidelity=full, and no other mode continues a thread",
    ),
    Lint("variable_unknown", W, "'{name}' may stay as it is written", "a variable that only a run can know, once each"),
    Lint("allow_unknown", W, "'{name}' cannot be let pass; only {codes} can", "workbench.allow"),
)

CATALOGUE: Mapping[str, Lint] = MappingProxyType(
    {
        row.code: row
        for row in (
            *_FILE,
            *_SHAPE,
            *_FLOW,
            *_SOURCES,
            *_TOOLS,
            *_TEMPLATES,
            *_SETTINGS,
            *_NOT_RUN,
            *_REPLIES,
            *_DOT,
            *_PIPELINE,
        )
    }
)
"""Every code with its row, in order: the documentation of `check` is generated from it."""
