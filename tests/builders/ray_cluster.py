"""A Ray cluster of this machine: a head without processors and nodes of their own.

Run as a script with one folder a node: each node has its folder as working directory
and data folder. Prints the address; then `kill N` on its input kills the raylet of node
N, and the end of its input ends the cluster.
"""

import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path


def environment(folder, base=None):
    """Return an environment in which Ray writes nothing outside `folder`."""
    given = os.environ if base is None else base
    return {
        **{k: v for k, v in given.items() if not k.startswith("RAY_")},
        "HOME": str(folder),
        "RAY_AUTH_MODE": "disabled",
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_TMPDIR": str(folder / "r"),
    }


@contextmanager
def running(folder, nodes, base=None):
    """Yield (address, kill): a cluster with a node in each of the folders."""
    folder.mkdir(parents=True, exist_ok=True)
    for node in nodes:
        node.mkdir(parents=True, exist_ok=True)
    with subprocess.Popen(
        [sys.executable, __file__, *map(str, nodes)],
        env=environment(folder, base),
        cwd=folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        address = process.stdout.readline().strip()
        assert address, "the cluster did not start"

        def kill(number):
            process.stdin.write(f"{number}\n")
            process.stdin.flush()
            assert process.stdout.readline().strip() == "killed"

        try:
            yield address, kill
        finally:
            process.stdin.close()
            process.wait(timeout=60)


def main(folders):
    from ray.cluster_utils import Cluster

    cluster = Cluster(
        initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False}
    )
    nodes = []
    for folder in folders:
        os.chdir(folder)
        os.environ["OWA_BENCH_HOME"] = str(Path(folder) / "data")
        nodes.append(cluster.add_node(num_cpus=1))
    sys.stdout.write(f"{cluster.address}\n")
    sys.stdout.flush()
    for line in sys.stdin:
        (raylet,) = nodes[int(line)].all_processes["raylet"]
        raylet.process.send_signal(signal.SIGKILL)
        sys.stdout.write("killed\n")
        sys.stdout.flush()
    cluster.shutdown()


if __name__ == "__main__":
    main(sys.argv[1:])
