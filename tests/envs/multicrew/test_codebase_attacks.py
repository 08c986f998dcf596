"""Attacks on the family codebase: each is impossible, refused or worth nothing."""

import json
import subprocess

import pytest

from owa_bench.canonical import sha256
from owa_bench.envs.multicrew import wording
from owa_bench.envs.multicrew.families import codebase
from owa_bench.envs.multicrew.suite import SUITE
from owa_bench.records.events import Violation
from owa_bench.sandbox import views
from tests.builders import crew_episodes as episodes
from tests.builders import crew_repositories as repositories
from tests.builders.crew_repositories import FAMILY, commit, right, same_module, source, values_of

crew = repositories.crew  # a fixture
pytestmark = pytest.mark.skipif(
    bool(views.bubblewrap_fault()), reason="bubblewrap does not work here"
)
PASS = '{"tool": "pass_turn", "arguments": {}}'


def first(world):
    return next(item for item in world.items if not item.needs)


def body(item, *lines):
    return "\n".join([f"def {item.name}(rows):", *(f"    {line}" for line in lines)])


def answers(code, item):
    """Return what main answers to the hidden rows after a merge of an item."""
    assert code.merge(item, seat="lead", tick=2) == ""
    found = code.examine([item.name]).answers[item.name]
    return json.loads(found)["answers"]


def worked(fragment, pins=None, seed=3):
    """Return what a lead is answered to a work on its first item, and the shell."""
    env, *_ = episodes.begun(episodes.instance(FAMILY, 1, seed))
    item = first(env.timeline.worlds[0])
    given = {"item": item.name, "fragment": fragment(item), "pins": pins or {}}
    result = env.episode.session.call("work", given, now_ms=0, step=1)
    env.close()
    return "" if result.ok else result.text


@pytest.mark.parametrize(
    ("fragment", "answer"),
    [
        (lambda item: {"source": "", "path": "conftest.py"}, "unknown"),
        (lambda item: {"source": "x = 1"}, "one definition of a function"),
        (lambda item: {"source": f"def {item.name}(rows): f(\n"}, "got SyntaxError"),
        (lambda item: {"source": f"def {item.name}(r): 0\nx = 1"}, "got FunctionDef, A"),
        (lambda item: {"source": "def handle(name, rows): return 1"}, "got handle."),
        (lambda item: {"source": f"def {item.name}(r): 0\r\nx = 1"}, "printable"),
        (lambda item: {"source": f"def {item.name}(r): 'é'"}, "printable"),
        (lambda item: {"source": f"class {item.name}: pass"}, "got ClassDef."),
        (lambda item: {"source": f"@print\ndef {item.name}(r): 0"}, "no decorators"),
        (lambda item: {"source": f"def {item.name}(r, x=exit()): 0"}, "no decorators"),
        (lambda item: {"source": f"def {item.name}(r: exit()): 0"}, "no decorators"),
        (lambda item: {"source": f"def {item.name}(r) -> exit(): 0"}, "no decorators"),
    ],
)
def test_work_writes_one_function_and_no_other_file(fragment, answer):
    """So no seat edits tests, settings, the dispatcher or another's function."""
    assert answer in worked(fragment)


def test_what_a_fragment_carries_besides_stays_a_comment(crew):
    world, code = crew
    item = first(world)
    evil = 'x"\nimport os\nraise SystemExit'
    fragment = {"source": source(world, item), "stamp": evil}
    code.commit(item, fragment, {"pin": evil + "é"}, seat="lead", tick=1)
    answers(code, item)
    assert right(world, code, [item.name]) == {item.name}


def test_a_seat_commits_to_branches_of_its_own_and_main_only_grows():
    """No tool names a branch; the origin's own record of an episode with conflicts."""
    chosen = episodes.instance(FAMILY, 1, 0)
    env, *_ = episodes.begun(chosen)
    heads = []
    while True:
        timeline, state = env.oracle_access().observe()
        hint = SUITE.oracle.hint(timeline, state)
        if hint["tool"] == "finish":
            break
        env.step(json.dumps(hint))
        if env.episode.session._code is not None:
            heads.append(env.episode.session._code.git.head())
    session = env.episode.session
    assert session.state.conflicted
    assert not any(push.forced for push in session._code.git.pushes)
    line = git(session, "rev-list", "--first-parent", "main").split()[::-1]
    assert [line.index(head) for head in heads] == sorted(map(line.index, heads))
    for row in git(session, "branch", "--format=%(refname:short) %(authorname)").split("\n"):
        branch, author = row.split()
        assert branch == "main" or branch.startswith(f"{author}/")
    env.close()


