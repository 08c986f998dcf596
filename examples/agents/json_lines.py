"""An agent in Python: reads one document of each API, then says what it believes."""

import json
import sys

for line in sys.stdin:
    request = json.loads(line)
    reply = {}
    if reset := request.get("reset"):
        brief = reset["brief"]
        entries = sorted({source["entry"] for source in brief["goal"]["sources"]})
    elif "act" in request and entries:
        get = {"method": "GET", "url": entries.pop()}
        reply = {"action": {"tool": "http", "arguments": get}}
    elif "act" in request:
        beliefs = dict.fromkeys(brief["propositions"], 0.5)
        end = {"answer": "only read", "p": 0.02, "beliefs": beliefs}
        reply = {"action": {"tool": "finish", "arguments": end}}
    print(json.dumps(reply), flush=True)
