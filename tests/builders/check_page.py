"""The check page of the package in a browser, and what it says of files."""

from importlib.resources import files

CHECK = files("owa_bench.reports.page") / "check.html"
VALID = "Valid: signed by the key that you gave, and the page is the one that was signed."


class CheckPage:
    """The check page, opened from the disk; `requests` are the addresses that it asked for."""

    def __init__(self, browser, script=""):
        self.window = browser.new_page()
        if script:
            self.window.add_init_script(script)
        self.requests = []
        self.window.on("request", lambda request: self.requests.append(request.url))
        self.open()

    def open(self):
        """Open the page anew: nothing given."""
        self.requests.clear()
        self.window.goto(f"file://{CHECK}")

    def give(self, given):
        """Give files by name."""
        chosen = [
            {"name": name, "mimeType": "application/octet-stream", "buffer": data}
            for name, data in given.items()
        ]
        self.window.set_input_files("#files", chosen)

    def say(self, given, key):
        """Return what the page says of files by name, given the reader's key."""
        self.window.fill("#key", key)
        self.give(given)
        return self.result()

    def result(self):
        """Return what the page says in the end."""
        self.window.locator("#result[aria-busy=false]").wait_for()
        return self.window.inner_text("#result")

    def lines(self):
        """Return the words of each line by outcome."""
        whole = "[...document.querySelectorAll('dt')].map(d => [d.className, d.innerText, "
        found = self.window.evaluate(whole + "d.nextElementSibling.innerText])")
        return [(outcome, f"{name.split(maxsplit=1)[1]}: {said}") for outcome, name, said in found]
