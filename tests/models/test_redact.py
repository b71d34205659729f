"""Known values and key-shaped strings. The keys here are made up and spelled in parts, so that no scanner objects."""

from __future__ import annotations

import base64
import json
import time
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.engine.journal.redact import Redactor, is_secret, without_password

KEY = "s3cret/Value+for=tests"
NAMED = {"OPENROUTER_API_KEY": KEY}


def test_a_named_value_is_replaced_by_its_name() -> None:
    assert Redactor(NAMED)(f"the key {KEY}, twice: {KEY}") == (
        "the key [redacted OPENROUTER_API_KEY], twice: [redacted OPENROUTER_API_KEY]",
        2,
    )


def test_a_value_without_a_name_is_replaced_too() -> None:
    assert Redactor([KEY])(KEY) == ("[redacted secret]", 1)


@pytest.mark.parametrize("prefix", ["", "u", "us", "user:"])
@pytest.mark.parametrize("encode", [base64.b64encode, base64.urlsafe_b64encode])
def test_base64_hides_nothing_at_any_alignment(prefix: str, encode: object) -> None:
    assert callable(encode)
    encoded = encode(f"{prefix}{KEY}:after".encode()).decode()

    text, count = Redactor(NAMED)(f"Basic {encoded}")
    assert count == 1
    inner = base64.b64encode(KEY.encode()).decode()[4:-8]
    assert inner not in text


@pytest.mark.parametrize("form", [quote(KEY, safe=""), quote(KEY, safe="").replace("%20", "+"), json.dumps(KEY)[1:-1]])
def test_the_forms_of_urls_and_json_are_known(form: str) -> None:
    assert Redactor(NAMED)(f"x={form}&y=1") == ("x=[redacted OPENROUTER_API_KEY]&y=1", 1)


def test_a_secret_with_quotes_is_found_inside_json() -> None:
    secret = 'a"b\\c\n12345ü'

    assert Redactor({"DB_PASSWORD": secret})(json.dumps({"p": secret}))[0] == '{"p": "[redacted DB_PASSWORD]"}'
    assert Redactor({"DB_PASSWORD": secret})(json.dumps({"p": secret}, ensure_ascii=False))[1] == 1


def test_the_password_of_a_url_is_replaced_and_its_host_is_not() -> None:
    url = "postgres://app:hunter2hunter2@db.example.com/prod"

    assert Redactor({"DATABASE_URL": url})(f"connecting to {url}") == (
        "connecting to postgres://app:[redacted DATABASE_URL]@db.example.com/prod",
        1,
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("API_KEY", "short"),
        ("API_KEY", ""),
        ("DB_PASSWORD", "password"),
        ("DB_PASSWORD", "Changeme"),
        ("API_TOKEN", "aaaaaaaaaaaa"),
        ("API_KEY", "your-key"),
        ("API_KEY", "API_KEY_HERE"),
        ("SECRET_PORT", "54321543"),
        ("APP_HOME", "/srv/app/current/v2"),
        ("WORKBENCH_DEFAULT_MODEL", "google/gemini-2.5-flash-lite"),
        ("SERVICE_URL", "https://api.example.com/v1/things"),
        ("PROJECT", "my-project-2024-production"),
        ("GIT_COMMIT", "e41a01dd6b07c2a39cbb05c61a91d7b5e3f0a1b2"),
        ("SSH_AUTH_SOCK", "/tmp/ssh-1a2B3c/agent.1234"),
        ("GOOGLE_CREDENTIALS_FILE", "/home/ann/google-2024.json"),
    ],
)
def test_short_and_common_values_are_left_alone(name: str, value: str) -> None:
    text = f"a text with {value} in it"

    assert Redactor({name: value})(text) == (text, 0)


def test_a_long_random_token_counts_under_any_name() -> None:
    assert is_secret("zX81kq0PmV3nT7rL5yBw", "SENTRY")


@pytest.mark.parametrize(
    "secret",
    [
        "sk-" + "ant-api03-Qw3rTy" * 3,
        "sk-" + "or-v1-0123456789abcdef0123456789",
        "AKIA" + "IOSFODNN7EXAMPLE",
        "ghp_" + "a1B2" * 9,
        "github_pat_" + "11ABCDEFG0" * 3,
        "glpat-" + "x1y2z3w4v5u6t7s8r9q0",
        "AIza" + "Sy0123456789012345678901234567890ab"[:35],
        "xoxb-" + "1234567890-abcdefghij",
        "hf_" + "abcDEF0123" * 4,
        "eyJhbGciOiJIUzI1NiJ9." + "eyJzdWIiOiIxMjM0NTY3ODkwIn0." + "dozjgNryP4J3jVmNHl0w5N",
        "-----BEGIN RSA PRIVATE " + "KEY-----\nMIIE+abc/def==\n-----END RSA PRIVATE KEY-----",
    ],
)
def test_key_shaped_strings_are_replaced(secret: str) -> None:
    text, count = Redactor()(f'{{"value": "{secret}"}}')

    assert count == 1
    assert text.startswith('{"value": "[redacted ')
    assert text.endswith(']"}')


