"""`owa-bench run`: what it plays, what it prints, what it refuses."""

import json
import math
import re
from copy import copy
from dataclasses import replace

import pytest

from owa_bench import discovery
from owa_bench.discovery import PluginEntry
from owa_bench.runs.plan import plan
from owa_bench.runs.plan.request import _read

pytestmark = pytest.mark.part(2)

SMALL = "--suite toolquest --family restock --tier 1 --delta 0 --in-process"
RUN = f"run --out x {SMALL}"

AGENTS = {
    "fine.py": "def act(observation, info):\n    return '{}'\n",
    "raises.py": "def act(observation, info):\n    raise ValueError('boom')\n",
    "hangs.py": ("import time\ndef act(observation, info):\n    time.sleep(60)\n"),
    "nonsense.py": "def act(observation, info):\n    return object()\n",
    "noisy.py": (
        "import os\nprint('noise')\n"
        "def act(observation, info):\n"
        "    os.write(1, b'noise')\n"
        '    return \'{"tool": "finish", "arguments": {"p": 0.1}}\'\n'
    ),
    "two.py": "class A:\n    act = None\nclass B:\n    act = None\n",
    "broken.py": "class A(:\n",
    "imports.py": "import no_such_module\n",
}


@pytest.fixture
def agents(place):
    """Agents of every temper in the working folder."""
    for name, text in AGENTS.items():
        (place / name).write_text(text)


def test_it_says_how_every_agent_fared_and_what_comes_next(owa):
    said = owa(f"{RUN} --agent fixed --agent noop")
    assert said.code == 0
    assert "4 of 4 episodes complete in x" in said.out
    rows = [line.split() for line in said.out.splitlines()]
    assert ["fixed", "2", "0", "1.00", "2", "finished"] in rows
    assert ["noop", "2", "0", "0.00", "2", "finished"] in rows
    assert "next: owa-bench report x" in said.err
    assert "why episodes failed: owa-bench view x --failures" in said.err


def test_json_and_nothing_else(owa):
    said = owa(f"{RUN} --agent noop --json")
    found = json.loads(said.out)
    assert (found["entries"], found["complete"], found["missing"]) == (2, 2, 0)
    assert found["played"][0]["outcomes"] == {"finished": 2}
    assert not said.err


def test_failing_agents_are_outcomes_and_the_run_goes_on(owa, agents):
    given = " ".join(f"--agent {n}.py" for n in ("raises", "hangs", "nonsense", "noisy"))
    said = owa(f"{RUN.removesuffix('--in-process')} {given} --act-seconds 0.5 --json")
    found = {row["arm"]: row for row in json.loads(said.out)["played"]}
    assert found["raises"]["outcomes"] == {"agent_raised": 2}
    assert "ValueError: boom" in found["raises"]["first_failure"]
    assert found["hangs"]["outcomes"] == {"agent_timeout": 2}
    assert found["nonsense"]["outcomes"] == {"agent_raised": 2}
    assert found["noisy"]["outcomes"] == {"finished": 2}


def test_the_first_failure_of_an_agent_is_told(owa, agents):
    said = owa(f"{RUN} --agent raises.py")
    assert said.code == 0
    assert "first failure of raises: agent_raised: ValueError: boom" in said.err


