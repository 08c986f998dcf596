"""An agent that prints what its environment holds: no secret reaches a record."""

import pytest
import zstandard

from owa_bench.hosting.gateway.options import GatewayOptions, environment_secrets
from owa_bench.records.events import Message, ModelCall
from owa_bench.records.packs import Transcripts
from owa_bench.runs.store import files
from tests.builders.small_runs import played, run_options, small  # noqa: F401  fixtures

CANARIES = {
    "OPENAI_API_KEY": "sk-canary-0a1b2c3d4e",
    "SOME_PASSWORD": 'p"canary \\ wörd',
    "MODEL_PLACE": "by-name-canary-51",
}


def recorded(root):
    """Yield every byte of a run directory, shards unpacked."""
    for path in root.rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            yield path.name, data
            if data.startswith(b"\x28\xb5\x2f\xfd"):
                reader = zstandard.ZstdDecompressor()
                yield (path.name, reader.stream_reader(data, read_across_frames=True).read())


@pytest.mark.parametrize("agent", ["PrintsCanaries", "DiesWithCanaries"])
def test_no_secret_of_the_environment_reaches_a_record(
    played,  # noqa: F811
    small,  # noqa: F811
    monkeypatch,
    agent,
):
    for name, value in CANARIES.items():
        monkeypatch.setenv(name, value)
    reach = GatewayOptions(model_key_env="MODEL_PLACE", pass_env=tuple(CANARIES))
    layout = played(small(f"odd_agents:{agent}"), in_process=False, gateway=reach)
    (leaf,) = files.read_leaves(layout)
    trace = files.read_trace(layout, leaf)
    if agent == "PrintsCanaries":
        assert {type(event) for event in trace.events} >= {Message, ModelCall}
        call, *_ = trace.of(ModelCall)
        assert "{secret:env:SOME_PASSWORD:" in call.model
        assert b"{secret:env:" in Transcripts(layout).read(call.prompt)
    else:
        assert "{secret:env:SOME_PASSWORD:" in trace.end.reason
    for name, data in recorded(layout.root):
        assert b"canary" not in data.lower().replace(agent.lower().encode(), b""), name


def test_secrets_are_known_by_name_and_length():
    environment = {
        "A_KEY": "12345678",
        "token": "abcdefgh",
        "DB_PASSWORD": "short",
        "PATH": "/usr/bin:/bin",
        "PLACE": "abcdefghi",
    }
    found = environment_secrets(environment, "PLACE")
    assert set(found) == {"env:A_KEY", "env:token", "env:PLACE"}
