"""L7xx and L801: settings that do nothing, contradict, or are not run."""

from __future__ import annotations

from tests.language.lint.examples.example import Example
from workbench.language.lint.environment import LintEnvironment

PRICES = LintEnvironment(price_known={"dear": True, "obscure": False}.get)


CACHES = LintEnvironment(cached_from={"marking": 1024, "self": 0}.get)


def only_mask(spec: str) -> tuple[str, int] | None:
    at = spec.find("maks")
    return None if at < 0 else ("'maks' is not a strategy", at + 1)


SPECS = LintEnvironment(bad_strategy=only_mask)


def phase(more: str) -> str:
    return f"- {{name: a, instructions: x, {more}}}"


def sounded(more: str) -> str:
    return phase(f"soundings: {{{more}}}")


def ruled(rules: str, more: str = "") -> str:
    return phase(f"rules: {{{rules}}}{more}")


def warded(when: str, ward: str, more: str = "") -> str:
    return phase(f"wards: {{{when}: [{{validator: length_check, {ward}}}]}}{more}")


SETTINGS = (
    Example("L701", phase("«model: m, soundings: {models: [n, o]}"), phase("model: m, soundings: {factor: 2}")),
    Example(
        "L702",
        sounded("factor: «6, models: {m: {factor: 3}, n: {factor: 4}}"),
        sounded("factor: 7, models: {m: {factor: 3}, n: {factor: 4}}"),
        fix="7",
    ),
    Example(
        "L702",
        sounded("factor: «6, models: {m: {factor: 3}}"),
        sounded("factor: 6, models: {m: {factor: 3}}, model_strategy: weighted"),
        id="weights",
    ),
    Example(
        "L703",
        sounded("factor: 2, pareto_frontier: {enabled: true}, «cost_aware_evaluation: {}"),
        sounded("factor: 2, pareto_frontier: {enabled: false}, cost_aware_evaluation: {}"),
    ),
    Example("L704", sounded("«evaluator_instructions: e"), sounded("evaluator_instructions: e, factor: 2")),
    Example(
        "L704",
        sounded("«mutate: true"),
        sounded("mutate: true, reforge: {honing_prompt: h}"),
        id="reforge",
    ),
    Example(
        "L705",
        sounded("factor: 2, mutate: false, «mutations: [m]"),
        sounded("factor: 2, mutations: [m]"),
    ),
    Example("L706", ruled("«turn_prompt: t"), ruled("turn_prompt: t, max_turns: 2")),
    Example(
        "L707",
        ruled("«retry_instructions: r, max_attempts: 3"),
        ruled("retry_instructions: r, max_attempts: 3", ", output_schema: {}"),
        id="nothing can fail",
    ),
    Example(
        "L707",
        ruled("«retry_instructions: r", ", output_schema: {}"),
        ruled("retry_instructions: r", ", wards: {post: [{validator: length_check, mode: retry, max_attempts: 2}]}"),
        id="one attempt",
    ),
    Example(
        "L708",
        ruled("loop_until: satisfied, loop_until_silent: true, «loop_until_prompt: p"),
        ruled("loop_until: satisfied, loop_until_silent: false, loop_until_prompt: p"),
    ),
    Example("L709", ruled("loop_until: «satisfied"), ruled("loop_until: satisfied, max_attempts: 2")),
    Example("L710", warded("pre", "mode: «retry"), warded("pre", "mode: blocking"), fix="blocking", id="before"),
    Example(
        "L710",
        warded("post", "mode: «retry"),
        warded("post", "mode: retry", ", rules: {max_attempts: 2}"),
        id="one attempt",
    ),
    Example(
        "L710",
        warded("turn", "mode: «retry"),
        warded("turn", "mode: retry", ", rules: {max_turns: 2}"),
        id="a turn-ward has the next turn",
    ),
    Example("L711", warded("post", "«max_attempts: 2"), warded("post", "mode: retry, max_attempts: 2")),
    Example(
        "L712",
        sounded("factor: 2, «human_eval: {}"),
        sounded("factor: 2, human_eval: {}, evaluator: hybrid"),
    ),
    Example(
        "L712",
        sounded("factor: 2, evaluator: human, «llm_prefilter: 2"),
        sounded("factor: 2, evaluator: hybrid, llm_prefilter: 2"),
        id="prefilter",
    ),
    Example(
        "L712",
        sounded("factor: 2, «aggregator_instructions: a"),
        sounded("factor: 2, aggregator_instructions: a, mode: aggregate"),
        id="aggregator",
    ),
    Example(
        "L713",
        sounded("models: [dear, «obscure, obscure], cost_aware_evaluation: {}"),
        sounded("models: [dear, unheard_of], cost_aware_evaluation: {}"),
        PRICES,
    ),
    Example(
        "L714", "- {name: a, tool: create_chart, «rules: {max_turns: 2}}", "- {name: a, tool: create_chart, tackle: []}"
    ),
    Example(
        "L714",
        "- {name: a, tool: create_chart, wards: {pre: [length_check], «post: [length_check]}}",
        "- {name: a, tool: create_chart, wards: {pre: [length_check]}}",
        id="no answer to judge",
    ),
    Example("L714", phase("«retry: {max_attempts: 2}"), phase("rules: {max_attempts: 2}"), id="the reverse"),
    Example(
        "L715",
        sounded("reforge: {honing_prompt: h, threshold: {validator: satisfied, «mode: blocking}}"),
        sounded("reforge: {honing_prompt: h, threshold: satisfied}"),
    ),
    Example("L716", phase("«use_native_tools: true"), phase("use_native_tools: true, tackle: [read_file]")),
    Example(
        "L716",
        phase("«use_native_tools: true, handoffs: [b]") + "\n- {name: b, instructions: x}",
        phase("use_native_tools: true, handoffs: [a, b]") + "\n- {name: b, instructions: x}",
        id="routing is a tool",
    ),
    Example(
        "L717",
        phase("output_extraction: {pattern: 'ab(?«y)', store_as: k}"),
        phase("output_extraction: {pattern: 'a *+(?<name>b)', store_as: k}"),
    ),
    Example(
        "L718",
        phase("output_schema: {type: object, properties: {n: {type: «integr}}}"),
        phase("output_schema: {type: object, properties: {n: {type: integer}}}"),
    ),
    Example(
        "L718", phase("output_schema: {$schema: «[1]}"), phase("output_schema: {$schema: 'urn:x'}"), id="its draft"
    ),
    Example(
        "L719",
        sounded("models: {m: {factor: 2}}, model_strategy: «random"),
        sounded("models: [m, n], model_strategy: random"),
        fix="weighted",
    ),
    Example(
        "L720",
        "cascade_id: c\ntool_caching: {enabled: true, storage: «redis}\nphases: [{name: a, instructions: x}]",
        "cascade_id: c\ntool_caching: {enabled: false, storage: redis}\nphases: [{name: a, instructions: x}]",
        fix="memory",
    ),
    Example("L721", phase("strategy: 'mask+«maks'"), phase("strategy: 'mask+mask'"), SPECS),
    Example(
        "L721",
        "cascade_id: c\nstrategies: {short: «maks}\nphases: [{name: a, instructions: x, strategy: short}]",
        "cascade_id: c\nstrategies: {maks: mask}\nphases: [{name: a, instructions: x, strategy: maks}]",
        SPECS,
        id="where it is named",
    ),
    Example(
        "L722",
        phase("human_input: {on_timeout: «escalate}"),
        phase("human_input: {on_timeout: escalate, escalate_to: Ann}"),
    ),
    Example(
        "L723",
        "cascade_id: c\ntoken_budget: {max_total: «3000}\nphases: [{name: a, instructions: x}]",
        "cascade_id: c\ntoken_budget: {max_total: 3000, reserve_for_output: 500}\nphases: [{name: a, instructions: x}]",
    ),
    Example(
        "L723",
        "cascade_id: c\ntoken_budget: {phase_overrides: {a: «3000}}\nphases: [{name: a, instructions: x}]",
        "cascade_id: c\ntoken_budget: {phase_overrides: {a: 9000}}\nphases: [{name: a, instructions: x}]",
        id="of a phase",
    ),
    Example("L801", phase("«narrator: true"), phase("narrator: false")),
    Example(
        "L801",
        "cascade_id: c\n«triggers: [{name: t}]\nphases: [{name: a, instructions: x}]",
        "cascade_id: c\ntriggers: []\nphases: [{name: a, instructions: x}]",
        id="of the cascade",
    ),
    Example("L724", phase("parameters: {«api_base: x}"), phase("parameters: {api_basis: x, top_k: 5}")),
    Example("L724", phase("parameters: {«temperature: 1}"), phase("temperature: 1"), id="has a key of its own"),
    Example(
        "L724",
        sounded("models: {m: {parameters: {«stream: true}}}"),
        sounded("models: {m: {parameters: {min_p: 0.1}}}"),
        id="of candidates",
    ),
    Example("L725", phase("enforce: «provider"), phase("enforce: provider, output_schema: {type: object}")),
    Example(
        "L725",
        phase("enforce: «both, output_schema: {type: object}, tackle: [read_file]"),
        phase("enforce: both, output_schema: {type: object}, tackle: [read_file], use_native_tools: true"),
        id="tools as text",
    ),
    Example(
        "L725",
        phase("enforce: «both, output_schema: {type: object}, response_format: json_object"),
        phase("enforce: prompt, output_schema: {type: object}, response_format: json_object"),
        id="two forms",
    ),
    Example(
        "L726",
        phase("model: self, «cache_control: 1h"),
        phase("model: marking, cache_control: 1h"),
        CACHES,
    ),
    Example(
        "L726",
        phase("model: marking, «cache_control: {at: [task]}"),
        phase("model: marking, cache_control: {at: [task, last]}"),
        CACHES,
        id="too small",
    ),
    Example(
        "L726",
        "cascade_id: c\n«cache_control: 1h\nphases: [{name: a, instructions: x, model: self}]",
        "cascade_id: c\ncache_control: 1h\nphases: [{name: a, instructions: x, model: unheard_of}]",
        CACHES,
        id="of the cascade",
    ),
    Example(
        "L727",
        "cascade_id: c\nphases: [{name: a, instructions: x}]\ntoken_budget: {phase_overrides: {«aa: 9000}}",
        "cascade_id: c\nphases: [{name: a, instructions: x}]\ntoken_budget: {phase_overrides: {a: 9000}}",
        fix="a",
    ),
    Example(
        "L727",
        "cascade_id: c\nphases: [{name: a, instructions: x}]\ntool_caching: {tools: {«red_file: {ttl: 3}}}",
        "cascade_id: c\nphases: [{name: a, instructions: x}]\ntool_caching: {tools: {read_file: {ttl: 3}}}",
        fix="read_file",
        id="of a tool",
    ),
)