@pytest.mark.part(2)
@pytest.mark.parametrize("place_of_agents", ["", " --in-process"])
@pytest.mark.parametrize(
    ("agent", "words"),
    [
        ("two.py", "classes with `act`: A, B"),
        ("broken.py", "SyntaxError: invalid syntax (broken.py, line 1)"),
        ("imports.py", "No module named 'no_such_module' (imports.py:1)"),
        ("fine:Nobody", "holds no `Nobody`"),
    ],
)
def test_an_agent_that_cannot_be_imported_is_refused_before_anything_is_written(
    owa, agents, place, agent, words, place_of_agents
):
    run = RUN.removesuffix("--in-process") + place_of_agents
    said = owa(f"{run} --agent {agent}")
    assert said.code == 2
    assert words in said.err
    assert not (place / "x").exists()


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ("", "Say what is played"),
        ("--family restock", "Say what is played"),
        ("--suite toolqest", "(did you mean `toolquest`?), got 'toolqest'"),
        ("--battery demp", "Did you mean `demo`?"),
        ("--battery gone.toml", "`battery` must be a file"),
        ("--suite toolquest --family reconsile", "(did you mean `reconcile`?)"),
        ("--suite toolquest --tier 9", "`--tier` must be one of 1, 2, 3, 4, got 9"),
        ("--suite toolquest --tier one", "`--tier` must be whole numbers, got 'one'"),
        ("--suite toolquest --delta 2", "`--delta` must lie in [0, 1], got 2.0"),
        ("--suite toolquest --delta -1", "`--delta` must lie in [0, 1], got -1.0"),
        ("--suite toolquest --delta nan", "`--delta` must lie in [0, 1], got nan"),
        ("--suite toolquest --delta abc", "`--delta` must be numbers, got 'abc'"),
        ("--suite toolquest --episodes 0", "`--episodes` must be at least 1, got 0"),
        ("--suite toolquest --repeats 0", "`--repeats` must be at least 1, got 0"),
        (
            "--suite toolquest --interventions x",
            "whole numbers, `protocol` or `unlimited`, got 'x'",
        ),
        ("--suite toolquest --interventions -1", 'count >= 0, "protocol" or "unlimited", got -1'),
        ("--suite toolquest --workers 0", "`workers` must be at least 1, got 0"),
        ("--suite toolquest --concurrency 0", "`concurrency` must be at least 1, got 0"),
        ("--suite toolquest --budget nonsense", "must read METER=AMOUNT"),
        ("--suite toolquest --budget dollars=3", "characters_out, usd"),
        ("--suite toolquest --model-api nope", "--model-api': 'nope' is not one of"),
        ("--suite toolquest --budget api_cals=2", "(did you mean `api_calls`?)"),
        ("--suite toolquest --budget api_calls=x", "`--budget` must be numbers, got 'x'"),
        ("--suite toolquest --budget api_calls=-2", "must be above 0 and finite, got -2"),
        ("--suite toolquest --run-budget cpu_s=nan", "must be above 0 and finite"),
        ("--suite toolquest --budget usd=0", "must be above 0 and finite, got 0.0"),
        ("--suite toolquest --budget usd=1 --run-budget usd=2", "each meter once"),
        ("--suite toolquest --failure-share 0", "`--failure-share` must lie in (0, 1]"),
        ("--suite toolquest --steps 0", "`--steps` must be at least 1, got 0"),
        ("--suite toolquest --act-seconds 0", "`--act-seconds` must be above 0"),
        ("--suite toolquest --calendar monthly", "`calendar` must be nested"),
        ("--suite toolquest --calendar nested:D9", "one of D0, D1, D2, D3, got 'D9'"),
        ("--suite toolquest --calendar single", "`calendar` must be nested"),
        ("--suite toolquest --calendar single:web/theme", "must be one of domain api"),
        ("--suite toolquest --days 2 --calendar ''", "`--calendar` must name one"),
        (f"--suite toolquest --crews {10**30}", "`--crews` must be at most 1000000"),
        (f"--suite toolquest --interventions {10**30}", "must be at most 1000000"),
        (f"--suite toolquest --steps {10**30}", "`--steps` must be at most"),
        ("--suite toolquest --act-seconds 1e300", "must be at most 31622400 s, a year"),
        ("--suite toolquest --agent http://[::1", "Invalid IPv6 URL"),
        ("--suite toolquest --agent http://h:99999/", "Port out of range"),
        ("--suite toolquest --tools-off htpt", "did you mean `http`?"),
        ("--suite toolquest --trials 1", "1 `episodes` of a trial"),
        ("--suite toolquest --protocol defalt", "Did you mean `default`?"),
        ("--suite toolquest --protocol gone.toml", "must be a file, got gone.toml"),
        ("--suite toolquest --price-card prices", "Did you mean `price_card`?"),
        ("--suite toolquest --nonce short", "must have at least 8 characters"),
        ("--suite toolquest --key a/b", "`key name` must be letters"),
        ("--suite toolquest --key defualt", "No key is called `defualt`"),
        ("--suite toolquest --key lab", "`owa-bench keygen lab` makes one."),
        (
            "--suite toolquest --agent pd",
            "`agent` must play `toolquest`, and it plays cartpole3d, got 'pd'",
        ),
        (
            "--suite cartpole3d --agent noop",
            "must play `cartpole3d`, which has no tools to call, got 'noop'",
        ),
        ("--suite toolquest --days 0", "`days` must be at least 1, got 0"),
        ("--suite toolquest --days 2 --calendar nested", "`calendar` must be one of days"),
        ("--suite toolquest --days 9 --calendar recurring:.2@2", "must be at most 0.2"),
        ("--suite toolquest --practice 2", "--practice goes with --days"),
        ("--battery demo --suite toolquest", "--suite does not go with --battery"),
        ("--battery demo --tier 1", "--tier does not go with --battery"),
        (
            "--battery level_2 --calendar nested",
            "--calendar does not go with --battery level_2: its campaign has its own",
        ),
        ("--battery demo --protocol mine.toml", "--protocol does not go with --battery"),
        ("--suite toolquest --dry-run --plan-only", "does not go with --dry-run"),
        ("--suite toolquest --like pilot", "--like goes with --dry-run"),
        ("--suite toolquest --dry-run --like pilot", "A run directory must exist, got pilot"),
        ("--suite toolquest --resume", "is no run to resume"),
        ("--suite toolquest --agent oracel", "Did you mean `oracle`?"),
        ("--suite toolquest --agent gone.py", "no such file, got 'gone.py'"),
        ("--suite toolquest --agent 'no-such-program --x'", "no program or file"),
        ("--suite toolquest --agent policy:oracl", "Did you mean `oracle`?"),
        ("--suite toolquest --agent noop:x=1", "has no option `x`"),
    ],
)
def test_wrong_use_names_field_value_and_fix_and_writes_nothing(owa, place, flags, words):
    said = owa(f"run --out x --in-process --agent noop {flags}")
    assert said.code == 2
    assert words in said.err
    assert said.err.count("\n") == 1
    assert not said.out
    assert not (place / "x").exists()


