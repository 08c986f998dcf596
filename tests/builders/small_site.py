"""A tiny hand-made site that has what a driver can stumble over."""

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from owa_bench.envs.changesurf.browser.driver import BrowserTarget

HOST = "small-site.test"

HOME = """<!doctype html><html><head><title>Home</title></head><body>
<h1>Counter</h1><p>The count is {count}. Cookie: {cookie}.</p>
<form method="post" action="/add"><button id="b{count}">Add one</button></form>
<form method="post" action="/name">
<label>Your name <input name="who" required value="old"></label>
<label for="c">Colour</label><select id="c" name="colour">
<option value="r">Red<option value="g">Green<option value="b" disabled>Blue</select>
<label><input type="checkbox" name="ok"> I agree</label>
<button>Save</button></form>
<button id="off" disabled>Off</button>
<div style="position:relative"><button id="under">Under</button>
<div aria-label="Curtain" style="position:absolute;inset:0;background:#ccc"></div></div>
<button id="swap" onclick="document.documentElement.setAttribute('aria-busy','true');
 fetch('/part').then(r=>r.text()).then(t=>{{document.getElementById('part').innerHTML=t;
 document.documentElement.removeAttribute('aria-busy')}})">Swap</button>
<div id="part"></div>
<button id="drop" onclick="this.remove()">Drop me</button>
<a href="/slow">Next page</a> <a href="https://foreign.example/x">Away</a>
<a href="/file">Export</a> <a href="/late">Late</a>
<form method="post" action="/keep"><button name="kept" value="1">Keep</button></form>
<table><tr><th>Room</th><th>Price</th></tr><tr><td>Blue</td><td>80</td>
<td><button>Book</button></td></tr></table>
<div id="host"><template shadowrootmode="open">
<button>In the shadow</button></template></div>
<iframe src="/inner" title="Inner" width="300" height="80"></iframe>
<div style="height:3000px"></div><button id="deep">Far below</button>
<img src="https://foreign.example/pixel.png" alt="">
</body></html>"""


class SmallSite:
    """Counts, and remembers what it was told."""

    def __init__(self) -> None:
        self.count = 0
        self.kept = 0
        self.saved: dict[str, str] = {}
        self.app = Starlette(
            routes=[
                Route("/", self._home),
                Route("/add", self._add, methods=["POST"]),
                Route("/name", self._name, methods=["POST"]),
                Route("/part", self._part),
                Route("/keep", self._keep, methods=["GET", "POST"]),
                Route("/slow", self._slow),
                Route("/inner", self._inner, methods=["GET", "POST"]),
                Route("/file", self._file),
                Route("/empty", self._empty),
                Route("/late", self._late),
                Route("/fault", self._fault),
            ]
        )
        self.place = BrowserTarget(self.app, frozenset({HOST}), f"https://{HOST}/")

    async def _home(self, request: Request) -> Response:
        cookie = request.cookies.get("seen", "none")
        page = HTMLResponse(HOME.format(count=self.count, cookie=cookie))
        page.set_cookie("seen", "yes", httponly=True)
        return page

    async def _add(self, request: Request) -> Response:
        self.count += 1
        return RedirectResponse("/", 303)

    async def _name(self, request: Request) -> Response:
        form = await request.form()
        self.saved = {name: str(value) for name, value in form.items()}
        return RedirectResponse("/slow", 303)

    async def _keep(self, request: Request) -> Response:
        # Answers a form itself, as a form that is refused does.
        self.kept += request.method == "POST"
        form = "<form method=post><button>Keep again</button></form>"
        return HTMLResponse(f"<title>Kept</title><a href='/'>Home</a>{form}")

    async def _part(self, request: Request) -> Response:
        return HTMLResponse("<p>Swapped in</p><button>New control</button>")

    async def _slow(self, request: Request) -> Response:
        return HTMLResponse("<title>Next</title><h1>Next page</h1><a href='/'>Home</a>")

    async def _inner(self, request: Request) -> Response:
        self.count += 10 * (request.method == "POST")
        return HTMLResponse(
            f"<p>Inner {self.count}</p><form method=post><button>Inside</button></form>"
        )

    async def _file(self, request: Request) -> Response:
        headers = {"content-disposition": "attachment; filename=rows.csv"}
        return Response("a,b\n1,2\n", media_type="text/csv", headers=headers)

    async def _empty(self, request: Request) -> Response:
        return Response(status_code=204)

    async def _late(self, request: Request) -> Response:
        # A page whose own script leaves it at once.
        return HTMLResponse("<title>L</title><script>location.replace('/slow')</script>")

    async def _fault(self, request: Request) -> Response:
        raise ValueError("broken")
