"""An agent in another language, so to speak: JSON lines on stdin and stdout."""

import json
import sys


def say(line):
    """Write one reply; a pipe is not flushed by itself."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main():
    """Answer requests until standard input ends."""
    sys.stderr.write("a word on stderr\n")
    mode = sys.argv[1] if len(sys.argv) > 1 else ""
    for line in sys.stdin:
        request = json.loads(line)
        if "act" in request and mode == "--nonsense":
            say("hello")
        elif "act" in request and mode == "--die":
            sys.exit("out of ideas")
        elif "act" in request:
            call = {"tool": "finish", "arguments": {"answer": "", "p": 0.25}}
            say(json.dumps({"action": call, "usage": [["tokens_in", 12]]}))
        else:
            say("{}")


if __name__ == "__main__":
    main()