@pytest.mark.parametrize(
    "flags",
    [
        "--episodes 99999999999999999999",
        "--repeats 99999999999999999999",
        "--days 99999999",
        "--days 2 --practice 99999999",
        "--trials 99999999 --episodes 9 --before 2,3",
    ],
)
def test_more_episodes_than_a_plan_holds(owa, place, monkeypatch, flags):
    monkeypatch.setattr(plan, "MOST", 200)
    said = owa(f"run --out x --suite toolquest --agent noop {flags}")
    assert said.code == 2
    assert "at most 200 episodes" in said.err
    assert not (place / "x").exists()


def test_no_agent(owa):
    said = owa(f"{RUN}")
    assert said.code == 2
    assert "owa-bench list agents" in said.err


@pytest.mark.parametrize(
    ("kind", "name", "flag"),
    [("protocol", "default", "--protocol"), ("price card", "price_card", "--price-card")],
)
@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (b"\nschema = ", b"\nschema = 3 #", "expected `str`, got `int`"),
        (b"\nname = ", b"\nnome = ", "`bad.toml: "),
        (b"\nname = ", b"\nname == ", "must be TOML in UTF-8"),
        (b"\nname = ", b"\nname = '\xff' #", "must be TOML in UTF-8"),
    ],
)
def test_a_bad_file_is_named_with_its_field(owa, place, kind, name, flag, old, new, words):
    good = _read(kind, name)
    assert old in good
    (place / "bad.toml").write_bytes(good.replace(old, new, 1))
    said = owa(f"{RUN} --agent noop {flag} bad.toml")
    assert said.code == 2
    assert words in said.err
    assert "bad.toml" in said.err
    assert not (place / "x").exists()


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('"toolquest"', '"toolqest"', "`bad.toml: suite.0.name` must be one of"),
        ("tiers = [1]", "tiers = [9]", "`bad.toml: suite.0.tiers` must be one of 1, 2"),
        ("tiers", "tires", "`bad.toml: suite.0.tires` is not a field of this file"),
        ("gives_level = false", "", "must draw at least 20 instances"),
        ("episodes = 1", "episodes = 0", "must be at least 1, got 0"),
    ],
)
def test_a_bad_battery(owa, place, old, new, words):
    text = (
        'name = "mine"\ngives_level = false\n[[suite]]\nname = "toolquest"\n'
        "tiers = [1]\ndeltas = [0.0]\nepisodes = 1\n"
    )
    assert old in text
    (place / "bad.toml").write_text(text.replace(old, new))
    said = owa("run --out x --agent noop --battery bad.toml")
    assert said.code == 2
    assert words in said.err


def test_out_that_is_something_else(owa, place):
    (place / "file").write_text("")
    (place / "mine").mkdir()
    (place / "mine" / "note").write_text("")
    for out, words in (
        ("file", "it is a file"),
        ("file/run", "Not a directory"),
        ("mine", "must be empty or a run"),
    ):
        said = owa(f"run --out {out} {SMALL} --agent noop")
        assert said.code == 2
        assert words in said.err
    assert [path.name for path in (place / "mine").iterdir()] == ["note"]


