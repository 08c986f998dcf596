"""A program that hands back all that it is given, as the texts of declared messages.

Lines of the protocol come back as they were read; around them its arguments, its
environment, its working folder, and what its memory folder holds. With `--keep` it
writes a line into that folder as each episode ends.
"""

import json
import os
import sys
from pathlib import Path


def around(folder):
    """Return what a process can see of itself and of its folder."""
    found = sorted(Path(folder).rglob("*"))
    looks = [(path, path.stat()) for path in found]
    return {
        "argv": sys.argv,
        "environ": dict(os.environ),
        "cwd": os.getcwd(),
        "memory_dir": folder,
        "folder": [
            [str(path.relative_to(folder)), look.st_mode, look.st_size, look.st_mtime]
            for path, look in looks
        ],
    }


def main():
    """Answer requests until standard input ends; pass the turn wherever one can."""
    said, folder, tools = [], "", ()
    for line in sys.stdin:
        request = json.loads(line)
        reply = {}
        if "reset" in request:
            terms = request["reset"]
            folder, tools = terms["memory_dir"], [t["name"] for t in terms["tools"]]
            said = [json.dumps(around(folder), sort_keys=True)]
        said.append(line)
        if "act" in request:
            action = {"tool": "finish", "arguments": {"answer": "", "p": 0.5}}
            if "skip" in tools:
                action = {"tool": "skip", "arguments": {}}
            texts = [{"step": 0, "sender": "spy", "digest": text} for text in said]
            reply, said = {"action": action, "messages": texts}, []
        if "close" in request and "--keep" in sys.argv:
            with Path(folder, "kept").open("a") as file:
                file.write("an episode\n")
        sys.stdout.write(json.dumps(reply) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