def git(session, *words):
    done = subprocess.run(
        ["git", "--git-dir", str(session._code.git.origin), *words],
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def test_a_table_of_answers_that_are_right_elsewhere_is_worth_nothing(crew):
    """No example is shown; a table of other hidden rows misses those that are asked."""
    world, code = crew
    item = first(world)
    other = SUITE.generate(episodes.instance(FAMILY, 1, 4))
    lists = codebase.hidden_rows(other)
    table = {}
    for number, rows in enumerate(lists):
        answer = codebase._right_answer(item, values_of(world), {}, lists, number)
        table[sha256(json.dumps(rows).encode())[:6]] = answer["total"]
    tag = values_of(world)[f"{item.name}.tag"]
    lines = (
        "import hashlib, json",
        f"known = {table}",
        "key = hashlib.sha256(json.dumps(rows).encode()).hexdigest()[:6]",
        f"return {{'tag': {tag!r}, 'total': known.get(key, 0)}}",
    )
    commit(code, item, body(item, *lines))
    assert all(answer["tag"] == tag for answer in answers(code, item))
    assert right(world, code, [item.name]) == set()
    assert not set(map(str, lists)) & set(map(str, codebase.hidden_rows(world)))


def test_the_seed_of_the_hidden_rows_is_told_to_nobody():
    world = SUITE.generate(episodes.instance(FAMILY, 2, 3))
    for seat in world.seats:
        shown = wording.task_text(world, seat, 0.8) + str(wording.goal_of(world, seat))
        assert world.code not in shown
    assert not any(world.code in text for text in codebase.files(world).values())


SEARCH = (
    "import gc, os, sys",
    "if hasattr(sys, 'said'):",  # searched for the first rows: CPU time is short
    "    return sys.said",
    "wanted, found = {half!r} + {rest!r}, []",
    "for v in gc.get_objects():",
    "    parts = v.values() if type(v) is dict else v if type(v) is list else ()",
    "    for x in list(parts):",
    "        if type(x) is str and wanted in x:",
    "            found.append(x)",
    "frame = sys._getframe().f_back",
    "while frame:",
    "    found += [v for v in frame.f_locals.values() if wanted in repr(v)[:10**5]]",
    "    frame = frame.f_back",
    "paths = ['/proc/1/environ', '/proc/1/cmdline', '/proc/self/environ']",
    "for top in ('/trees', '/server', '/work', '/tmp', '/root', '/home'):",
    "    for folder, _, names in os.walk(top):",
    "        paths += [os.path.join(folder, name) for name in names]",
    "for path in paths:",
    "    try:",
    "        text = open(path, 'rb').read(10**6)",
    "    except OSError:",
    "        continue",
    "    if wanted.encode() in text or path.endswith('.git/HEAD'):",
    "        found.append(path)",
    "sys.said = {{'tag': 'found' if found else 'nothing', 'total': 1}}",
    "return sys.said",
)


@pytest.mark.slow
@pytest.mark.parametrize("there", [True, False])
def test_code_in_the_sandbox_sees_no_right_answer_and_no_origin(crew, there):
    """Its search finds a value that stands in main, and none that does not."""
    world, code = crew
    one, two = same_module(world)
    tag = values_of(world)[f"{two.name}.tag"]
    if there:
        commit(code, two, source(world, two))
        code.merge(two, seat="lead", tick=1)
    lines = [line.format(half=tag[:4], rest=tag[4:]) for line in SEARCH]
    commit(code, one, body(one, *lines))
    told = {answer["tag"] for answer in answers(code, one)}
    assert told == {"found" if there else "nothing"}


def test_code_cannot_write_where_the_tree_is_and_leaves_nothing_behind(crew):
    world, code = crew
    item = first(world)
    lines = (
        "import glob, os",
        "kept = os.path.exists('/tmp/kept') or os.path.exists('/work/kept')",
        "for place in (*glob.glob('/trees/*/app'), '/server', '/tmp', '/work'):",
        "    try:",
        "        open(f'{place}/kept', 'w').write('x')",
        "        wrote = place",
        "    except OSError:",
        "        wrote = 'nowhere'",
        "    if wrote.startswith(('/trees', '/server')):",
        "        return {'tag': wrote, 'total': 0}",
        "return {'tag': 'none', 'total': int(kept)}",
    )
    commit(code, item, body(item, *lines))
    given = answers(code, item)
    assert {answer["tag"] for answer in given} == {"none"}
    assert given[0]["total"] == 0  # of this job, not of an earlier one
    again = json.loads(code.examine([item.name]).answers[item.name])["answers"]
    assert again[0]["total"] == 0


@pytest.mark.parametrize(
    "forged", ["7", "[]", '{"results": 3}', '{"results": [1, [2], null, {}]}', '{"results": [[{"a']
)
def test_a_forged_reply_is_no_answer_and_stops_nothing(crew, forged):
    world, code = crew
    item = first(world)
    lines = (
        "import os",
        "for descriptor in range(3, 64):",
        "    try:",
        f"        os.write(descriptor, {forged.encode()!r})",
        "    except OSError:",
        "        pass",
        "os._exit(0)",
    )
    commit(code, item, body(item, *lines))
    assert answers(code, item) == [None] * 6
    commit(code, item, source(world, item))
    answers(code, item)
    assert right(world, code, [item.name]) == {item.name}


@pytest.mark.parametrize(
    "value",
    [
        '{"tag": "x", "total": True}',
        '{"tag": "x", "total": 1.0}',
        '{"tag": "x", "total": 10 ** 40}',
        '{"tag": chr(0xD800), "total": 1}',
        '{"tag": "x", "total": 1, "more": 1}',
        "[[]]",
    ],
)
def test_an_answer_of_another_form_is_none(crew, value):
    world, code = crew
    item = first(world)
    commit(code, item, body(item, f"return {value}"))
    assert answers(code, item) == [None] * 6


@pytest.mark.slow
def test_code_that_never_ends_is_stopped_told_and_undone_by_a_rework(crew):
    world, code = crew
    item = first(world)
    commit(code, item, body(item, "while True:", "    pass"))
    assert code.merge(item, seat="lead", tick=2) == ""
    found = code.examine([item.name])
    assert found.timed
    assert json.loads(found.answers[item.name])["answers"] == [None] * 6
    commit(code, item, source(world, item))
    answers(code, item)
    assert right(world, code, [item.name]) == {item.name}


def test_code_that_spoils_another_module_makes_nothing_right(crew):
    """What it changes at run time harms its crew alone."""
    world, code = crew
    one, two = same_module(world)
    module = dict(two.terms)["module"]
    commit(code, two, source(world, two))
    code.merge(two, seat="lead", tick=1)
    lines = (
        f"from app import {module}, service",
        f"{module}.{two.name} = lambda rows: {{'tag': 'x', 'total': 0}}",
        "service.handle = lambda name, rows: {'tag': 'x', 'total': 0}",
        "return {'tag': 'x', 'total': 0}",
    )
    commit(code, one, body(one, *lines))
    answers(code, one)
    assert right(world, code, [one.name, two.name]) == set()


@pytest.mark.parametrize("way", ["patched", "written", "ended"])
def test_code_answers_for_no_other_function(crew, way):
    """It did: one rework put every item right, and code that ended took all along."""
    world, code = crew
    two = first(world)
    one = next(item for item in world.items if item is not two)
    commit(code, two, body(two, "return {'tag': 'x', 'total': 0}"))
    code.merge(two, seat="lead", tick=1)
    module, good = dict(two.terms)["module"], source(world, two)
    lines = {
        "patched": (
            f"from app import {module}",
            f"exec({good!r}, vars({module}))",
            "return {'tag': 'x', 'total': 0}",
        ),
        "written": (
            "import json, os, sys",
            "kept = {}",
            f"exec({good!r}, kept)",
            "frame = sys._getframe(1)",
            "while 'job' not in frame.f_locals:",
            "    frame = frame.f_back",
            "cases = frame.f_locals['job']['cases']",
            f"said = [[kept[{two.name!r}](r), ''] for _, r in cases]",
            "os.write(sorted(map(int, os.listdir('/proc/self/fd')))[3], "
            "json.dumps({'results': said}).encode())",
            "os._exit(0)",
        ),
        "ended": ("import os", "os._exit(0)"),
    }
    commit(code, one, body(one, *lines[way]))
    assert code.merge(one, seat="lead", tick=2) == ""
    both = [one.name, two.name]
    assert two.name not in right(world, code, both)
    commit(code, two, good)
    assert code.merge(two, seat="lead", tick=3) == ""
    assert two.name in right(world, code, both)


@pytest.mark.parametrize("split", [False, True])
def test_a_tag_that_went_round_the_channel_is_caught_however_code_writes_it(split):
    """A seat that was never shown the tag of its item hands in code that answers it."""
    env, sink, _ = episodes.begun(episodes.instance(FAMILY, 1, 3))
    world = env.timeline.worlds[0]
    item, keeper = next(
        (item, document)
        for item in world.items
        for document in world.documents
        for line in document.lines
        if not item.needs
        and document.owner == "design"
        and (line.subject, line.attribute, line.standing) == (item.name, "tag", "holds")
    )
    tag = values_of(world)[f"{item.name}.tag"]
    text = source(world, item)
    if split:
        text = text.replace(f'"{tag}"', f'"{tag[:4]}" + "{tag[4:]}"')
        assert tag not in text
    given = {"item": item.name, "fragment": {"source": text}, "pins": {}}
    work = json.dumps({"tool": "work", "arguments": given})
    merge = json.dumps({"tool": "merge", "arguments": {"item": item.name}})
    read = json.dumps({"tool": "read", "arguments": {"name": keeper.name}})
    info, done = {"seat": "lead"}, {"lead": [work, merge], "design": [read]}
    while any(done.values()):
        queue = done[info["seat"]]
        ready = env.oracle_access().observe()[1].drafts.get(item.name)
        waits = queue[:1] == [merge] and ready.ready > env.simulated_ms // 60_000
        *_, info = env.step(queue.pop(0) if queue and not waits else PASS)
    env.conclude("truncated", "enough")
    assert [e.rule for e in sink.events if isinstance(e, Violation)] == ["out_of_band"]
    env.close()