def test_a_data_folder_that_cannot_be_made(owa, place, monkeypatch):
    (place / "file").write_text("")
    monkeypatch.setenv("OWA_BENCH_HOME", str(place / "file"))
    said = owa(f"{RUN} --agent noop")
    assert said.code == 2
    assert "OWA_BENCH_HOME names another" in said.err
    assert not (place / "x").exists()


def test_a_run_that_is_there_is_not_played_over(owa, run):
    said = owa(f"run --out run {SMALL} --agent noop")
    assert said.code == 2
    assert "resume it, or choose another directory" in said.err


def test_resume_of_nothing(owa):
    said = owa("run --out x --resume")
    assert said.code == 2
    assert "x is no run directory" in said.err


@pytest.mark.parametrize("name", ["protocol.toml", "price_card.toml"])
@pytest.mark.parametrize("lost", [True, False])
def test_resume_without_what_the_plan_fixed(owa, place, name, lost):
    assert owa(f"{RUN} --agent noop --plan-only").code == 0
    path = place / "x" / name
    path.unlink() if lost else path.write_bytes(path.read_bytes() + b"#")
    said = owa("run --out x --resume")
    assert said.code == 2
    assert f"x/{name} must be the file that the plan fixed" in said.err
    assert not (place / "x" / "trace").exists()


def test_resume_ignores_no_flag(owa, run):
    said = owa("run --out run --resume --tier 1")
    assert said.code == 2
    assert "--tier shapes a plan" in said.err


def test_resume_under_another_agent_file(owa, agents, place):
    assert owa(f"{RUN} --agent fine.py --steps 2 --plan-only").code == 0
    (place / "fine.py").write_text(AGENTS["fine.py"] + "# changed\n")
    said = owa("run --out x --resume")
    assert said.code == 2
    assert "agent fine.py" in said.err


def test_nothing_is_played_after_the_reveal(owa):
    assert owa(f"{RUN} --agent noop --plan-only").code == 0
    early = owa("escrow reveal x")
    assert early.code == 2
    assert "--unfinished" in early.err
    assert owa("escrow reveal x --unfinished").code == 0
    late = owa("run --out x --resume")
    assert late.code == 2
    assert "its seeds are public" in late.err


def test_a_dry_run_of_a_battery_shows_the_power_of_its_gates(owa, place):
    said = json.loads(owa("run --battery demo --agent noop --out x --dry-run --json").out)
    power = {(row["level"], row["gate"]): row for row in said["gates"]}
    assert power[1, "A"]["planned"] == 12  # 3 families, 2 tiers, 2 instances
    assert power[1, "G"]["planned"] == 3
    assert power[2, "M"]["power"] == power[2, "kappa"]["power"] == 0.0
    levels = {row["level"]: row for row in said["levels"]}
    own = [power[1, gate]["power"] for gate in ("A", "G", "P", "tools")]
    assert levels[1]["power"] == pytest.approx(math.prod(own))
    assert levels[2]["power"] == 0.0
    text = owa("run --battery demo --agent noop --out x --dry-run").out
    assert "power of the gates" in text
    assert f"AAI-1: {levels[1]['power']:.3f} over 4 gates" in text
    assert "AAI-2: 0.000 over 12 gates; not in it: cognitive, assurance" in text
    assert "Below 0.8: AAI-1 A" in " ".join(text.split())


def test_dry_run_plays_nothing(owa, place):
    said = owa(f"{RUN} --agent noop --agent fixed --dry-run")
    assert said.code == 0
    assert ["episodes", "4"] in [line.split() for line in said.out.splitlines()]
    assert "USD at most" in said.out
    assert "MB, with transcripts" in " ".join(said.out.split())
    assert "--budget tokens_in=AMOUNT" in said.out
    found = json.loads(owa(f"{RUN} --agent noop --dry-run --json").out)
    assert found["by_arm"] == {"noop": 2}
    assert not (place / "x").exists()


def test_what_a_run_takes_is_said_before_its_first_episode(owa, place):
    words = "run --suite toolquest --family restock --tier 1 --agent noop --episodes 2"
    estimate = json.loads(owa(f"{words} --out x --dry-run --json").out)
    said = owa(f"{words} --out x").err.splitlines()
    (line,) = [line for line in said if line.startswith("playing ")]
    assert line.startswith(
        f"playing {estimate['episodes']} episodes: {estimate['episodes']} of noop"
    )
    # `--episodes 2` is of a family and tier: it was read as the episodes of the run.
    assert "; 2 tasks of 1 family, 1 tier, 6 drift magnitudes, 2 budgets of help; " in line
    assert estimate["episodes"] == 2 * 6 * 2
    (use,) = estimate["tokens"]
    tokens = use["episodes"] * (use["each"]["input"] + use["each"]["output"])
    assert f"about {tokens / 1e6:,.1f} million tokens" in line
    assert f"{use['cached_usd']:,.2f} USD" in line
    assert "playing" not in owa("run --out x --resume").err


