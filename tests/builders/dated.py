"""Placements by dates at their smallest: a verifier whose clock stands, and an agent of dates."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
from starlette.testclient import TestClient

from owa_bench.bridges.verifier import Verifier, application
from owa_bench.placement import place
from owa_bench.placement.limits import PlacementLimits
from owa_bench.records.layout import RunLayout
from owa_bench.reports import statement
from owa_bench.runs.plan.dates import VerifierService
from owa_bench.runs.store import keys
from owa_bench.runs.store.challenge_log import log_of
from tests.builders import placements

URL = "http://verifier"
BEGIN = datetime(2026, 11, 27, 9, tzinfo=UTC)


class Client:
    """Sends requests to a service without a socket, which has no timeouts."""

    def __init__(self, app):
        self._client = TestClient(app, base_url=URL)

    def get(self, url, *, timeout):
        return self._client.get(url)

    def post(self, url, *, content, timeout):
        return self._client.post(url, content=content)


class Desk:
    """A verifier with a key, a log and a clock that the test moves."""

    def __init__(self, home):
        self.home, self.time = Path(home), BEGIN
        if "verifier" not in keys.key_names(self.home):
            keys.keygen(self.home, "verifier")
        self.key = keys.load(self.home, "verifier")
        self.log = log_of(self.home, "verifier")
        app = application(Verifier(self.key, self.log, lambda: self.time))
        self.service = VerifierService(URL, Client(app))

    def later(self, hours=24):
        """Move the clock."""
        self.time += timedelta(hours=hours)


class DatedRun:
    """A placement of a program whose plan says that it can be another tomorrow."""

    def __init__(self, folder, desk):
        self.folder, self.desk = Path(folder), desk
        self.layout = RunLayout(self.folder / "run")
        self.options = placements.options(self.folder / "home")
        self.looks = []

    def begin(self, agent="agentic", **limits):
        """Play the first date."""
        request = placements.small_request(self.folder, agent)
        request = msgspec.structs.replace(request, dated=True)
        return place.place(
            request,
            self.layout.root,
            self.options,
            PlacementLimits(**limits),
            self.looks.append,
            verifier=self.desk.service,
        )

    def go_on(self, *, alone=False, **limits):
        """Go on as `owa-bench place --resume` does; `alone`: no verifier is asked."""
        desk = None if alone else self.desk.service
        limits = PlacementLimits(**limits)
        return place.go_on(self.layout.root, self.options, limits, self.looks.append, desk)

    def two_dates(self):
        """Play two dates a day apart; look 1 is closed and opened, look 2 is closed."""
        self.begin()
        self.desk.later()
        self.go_on()

    def named(self):
        """Write the report under a registry that names the verifier, and return its verdict."""
        public = keys.public_hex(self.desk.key)
        text = f'name = "lab"\n\n[[verifier]]\nname = "a lab"\nkey = "{public}"\n'
        path = self.folder / "registry.toml"
        path.write_text(text)
        statement.add_registry(self.layout.root, path)
        return self.again()

    def again(self):
        """Write the report anew, and return its verdict."""
        key = keys.load(self.options.home)
        return statement.write(self.layout.root, key).verdicts[0]
