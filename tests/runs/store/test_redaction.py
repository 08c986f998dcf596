import base64
import html
import json
import re
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from owa_bench.canonical import keyed_digest
from owa_bench.errors import FieldError, InfrastructureFailure
from owa_bench.records.events import (
    DECODER,
    ENCODER,
    Action,
    Call,
    EpisodeEnd,
    EpisodeStart,
    Execution,
    ModelCall,
    Resource,
)
from owa_bench.records.trace import replay_line
from owa_bench.runs.store.redaction import SHORTEST, Redactor

KEY = b"redact key"
CANARY = 'c4n"ry\\ /&=+é-secret:value'


def redactor(*values: str) -> Redactor:
    made = Redactor(KEY)
    for number, value in enumerate(values):
        made.learn(f"s{number}", value)
    return made


def act(text: str) -> Action:
    return Action(
        step=1,
        action=text,
        verified=False,
        reward=0.0,
        terminated=False,
        truncated=False,
        observation="0" * 64,
        at_ms=0,
    )


def test_plain_value_becomes_its_mark() -> None:
    mark = keyed_digest(KEY, "hunter2hunter2").hex()[:16]
    got = redactor("hunter2hunter2").text("pass: hunter2hunter2!")
    assert got == f"pass: {{secret:s0:{mark}}}!"


@pytest.mark.parametrize(
    "wrap",
    [
        str,
        json.dumps,
        lambda v: json.dumps({"body": json.dumps({"k": v})}),
        lambda v: json.dumps(v, ensure_ascii=False),
        lambda v: "https://x.example/?key=" + quote(v),
        lambda v: "https://x.example/?key=" + quote(v, safe=""),
        lambda v: "key=" + quote_plus(v),
        lambda v: f"<b>{html.escape(v)}</b>",
    ],
)
def test_canary_in_every_dress_leaves_no_line_and_comes_back(wrap) -> None:
    text = wrap(CANARY)
    known = redactor(CANARY)
    line = known.encode(act(text)).line
    recorded = DECODER.decode(line)
    assert isinstance(recorded, Action)
    assert "{secret:s0:" in recorded.action
    for dress in (CANARY, json.dumps(CANARY)[1:-1], quote(CANARY, safe="")):
        assert dress not in recorded.action
    assert known.restore(recorded.action) == text
    assert known.data(text.encode()) == recorded.action.encode()


@pytest.mark.parametrize("prefix", ["", "i", "id", "id:", "longer id:"])
@pytest.mark.parametrize("suffix", ["", "x", "xy"])
def test_canary_inside_base64_is_found_at_any_offset(prefix, suffix) -> None:
    value = "client_secret_0123456789"
    text = base64.b64encode((prefix + value + suffix).encode()).decode()
    known = redactor(value)
    hidden = known.text(f"Basic {text}")
    assert "{secret:s0:" in hidden
    left = hidden.split("{secret:")[0].removeprefix("Basic ")
    assert len(left) <= len(text) - len(value)
    assert known.restore(hidden) == f"Basic {text}"


def test_registered_base64_form_is_a_secret_of_its_own() -> None:
    basic = base64.b64encode(b"ledger:hunter2hunter2").decode()
    made = Redactor(KEY)
    made.learn("ledger.basic", basic)
    assert made.text(f"Basic {basic}").startswith("Basic {secret:ledger.basic:")


def test_longer_secret_wins_over_one_it_contains() -> None:
    got = redactor("abcdefgh", "abcdefgh-ijkl").text("x abcdefgh-ijkl y abcdefgh z")
    assert got.count("{secret:s1:") == 1
    assert got.count("{secret:s0:") == 1
    assert "ijkl" not in got


def test_value_is_not_redacted_before_it_is_known() -> None:
    made = Redactor(KEY)
    assert b"hunter2hunter2" in made.encode(act("hunter2hunter2")).line
    made.learn("late", "hunter2hunter2")
    assert b"hunter2hunter2" not in made.encode(act("hunter2hunter2")).line


def test_digits_of_numbers_are_left_alone() -> None:
    event = Resource(step=12345678, meter="tokens_in", amount=12345678.0)
    assert redactor("12345678").encode(event).line == ENCODER.encode(event)


def test_marks_differ_between_keys_and_agree_within_one() -> None:
    one, two = Redactor(b"1"), Redactor(b"2")
    one.learn("k", "hunter2hunter2")
    two.learn("k", "hunter2hunter2")
    assert one.text("hunter2hunter2") != two.text("hunter2hunter2")
    assert one.text("hunter2hunter2") == one.text("hunter2hunter2")


@pytest.mark.parametrize("value", ["", "a", "a" * (SHORTEST - 1)])
def test_short_secret_is_refused_without_printing_it(value: str) -> None:
    with pytest.raises(FieldError, match="at least 8") as caught:
        Redactor(KEY).learn("k", value)
    assert caught.value.value == "*" * len(value)