def test_a_dry_run_names_the_packages_of_installed_operators(owa, monkeypatch):
    """They take part in every nested drift of their domain, so worlds differ."""
    slow = discovery.get("operators", "api/pager_swap")
    for key in ("api/slow_lane", "web/slow_lane"):
        entry = PluginEntry(key, slow, "owa-stranger")
        monkeypatch.setitem(discovery.find("operators"), key, entry)
    drifted = f"{RUN.replace('--delta 0', '--delta 1')} --agent noop --dry-run"
    line = "Operators of other packages in nested drift of toolquest: "
    text = " ".join(owa(drifted).out.split())
    assert line + "api/slow_lane (owa-stranger)" in text
    assert "web/slow_lane" not in text
    named = json.loads(owa(f"{drifted} --json").out)["operators"]
    assert named == {"toolquest": {"api/slow_lane": "owa-stranger"}}
    assert "owa-stranger" not in owa(f"{RUN} --agent noop --dry-run").out


def test_a_dry_run_says_what_a_pilot_tells(owa, run, place):
    asked = "run --out x --suite toolquest,recall --tier 1,2 --delta 0,1 --agent fixed --in-process"
    found = json.loads(owa(f"{asked} --dry-run --like run --workers 2 --json").out)["like"]
    toolquest, total = found["rows"]
    assert (toolquest["suite"], total["suite"]) == ("toolquest", "all")
    assert found["unknown"] == ["recall tier 1 (32 episodes)", "recall tier 2 (32 episodes)"]
    said = owa(f"{asked} --dry-run --like run")
    assert said.code == 0
    text = " ".join(said.out.split())
    assert "would take, by run" in text
    assert "in no sum: recall tier 1 (32 episodes), recall tier 2 (32 episodes)." in text
    assert "note: toolquest tier 2: not played by the pilot; reckoned from the other tiers" in text
    assert "note: no range, such as of toolquest, hours: the pilot played one task" in text
    assert "tokens an episode, if the agents were chat models" in text  # for what is not known
    usd = toolquest["amounts"]["USD"]["estimate"]
    assert f"{usd:.2g}" in text
    # A measure a row: as columns they broke numbers over two lines of 80 characters.
    assert re.search(
        rf"^(toolquest +64)? *USD +{usd:.2g} +(\S+ to \S+|no range) *$", said.out, re.M
    ), said.out
    assert not (place / "x").exists()


def test_a_dry_run_like_its_pilot_takes_what_the_pilot_took(owa, run):
    asked = "run --out x --suite toolquest --family restock --tier 1 --delta 0,1 --in-process"
    agents = "--interventions protocol --agent fixed --agent noop --dry-run --json"
    rows = json.loads(owa(f"{asked} {agents} --like run").out)["like"]["rows"]
    verdicts = json.loads(owa("report run --json").out)["verdicts"]
    took = sum(one["cost_usd"]["agent"] for one in verdicts)
    assert took > 0
    assert math.isclose(rows[-1]["amounts"]["USD"]["estimate"], took, rel_tol=1e-9)
    assert "like" not in json.loads(owa(f"{asked} {agents}").out)


@pytest.fixture
def domainless(monkeypatch):
    """ToolQuest under a card whose domain no operator has: `apy` for `api`."""
    suite = copy(discovery.get("suites", "toolquest"))
    monkeypatch.setattr(suite, "card", replace(suite.card, domain="apy"), raising=False)
    entry = PluginEntry("toolquest", suite, "")
    monkeypatch.setitem(discovery.find("suites"), "toolquest", entry)


@pytest.mark.parametrize("delta", ["--delta 0,1", ""])
def test_drift_of_a_domain_without_operators_is_refused(owa, place, domainless, delta):
    said = owa(f"run --suite toolquest {delta} --agent noop --out x --in-process")
    assert said.code == 2
    assert "`--delta` must be 0 alone" in said.err
    assert "no operator is of domain 'apy', as the card of `toolquest`" in said.err
    assert "its `domain` must be one of api, casework, crew" in said.err
    assert "(did you mean `api`?)" in said.err
    assert not (place / "x").exists()


def test_a_suite_without_operators_plays_without_drift(owa, domainless):
    said = owa(f"{RUN} --agent noop")
    assert said.code == 0
    assert "2 of 2 episodes complete in x" in said.out
