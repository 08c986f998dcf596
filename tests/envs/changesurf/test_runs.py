"""Agents on pages through `owa-bench run`, to a report that verifies."""

import json

import pytest
from typer.testing import CliRunner

from owa_bench.cli.app import app
from owa_bench.records.events import EpisodeEnd, ModelCall
from owa_bench.records.layout import RunLayout
from owa_bench.records.packs import Transcripts
from owa_bench.runs.store import files
from tests.builders.stub_server import completion, serving

pytestmark = pytest.mark.browser
PAGES = ("--suite", "changesurf", "--family", "depot/buy", "--tier", "1")


def run(folder, *given):
    words = ("run", *PAGES, "--delta", "0", "--episodes", "1", "--workers", "1")
    home = {"OWA_BENCH_HOME": str(folder.with_name("home"))}
    done = CliRunner().invoke(app, [*words, "--out", str(folder), *given], env=home)
    assert done.exit_code == 0, done.output
    layout = RunLayout(folder)
    return [files.read_trace(layout, leaf).events for leaf in files.read_leaves(layout)]


@pytest.mark.slow
def test_every_archetype_plays_its_episode(tmp_path, browser):
    names = ("fixed", "exact_label", "lexicon", "agentic", "orchestrator")
    arms = [word for name in names for word in ("--agent", name)]
    traces = run(tmp_path / "run", *arms, "--interventions", "0")
    ends = [events[-1] for events in traces]
    assert len(ends) == len(names)
    assert all(isinstance(end, EpisodeEnd) and end.q_state == 1.0 for end in ends)


def test_a_model_is_shown_the_window_and_the_record_holds_its_digest(tmp_path, browser):
    bodies = []

    def policy(messages):
        bodies.append(json.dumps(messages))
        return completion(("finish", {"answer": "", "p": 0.1}))

    with serving(policy) as url:
        spec = "language-model:model=stub,screenshots=true"
        (events,) = run(
            tmp_path / "run",
            "--agent",
            spec,
            "--model-url",
            url,
            "--no-preflight",
            "--interventions",
            "0",
        )
    assert "data:image/jpeg;base64,/9j/" in bodies[0]
    (call,) = [event for event in events if isinstance(event, ModelCall)]
    layout = RunLayout(tmp_path / "run")
    kept = Transcripts(layout).read(call.prompt)
    assert b"image_url" in kept
    assert b"base64" not in kept
