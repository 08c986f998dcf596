import json
import subprocess
import sys
import warnings

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv

from owa_bench.discovery import find, get
from owa_bench.drift.timeline import source
from owa_bench.errors import InstanceError, UsageError
from owa_bench.registration import ENV_IDS, FAST_IDS, register_ids
from owa_bench.runs.assembly import make_env, script, solution
from owa_bench.shells.calls import CallParser, ParsedCall
from owa_bench.shells.episode_events import ListSink
from owa_bench.shells.tool_client import ToolClient
from tests.builders.registered_envs import NEEDS, cards, seated, views

TIERS = (1, 2, 3)
COSTLY_S = 5  # seconds of an episode from which on fewer are played
DIAGONAL = ((1, 0.0), (2, 0.5), (3, 1.0))  # tiers and magnitudes of costly suites


def make(env_id, **options):
    return gymnasium.make(env_id, **(seated(env_id) | options))


def shell(env_id, **options):
    return make(env_id, **options).unwrapped


def costly(env_id):
    return get("suites", ENV_IDS[env_id][1]).card.episode_s >= COSTLY_S


def _numbers():
    """Yield every id of ours with the options of its view of numbers."""
    for env_id, card, marks in cards():
        options = {} if card.native else {"view": "vector"}
        yield pytest.param(env_id, options, marks=marks, id=env_id)


_TOOL_IDS = [
    pytest.param(env_id, marks=marks) for env_id, card, marks in cards() if not card.native
]


@pytest.fixture(params=_TOOL_IDS)
def env_id(request):
    return request.param


def test_registering_twice_changes_nothing(env_id):
    before = gymnasium.spec(env_id)
    register_ids()
    assert gymnasium.spec(env_id) is before


def test_every_suite_of_ours_has_its_id():
    ours = {found.plugin.card.env_id for found in find("suites").values() if not found.package}
    assert ours == set(ENV_IDS)