def test_the_word_bearer_stays() -> None:
    assert Redactor()("Authorization: Bearer abcdefghij0123456789xyz") == ("Authorization: Bearer [redacted token]", 1)


@pytest.mark.parametrize(
    "text",
    [
        "task-management-and-planning-2024-edition",
        "sk-this-is-only-a-placeholder-here",
        "the bearer of bad news",
        "AKIA is a prefix",
        "eyJ is how a token begins",
    ],
)
def test_ordinary_text_is_left_alone(text: str) -> None:
    assert Redactor(NAMED)(text) == (text, 0)


def test_shapes_can_be_switched_off() -> None:
    text = "AKIA" + "IOSFODNN7EXAMPLE"

    assert Redactor(NAMED, shapes=False)(text) == (text, 0)
    assert Redactor(NAMED, shapes=False)(KEY)[1] == 1


_PIECES = st.sampled_from(
    [
        KEY,
        "AKIA" + "IOSFODNN7EXAMPLE",
        "sk-" + "a1" * 12,
        "Bearer ",
        "abcdefghij0123456789",
        "[redacted X]",
        "[redacted ",
        "]",
        " ",
        "eyJ",
        "x",
        "PASSw0rd!x",
        "-----BEGIN PRIVATE KEY-----",
        base64.b64encode(KEY.encode()).decode(),
    ]
)


@given(st.lists(st.one_of(_PIECES, st.text(max_size=5)), max_size=12).map("".join))
def test_replacing_twice_changes_nothing(text: str) -> None:
    redactor = Redactor({"A_KEY": KEY, "B_PASSWORD": "PASSw0rd!x"})
    once, count = redactor(text)

    assert redactor(once) == (once, 0)
    assert KEY not in once
    assert (count == 0) == (once == text)


@given(st.text(alphabet='abcdXYZ0123456789+/=_-"\\ é', min_size=12, max_size=40), st.text(max_size=20))
def test_no_known_secret_survives_in_any_form(secret: str, around: str) -> None:
    secret = secret.strip()
    if not is_secret(secret):
        return
    redactor = Redactor({"THE_KEY": secret})
    for form in (secret, quote(secret, safe=""), json.dumps(secret), base64.b64encode(secret.encode()).decode()):
        assert redactor(f"{around} {form} {around}")[1] >= 1


@pytest.mark.proof
def test_ten_megabytes_take_less_than_twenty_searches_for_a_word() -> None:
    text = "The quick brown fox jumps over the lazy dog; sk- eyJ Bearer 12.\n" * 160_000
    redactor = Redactor({f"K{n}_KEY": f"{n}aB3{'xyz' * 10}{n}" for n in range(10)})

    begin = time.process_time()
    for word in range(20):
        text.count(f"zebra{word}e")
    searches = time.process_time() - begin
    begin = time.process_time()
    assert redactor(text) == (text, 0)
    assert time.process_time() - begin < 20 * searches + 1.0


@pytest.mark.parametrize(
    "hostile", ["eyJ", "sk-", "eyJaaaaaaaa.", "-----BEGIN PRIVATE KEY-----", "Bearer ", "[redacted "]
)
def test_hostile_repetition_stays_linear(hostile: str) -> None:
    redactor = Redactor(NAMED)

    def seconds(repeat: int) -> float:
        text = hostile * repeat
        begin = time.process_time()
        redactor(text)
        return time.process_time() - begin

    assert seconds(160_000) < 40 * min(seconds(10_000) for _ in range(3)) + 0.1


@pytest.mark.parametrize("text", ["https://ada:hunter2@host/v1", "see postgres://app:p%40ss@db:5432/x now"])
def test_the_password_of_any_url_is_replaced(text: str) -> None:
    shown, count = Redactor()(text)
    assert count == 1
    assert "[redacted password]@" in shown
    assert Redactor()(shown) == (shown, 0)


@pytest.mark.parametrize(
    "text",
    [
        "http://127.0.0.1:8000/v1",
        "mail ada@example.com",
        "https://example.com/a:b@c",
        "http://a:1, see x@y",
        "git@host:x",
    ],
)
def test_what_only_looks_like_one_stays(text: str) -> None:
    assert Redactor()(text) == (text, 0)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://ada:hunter2@host:1/v1", "https://host:1/v1"),
        ("https://host/v1?a=b@c", "https://host/v1?a=b@c"),
        ("", ""),
        ("no url", "no url"),
    ],
)
def test_a_url_is_shown_without_its_password(url: str, shown: str) -> None:
    assert without_password(url) == shown
