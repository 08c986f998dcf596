"""Pages give their links, and none that a reader would not see."""

from owa_bench.agents.solvers import documents

HTML = """<html><head><title>Halden Ledger</title><style>a {}</style></head><body>
<h1>Halden</h1><p>We keep <b>books</b>.</p>
<a href="/about">About us</a> <a href="spec.json">API description (OpenAPI)</a>
<a href="/secret" style="display: none">key</a><a hidden href="/other">x</a>
<a aria-hidden="true" href="/third">y</a></body></html>"""


def test_reads_title_text_and_visible_links() -> None:
    page = documents.parse(HTML, "https://halden.example/home/")
    assert page.title == "Halden Ledger"
    assert "We keep books" in page.text
    assert [(link.address, link.text) for link in page.links] == [
        ("https://halden.example/about", "About us"),
        ("https://halden.example/home/spec.json", "API description (OpenAPI)"),
    ]


def test_the_nearest_link_comes_first() -> None:
    page = documents.parse(HTML, "https://halden.example/")
    assert documents.nearest(page, "OpenAPI description")[0].endswith("spec.json")