@pytest.mark.parametrize("name", ["", 'a"b', "a\\b", "a b", "{a}", "a\n", ":a"])
def test_name_that_breaks_json_is_refused(name: str) -> None:
    with pytest.raises(FieldError, match="secret name"):
        Redactor(KEY).learn(name, "long enough value")


@given(st.text(min_size=SHORTEST, max_size=30), st.text(), st.text())
def test_any_text_comes_back(value: str, before: str, after: str) -> None:
    known = redactor(value)
    text = before + value + after
    assert known.restore(known.text(text)) == text
    kept = re.split(r"\{secret:s0:[0-9a-f]{16}\}", known.text(text))
    assert len(kept) > 1
    assert not any(value in piece for piece in kept)


@given(st.binary(max_size=200))
def test_bytes_without_secrets_pass_unchanged(data: bytes) -> None:
    assert redactor("no such thing in random bytes").data(data) == data


@given(
    st.lists(st.text("ab:", min_size=SHORTEST, max_size=40), min_size=1, max_size=6),
    st.text("ab:", max_size=200),
    st.data(),
)
def test_every_secret_is_found_wherever_it_stands(values, noise, data) -> None:
    place = data.draw(st.integers(0, len(noise)))
    text = noise[:place] + data.draw(st.sampled_from(values)) + noise[place:]
    known = redactor(*values)
    hidden = known.text(text)
    for piece in re.split(r"\{secret:s\d:[0-9a-f]{16}\}", hidden):
        assert not [value for value in values if value in piece]
    assert known.restore(hidden) == text
    assert b"{secret:" in known.encode(act(text)).line


@pytest.mark.parametrize("length", [8, 14, 15, 16, 23, 24, 64])
@pytest.mark.parametrize("offset", range(9))
def test_secret_of_any_length_is_found_at_any_offset(length, offset) -> None:
    value = ("0123456789abcdefghijklmnopqrstuvwxyz" * 2)[:length]
    for tail in ("", "-", "-" * 9):
        text = "-" * offset + value + tail
        hidden = redactor(value).data(text.encode())
        assert hidden.startswith(b"-" * offset + b"{secret:s0:")
        assert hidden.endswith(b"}" + tail.encode())


# --- replay lines ---------------------------------------------------------------------


def test_line_is_the_one_encoding_of_what_it_says() -> None:
    event = Resource(step=1, source="agent", meter="tokens_in", amount=3)
    line, replay = redactor().encode(event)
    assert b'"amount":3.0' in line
    assert line == ENCODER.encode(DECODER.decode(line)) == replay


@pytest.mark.parametrize("meter", ["cpu_s", "gpu_s", "wall_s"])
def test_volatile_meters_are_not_replayed(meter) -> None:
    event = Resource(step=1, meter=meter, amount=1.0)
    assert redactor().encode(event).replay is None


def test_volatile_fields_leave_the_replay_line_alone(start, end) -> None:
    known = redactor()

    def replay(event) -> bytes | None:
        return known.encode(event).replay

    run = Execution(step=1, argv=("a",), exit_code=0, output="", wall_s=1.0, cpu_s=2.0)
    slow = Execution(step=1, argv=("a",), exit_code=0, output="", wall_s=9.0, cpu_s=9.0)
    assert replay(start(attempt=0)) == replay(start(attempt=2))
    assert replay(start(attempt=0)) != replay(start(world="1" * 64))
    assert replay(end(wall_s=0.1)) == replay(end(wall_s=7.0))
    assert replay(end(quality=0.5)) != replay(end(quality=0.6))
    assert replay(run) == replay(slow)


def test_reader_of_the_line_finds_the_same_replay_line(start, end, call) -> None:
    known = redactor("client_secret_0123456789")
    events = [start(), call(1, target="https://x/?k=client_secret_0123456789"), end()]
    for event in events:
        line, replay = known.encode(event)
        assert replay_line(DECODER.decode(line)) == replay


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        (Call, {"status": "ok"}),
        (Call, {"ok": None}),
        (EpisodeEnd, {"quality": float("nan")}),
        (EpisodeStart, {"theta": float("inf")}),
    ],
)
def test_event_that_does_not_fit_is_refused(kind, change, start, end, call) -> None:
    make = {Call: lambda **c: call(1, **c), EpisodeEnd: end, EpisodeStart: start}[kind]
    with pytest.raises(InfrastructureFailure, match=kind.__name__):
        redactor().encode(make(**change))


def test_object_in_a_field_is_refused() -> None:
    event = ModelCall(step=1, model=object(), prompt="", reply="")  # type: ignore[arg-type]
    with pytest.raises(InfrastructureFailure, match="ModelCall"):
        redactor().encode(event)
