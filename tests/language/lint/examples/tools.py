"""L5xx: tools, validators, models."""

from __future__ import annotations

from tests.language.lint.examples.example import BUILTIN_TOOLS, BUILTIN_VALIDATORS, Example
from workbench.language.lint.environment import LintEnvironment, ToolFacts, ValidatorFacts

WORLD = LintEnvironment(
    {
        **BUILTIN_TOOLS,
        "read_file": ToolFacts("function", hides_builtin=True),
        "linux_shell": ToolFacts("builtin", needs="a sandbox: none is installed"),
        "clojure_data": ToolFacts("builtin", needs="Babashka: bb is not installed"),
        "lookup": ToolFacts("function"),
        "strict": ToolFacts("function", needs="trust: the folder is not trusted"),
        "painter": ToolFacts("declarative", text='{"tool_id": "painter", "type": "gradio"}'),
        "grep": ToolFacts("declarative", text='{"tool_id": "grep", "type": "shell", "error_pattern": "(oops"}'),
    },
    {
        **BUILTIN_VALIDATORS,
        "length_check": ValidatorFacts("builtin", hides="tackle/length_check.yaml"),
        "blind": ValidatorFacts("cascade", text="cascade_id: blind\nphases: [{name: a, instructions: Is it good?}]"),
        "keen": ValidatorFacts(
            "cascade", text="cascade_id: keen\nphases: [{name: a, instructions: '{{ input.content }}'}]"
        ),
        "given": ValidatorFacts(
            "cascade", text="cascade_id: g\nphases: [{name: a, instructions: Judge., context: {}}]"
        ),
    },
    native_tools={"new": True, "old": False}.get,
    refused={"python": "trust: the folder is not trusted"},
)


def listed(tools: str, more: str = "") -> str:
    return f"- {{name: a, instructions: x, tackle: [{tools}]{more}}}"


def warded(validator: str) -> str:
    return f"- {{name: a, instructions: x, wards: {{post: [{{validator: {validator}}}]}}}}"


TOOLS = (
    Example("L501", listed("«read_fil"), listed("read_file"), fix="read_file"),
    Example("L501", listed("«rag_search"), listed("rag_search", ", rag: {directory: d}"), id="without rag"),
    Example(
        "L501",
        "cascade_id: c\nmemory: bank\nphases: [{name: a, instructions: x, tackle: [«banks]}]",
        "cascade_id: c\nmemory: bank\nphases: [{name: a, instructions: x, tackle: [bank]}]",
        id="memory",
    ),
    Example("L501", listed("«'{{ input.tool }}'"), listed("read_file"), id="a template"),
    Example("L501", listed("«say"), listed("create_chart"), id="of the original"),
    Example("L511", "- {name: a, tool: «no_such_tool}", "- {name: a, tool: 'sql:query.sql'}"),
    Example("L511", "- {name: a, tool: «sql_dat}", "- {name: a, tool: sql_data}", fix="sql_data", id="data tool"),
    Example("L511", "- {name: a, tool: «map_cascad}", "- {name: a, tool: map_cascade}", fix="map_cascade", id="map"),
    Example(
        "L502",
        "- {name: a, instructions: x, rules: {loop_until: «lenght_check, max_attempts: 2}}",
        "- {name: a, instructions: x, rules: {loop_until: length_check, max_attempts: 2}}",
        fix="length_check",
        id="loop_until",
    ),
    Example("L502", warded("«list_files"), warded("lookup"), WORLD, id="a registered function serves, a built-in not"),
    Example(
        "L502",
        "- {name: a, instructions: x, soundings: {factor: 2, validator: «mine}}",
        "cascade_id: c\nvalidators: {mine: {instructions: '{{ input.content }}'}}\n"
        "phases: [{name: a, instructions: x, soundings: {factor: 2, validator: mine}}]",
        id="soundings",
    ),
    Example(
        "L502",
        "cascade_id: c\nsoundings: {reforge: {honing_prompt: h, threshold: {validator: «nope}}}\n"
        "phases: [{name: a, instructions: x}]",
        "cascade_id: c\nsoundings: {reforge: {honing_prompt: h, threshold: {validator: satisfied}}}\n"
        "phases: [{name: a, instructions: x}]",
        id="threshold",
    ),
    Example(
        "L502",
        "- {name: a, instructions: x, soundings: {factor: 2, pareto_frontier: "
        "{enabled: true, quality_metric: «'validator:satisfed'}}}",
        "- {name: a, instructions: x, soundings: {factor: 2, pareto_frontier: "
        "{enabled: true, quality_metric: 'validator:satisfied'}}}",
        fix="'validator:satisfied'",
        id="metric",
    ),
    Example("L503", listed("read_file, «route_to"), listed("read_file")),
    Example("L504", listed("«read_file"), listed("list_files"), WORLD),
    Example("L505", warded("«blind"), warded("keen"), WORLD),
    Example("L510", warded("«length_check"), warded("simple_validator"), WORLD),
    Example("L505", warded("«blind"), warded("given"), WORLD, id="the whole input is in its context"),
    Example(
        "L505",
        "cascade_id: c\nvalidators: {v: {«instructions: Is it good?}}\nphases: [{name: a, instructions: x}]",
        "cascade_id: c\nvalidators: {v: {instructions: '{{ input | tojson }}'}}\nphases: [{name: a, instructions: x}]",
        id="inline",
    ),
    Example(
        "L506",
        listed("lookup", ", use_native_tools: true, model: «'old::high'"),
        listed("lookup", ", use_native_tools: true, model: 'new::high'"),
        WORLD,
    ),
    Example(
        "L506",
        listed("lookup", ", use_native_tools: true, soundings: {models: {«old: {factor: 2}}}"),
        listed("lookup", ", use_native_tools: true, soundings: {models: {unheard_of: {factor: 2}}}"),
        WORLD,
        id="of a candidate",
    ),
    Example("L507", listed("«linux_shell"), listed("run_code"), WORLD),
    Example("L507", warded("«strict"), warded("keen"), WORLD, id="as a validator"),
    Example("L507", warded("«{clojure: x}"), warded("{bash: x}"), WORLD, id="code of a validator"),
    Example("L507", "- {name: a, tool: «'python:m.f'}", "- {name: a, tool: create_chart}", WORLD, id="python"),
    Example(
        "L508",
        "- {name: a, instructions: x, «manifest_context: full}",
        "- {name: a, instructions: x, manifest_context: full, tackle: manifest}",
    ),
    Example(
        "L508",
        "- {name: a, instructions: x, tackle: «manifest}",
        "- {name: a, instructions: x, tackle: []}",
        LintEnvironment(tools={}),
        id="no tool",
    ),
    Example("L717", listed("«grep"), listed("lookup"), WORLD, id="of a tool"),
    Example("L802", listed("«painter"), listed("lookup"), WORLD),
    Example(
        "L509",
        "- {name: a, instructions: x, rag: {directory: «papers}}",
        "- {name: a, instructions: x, rag: {directory: docs}}",
        LintEnvironment(bad_folder=lambda name: "" if name == "docs" else f"the folder '{name}' does not exist"),
    ),
    Example(
        "L512",
        "- {name: a, instructions: x, mcp: {«a__b: some-server}}",
        "- {name: a, instructions: x, mcp: {a-b_c: some-server}, tackle: [a-b_c__tool]}",
    ),
    Example(
        "L501",
        "- {name: a, instructions: x, tackle: [«pages__read]}",
        "- {name: a, instructions: x, tackle: [files__read]}",
        LintEnvironment(BUILTIN_TOOLS, servers=("files",)),
        id="of a server",
    ),
)
