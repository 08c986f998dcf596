"""An agent behind an address: `python http_server.py [PORT]` serves http://127.0.0.1:PORT/."""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

FINISH = {"tool": "finish", "arguments": {"answer": "only looked", "p": 0.02}}
looked = set()  # many episodes may be open at once, each under its own name


class Handler(BaseHTTPRequestHandler):
    """One POST is one request of the harness."""

    def do_POST(self):
        """Answer it."""
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        reply, episode = {}, request["episode"]
        if "act" in request:
            reply["action"] = FINISH if episode in looked else {"tool": "vault"}
            looked.add(episode)
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(reply).encode())


if __name__ == "__main__":
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 8765
    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    print(f"http://127.0.0.1:{server.server_port}/", flush=True)
    server.serve_forever()