def test_importing_the_package_imports_no_env():
    code = (
        "import sys, owa_bench;"
        "print([m for m in sys.modules if m.startswith(('owa_bench.', 'starlette'))])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "['owa_bench.registration']"


IMPORTS = ("import owa_bench, gymnasium", "import gymnasium, owa_bench")


@pytest.mark.parametrize("imports", [*IMPORTS, "import owa_bench; from gymnasium import spec"])
def test_ids_are_there_in_either_order_of_imports(imports):
    code = (
        f"{imports}\nimport sys, gymnasium\nfrom gymnasium.envs import registration\n"
        "print([n for n in gymnasium.registry if n.startswith('owa_bench/')])\n"
        "assert 'exec_module' not in vars(registration.__loader__)\n"
        "assert not [f for f in sys.meta_path if type(f).__module__ == 'owa_bench.registration']"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == str([*ENV_IDS, *FAST_IDS])


def test_importing_the_package_imports_no_gymnasium():
    code = "import sys, owa_bench; print('gymnasium' in sys.modules, 'numpy' in sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "False False"


@pytest.mark.parametrize("blocked", ["gymnasium", "gymnasium.envs.registration"])
def test_the_package_imports_where_gymnasium_is_not_installed(blocked):
    code = (
        "import sys\n"
        f"sys.modules[{blocked!r}] = None\n"
        "import owa_bench\n"
        "try:\n    import gymnasium.envs.registration\n"
        "except ImportError as error:\n    print(type(error).__name__)"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "ModuleNotFoundError"


@pytest.mark.part(3)
def test_a_module_prefixed_id_registers_by_itself(env_id):
    made = f"gymnasium.make('owa_bench:{env_id}', **{seated(env_id)})"
    code = f"import gymnasium; print({made}.spec.id)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == env_id


@pytest.mark.part(2)
@pytest.mark.parametrize(("any_id", "view"), [*views()])
def test_gymnasiums_checkers_pass(any_id, view):
    """The checker without flags, render modes too, and the one that watches steps."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(shell(any_id, **view))
        env = make(any_id, **view)
        env.action_space.seed(0)
        env.reset(seed=0)
        for _ in range(10):
            *_, terminated, truncated, _ = env.step(env.action_space.sample())
            if terminated or truncated:
                env.reset()
        env.close()


def test_the_text_that_was_answered_last_is_rendered(env_id):
    env = make(env_id, view="vector", render_mode="ansi")
    env.reset(seed=0)
    opening = env.render()
    env.step(env.unwrapped._view.names.index("finish_0.05"))
    assert opening
    assert env.render() not in ("", opening)
    assert make(env_id).render_mode is None
    env.close()


def test_a_render_mode_that_is_none_is_refused():
    with pytest.raises(UsageError, match="one of rgb_array, ansi, got 'sv"):
        make_env("toolquest", render_mode="svg")


@pytest.mark.part(3)
@pytest.mark.parametrize("tier", TIERS)
def test_samples_of_the_language_space_are_valid_calls(env_id, tier):
    env = make(env_id, tier=tier, step_limit=40)
    env.action_space.seed(tier)
    parser = CallParser(env.unwrapped.tools)
    for seed in range(1 if costly(env_id) else 3):
        observation, _ = env.reset(seed=seed)
        done = False
        while not done:
            action = env.action_space.sample()
            assert action in env.action_space
            assert isinstance(parser.parse(action), ParsedCall)
            observation, _, terminated, truncated, _ = env.step(action)
            assert observation in env.observation_space
            done = terminated or truncated


@pytest.mark.part(3)
@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("delta", [0.0, 0.5, 1.0])
def test_the_oracles_actions_score_one_through_gymnasium(env_id, tier, delta):
    _, suite = ENV_IDS[env_id]
    if costly(env_id) and (tier, delta) not in DIAGONAL:
        pytest.skip("episodes that cost seconds are played on the diagonal")
    env = make(env_id, tier=tier, delta=delta)
    played = 0
    for seed in range(1 if costly(env_id) else 4):
        env.reset(seed=seed)
        timeline = env.unwrapped.timeline
        if getattr(timeline.worlds[0], "honeypot", False):
            continue
        played += 1
        actions = solution(suite, timeline).actions
        rewards = [env.step(action)[1] for action in actions]
        assert env.unwrapped.ending.q_state == 1.0
        assert sum(rewards) == pytest.approx(env.unwrapped.ending.quality)
    assert played


def test_random_macros_end_and_masked_ones_are_not_offered(env_id):
    env = make(env_id, view="vector", interventions=1)
    rng = np.random.default_rng(0)
    for seed in range(5):
        env.reset(seed=seed)
        done = False
        while not done:
            masks = env.unwrapped.action_masks()
            assert masks.any()
            observation, _, terminated, truncated, info = env.step(
                rng.choice(np.flatnonzero(masks))
            )
            assert "error" not in info
            assert observation in env.observation_space
            done = terminated or truncated


def test_macros_alone_can_solve_tier_one(env_id):
    """The first macro offered, again and again, then finish: an upper bound exists."""
    card = get("suites", ENV_IDS[env_id][1]).card
    if card.name in NEEDS:
        pytest.skip("its macros are places on a page, not steps of the task")
    if not card.macros:
        pytest.skip("it has no macros")
    if card.sittings:
        pytest.skip("its macros are options, of which one is right")
    env = make(env_id, view="vector", tier=1)
    names = env.unwrapped._view.names
    last = names.index("finish_0.95")
    worth = []
    for seed in range(10):
        env.reset(seed=seed)
        done = False
        while not done:
            offered = np.flatnonzero(env.unwrapped.action_masks())
            own = [i for i in offered if i < names.index("finish_0.05")]
            *_, terminated, truncated, info = env.step(own[0] if own else last)
            done = terminated or truncated
        worth.append(info["q_state"])
    assert np.mean(worth) > 0.8


def test_equal_seeds_play_equal_episodes(env_id):
    def play():
        env = make(env_id, tier=2, drift_step=3, step_limit=15)
        env.action_space.seed(5)
        seen = [env.reset(seed=9)[0]["text"]]
        for _ in range(10):
            observation, *rest = env.step(env.action_space.sample())
            seen.append((observation["text"], *rest))
            if rest[1] or rest[2]:
                break
        return json.dumps(seen, default=str)

    assert play() == play()


@pytest.mark.part(3)
@pytest.mark.parametrize("drift_step", [0, 4])
def test_the_wire_leaves_the_same_events(env_id, drift_step):
    if costly(env_id) and not drift_step:
        pytest.skip("episodes that cost seconds are played with drift alone")

    def events(*, wire):
        sink = ListSink()
        tier = 1 if costly(env_id) else 2
        env = shell(env_id, tier=tier, drift_step=drift_step, wire=wire, sink=sink)
        env.reset(seed=6)
        _, suite = ENV_IDS[env_id]
        for action in solution(suite, env.timeline).actions:
            env.step(action)
        env.close()
        return sink.events

    assert events(wire=False) == events(wire=True)


def test_the_drift_step_reaches_the_timeline(env_id):
    env = shell(env_id, drift_step=3)
    env.reset(seed=1)
    assert sum(map(len, env.timeline.changes)) == 3
    assert env.timeline.realised > 0


def test_sync_and_async_observations_have_equal_contents(env_id):
    def seen(envs):
        texts = []
        try:
            envs.action_space.seed(2)
            observation, _ = envs.reset(seed=[3, 4])
            for _ in range(6):
                masks = observation["action_mask"].tolist()
                texts.append((tuple(observation["text"]), masks))
                observation, *_ = envs.step(envs.action_space.sample())
        finally:
            envs.close()
        return texts

    makers = [lambda: make(env_id)] * 2
    one = seen(SyncVectorEnv(makers))
    assert one == seen(AsyncVectorEnv(makers, shared_memory=False))
    assert all(text for texts, _ in one for text in texts)


def test_shared_memory_is_refused_with_the_fix(env_id):
    with pytest.raises(UsageError, match="shared_memory=False"):
        AsyncVectorEnv([lambda: make(env_id)])


def test_the_vector_view_is_equal_in_sync_and_async(env_id):
    makers = [lambda: make(env_id, view="vector")] * 2
    sync, parallel = SyncVectorEnv(makers), AsyncVectorEnv(makers)
    try:
        actions = np.array([1, 2])
        for envs in (sync, parallel):
            envs.reset(seed=[1, 2])
        one, other = sync.step(actions), parallel.step(actions)
        assert np.array_equal(one[0], other[0])
        assert one[1].tolist() == other[1].tolist()
    finally:
        sync.close()
        parallel.close()


def test_the_client_drives_the_registered_env(env_id):
    env = make(env_id, view="python")
    client = ToolClient(env)
    assert client.reset(seed=1)
    if "note" in {tool.name for tool in env.unwrapped.offered}:
        assert "noted (1)" in client.note("x").text
    assert client.finish(p=0.0).done


def test_the_script_is_the_drift_free_solution(env_id):
    env = shell(env_id, drift_step=5)
    env.reset(seed=2)
    _, suite = ENV_IDS[env_id]
    still = shell(env_id)
    still.reset(seed=2)
    expected = solution(suite, source(suite)(still.timeline.instance))
    assert script(suite, env.timeline.instance) == expected.actions


def test_a_wrong_tier_is_refused_when_made(env_id):
    with pytest.raises(InstanceError, match=r"`tier` must be one of 1, 2, 3.*, got 9"):
        make(env_id, tier=9)


@pytest.mark.rl
@pytest.mark.parametrize(("any_id", "view"), [*_numbers()])
def test_stable_baselines_checker_passes_on_numbers(any_id, view):
    checker = pytest.importorskip("stable_baselines3.common.env_checker")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        checker.check_env(shell(any_id, **view))


@pytest.mark.rl
def test_maskable_ppo_finds_the_masks(env_id):
    masking = pytest.importorskip("sb3_contrib.common.maskable.utils")
    vec_env = pytest.importorskip("stable_baselines3.common.vec_env")
    envs = vec_env.DummyVecEnv([lambda: make(env_id, view="vector")] * 2)
    envs.reset()
    assert masking.is_masking_supported(envs)
    assert masking.get_action_masks(envs).shape == (2, envs.action_space.n)


def test_no_brief_is_cut(env_id):
    """Briefs of crews were cut at 4,096 characters, before the list of their items ended."""
    card = get("suites", ENV_IDS[env_id][1]).card
    for tier in card.tiers:
        env = shell(env_id, family=card.families[-1], tier=tier)
        shown, _ = env.reset(seed=5)
        env.close()
        assert "[cut: " not in (shown if isinstance(shown, str) else shown["text"])


def test_an_option_of_an_unknown_name_names_the_nearest():
    with pytest.raises(UsageError, match=r"`familly`\. Did you mean `family`\?"):
        make("owa_bench/ToolQuest-v3", familly="reconcile")
