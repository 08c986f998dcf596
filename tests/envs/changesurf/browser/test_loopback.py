"""A site in a person's browser, and the transport over a socket."""

import asyncio
import http.client
import re
from urllib.parse import urljoin

from owa_bench.drift import timeline as timelines
from owa_bench.envs.changesurf.browser.driver import BrowserTarget, call_app
from owa_bench.envs.changesurf.browser.loopback import ForwardingApp, host_site
from owa_bench.shells.loopback import LoopbackServer
from tests.builders.changesurf_episodes import instance_of


def get(served, url):
    host, _, path = url.removeprefix("http://").partition("/")
    connection = http.client.HTTPConnection("127.0.0.1", served.server.port, timeout=60)
    connection.request("GET", "/" + path, headers={"host": host})
    reply = connection.getresponse()
    body = reply.read().decode()
    connection.close()
    return reply.status, body


def test_on_the_wire_the_browser_alone_is_served():
    asked = []

    async def app(scope, receive, send):
        asked.append(dict(scope["headers"]))
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"served"})

    server = LoopbackServer(app, guarded=True)
    place = BrowserTarget(ForwardingApp(server), frozenset({"a.test"}), "https://a.test/")
    try:
        for key in ({}, {"x-owa-key": "a guess"}):
            connection = http.client.HTTPConnection("127.0.0.1", server.port)
            connection.request("POST", "/", headers=key)
            assert connection.getresponse().status == 403
            connection.close()
        assert asked == []
        request = {"url": place.start, "method": "GET", "headers": {"a": "b"}}
        reply = asyncio.run(call_app(place.app, request, b""))
        assert (reply.status, reply.body) == (200, b"served")
        assert not any(b"key" in name for name in asked[0])
    finally:
        server.close()


def test_a_person_finds_every_host_under_localhost():
    instance = instance_of("stay/book", 3)
    served = host_site(timelines.source("changesurf")(instance))
    try:
        assert f".localhost:{served.server.port}/" in served.address
        status, page = get(served, served.address)
        assert status == 200
        assert "https://" not in page
        links = re.findall(r'(?:href|action)="([^"]*)"', page)
        links = [urljoin(served.address, link) for link in links if link[:5] != "data:"]
        assert links, page
        assert {get(served, link)[0] for link in links} <= {200, 303}
    finally:
        served.close()
