"""Programs as subjects: played in a sandbox, each attempt afresh, failures at 0."""

import pytest

from owa_bench.envs.selfrev.world import PROGRAM
from owa_bench.errors import UsageError
from owa_bench.interfaces import InnerDraw, Subject, Ticket
from owa_bench.runs.laboratory import programs
from owa_bench.runs.laboratory.laboratory import LocalLaboratory
from tests.builders.sandboxes import needs_sandbox

pytestmark = needs_sandbox
INNER = InnerDraw(suite="recall", version=2, families=("n_back",), tier=1, pool=2)
PLAYER = """\
import re

class Agent:
    def reset(self, brief):
        self.seen = []
        {begun}

    def act(self, text):
        item = re.search(r"(\\d+)-back, (\\d+) of \\d+: (\\w+)", text)
        if item is None:
            return {{"tool": "finish", "arguments": {{"p": 1.0}}}}
        self.seen = [] if item[2] == "1" else self.seen
        n = int(item[1])
        same = len(self.seen) >= n and self.seen[-n] == item[3]
        self.seen.append(item[3])
        values = ["yes" if same else "no"]
        return {{"tool": "answer", "arguments": {{"values": values}}}}
"""


def program(text="", begun="pass"):
    text = text or PLAYER.format(begun=begun)
    return Subject(agent=PROGRAM, options=(("agent.py", text),))


@pytest.fixture(scope="module")
def laboratory():
    with LocalLaboratory(b"key") as made:
        made.begin(INNER)
        yield made


def qualities(laboratory, subject, count=2, draw="confirmation/x"):
    ticket = Ticket(draw=draw, first=0, count=count)
    return [attempt.quality for attempt in laboratory.play(subject, ticket)]


def test_a_program_of_twenty_lines_plays_and_plays_alike_again(laboratory):
    ticket = Ticket(draw="confirmation/x", first=0, count=2)
    played = laboratory.play(program(), ticket)
    assert [attempt.quality for attempt in played] == [1.0, 1.0]
    assert played == laboratory.play(program(), ticket)


@pytest.mark.parametrize(
    "kept",
    [
        "import builtins as at; assert not hasattr(at, 'kept'); at.kept = 1",
        "import os; assert not os.listdir('/tmp'); open('/tmp/kept', 'w')",
        "import os; assert not os.listdir('/work'); os.mkdir('/work/kept')",
        "import os; os.listdir('/tmp'); os.chmod('/tmp', 0)",
        "import os; assert len([n for n in os.listdir('/proc') if n.isdigit()]) < 5; "
        "os.fork() or __import__('time').sleep(60)",
    ],
    ids=["module", "tmp", "work", "closed", "process"],
)
def test_nothing_that_a_program_keeps_outlives_its_attempt(laboratory, kept):
    """The attack: remember an instance that comes again."""
    assert qualities(laboratory, program(begun=kept), count=3) == [1.0, 1.0, 1.0]


@pytest.mark.parametrize("place", ["/tmp", "/work"])
def test_folders_too_deep_to_be_removed_are_no_memory(laboratory, place):
    deep = "[(os.mkdir('d'), os.chdir('d')) for _ in range(1500)]"
    begun = f"import os; os.chdir({place!r}); kept = os.listdir('.'); {deep}; assert kept"
    # It plays on where it finds what it left; the watch over the disk may end it first.
    assert qualities(laboratory, program(begun=begun), count=3) == [0.0, 0.0, 0.0]
    assert qualities(laboratory, program(), count=1) == [1.0]


@pytest.mark.parametrize(
    "text",
    [
        "x = 1",
        "this is no Python",
        "class Agent:\n    def reset(self, brief): raise ValueError('no')",
        "import os\nclass Agent:\n    def reset(self, brief): os._exit(0)",
        "class Agent:\n    def reset(self, brief): print('{}')\n    act = None",
        "import os\nclass Agent:\n    def reset(self, brief): os.kill(os.getppid(), 9)",
    ],
)
def test_a_program_that_fails_ends_its_attempt_without_score(laboratory, text):
    assert qualities(laboratory, program(text), count=1) == [0.0]
    assert qualities(laboratory, program(), count=1) == [1.0]


@pytest.mark.parametrize(
    "reached",
    [
        "open('/etc/passwd')",
        "open('/subject/agent.py', 'a')",
        "open('/memory/own_log.json', 'w')",
        "__import__('socket').create_connection(('127.0.0.1', 1), 1)",
        "import owa_bench",
    ],
)
def test_a_program_reaches_nothing_but_its_files(laboratory, reached):
    found = (
        f"try:\n            {reached}\n"
        "        except Exception: pass\n        else: raise SystemExit"
    )
    assert qualities(laboratory, program(begun=found), count=1) == [1.0]


def test_a_file_outside_its_folder_is_refused(tmp_path):
    with pytest.raises(UsageError, match="must lie in its folder"):
        programs.write_files(tmp_path / "subject", {"../agent.py": ""})
