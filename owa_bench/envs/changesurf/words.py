"""Words that every site shares, and how a pool of words becomes a label.

A pool is text: words that any world may use, a double bar, words that practice worlds
never meet. The first word is the one that a world without drift uses most often.
"""

from collections.abc import Mapping

from owa_bench.envs.changesurf.draws import Draws
from owa_bench.worlds.site import Label

Words = Mapping[str, str]

SHARED: Words = {
    "menu:home": "Home|Start|Welcome || Front page|Overview",
    "menu:mail": "Mailbox|Messages|Inbox || Post box|Letters",
    "go:next": "Continue|Next|Go on || Proceed|Onwards",
    "go:confirm": "Confirm|Yes, submit|Looks right || All correct|Approve",
    "go:search": "Search|Find|Look up || Seek|Show matches",
    "field:q": "Search words|Search for|Keywords || Containing|Filter text",
    "go:more": "Load more|Show more|More rows || Extend the list|Reveal more",
    "go:later": "Next page|Following page|Page forward || Later rows|Turn the page",
    "go:earlier": "Previous page|Preceding page|Page back || Earlier rows|Turn back",
    "go:signin": "Sign in|Log in|Log on || Enter|Identify me",
    "go:partner": "Sign in with Passkeeper|Use Passkeeper|Passkeeper sign-in "
    "|| Via Passkeeper|Passkeeper account",
    "field:user": "User name|Account name|Login || Member name|Sign-in name",
    "field:password": "Password|Pass phrase|Secret word || Access phrase|Key phrase",
    "field:code": "Code|Verification code|One-time code || Check digits|Access digits",
    "offer:no": "No thanks|Skip this|Not now || Decline|Leave it",
    "offer:yes": "Yes, add it|Add to mine|I want it || Include it|Take the offer",
    "all": "All|Everything|Any || No limit|Unfiltered",
    "drawer": "Details|More about this|Additional data || Fold out|Further particulars",
    "part:day": "Day|Date of month|DD || Day number|Which day",
    "part:month": "Month|MM|Calendar month || Month name|Which month",
    "part:year": "Year|YYYY|Calendar year || Year number|Which year",
    "menu:answer": "Answer desk|Report a finding|Submit an answer "
    "|| Reply form|Findings form",
    "flow:answer": "Your answer|Your finding|Your reply || What you found|The result",
    "commit:answer": "Send answer|Submit finding|Hand in || File the answer|Deliver",
    "slot:answer": "Answer|Finding|Result || Your figure|What it comes to",
}


def pools(text: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the words of a pool: those of all worlds, and the held-out ones."""
    known, _, held_out = text.partition("||")
    return _split(known), _split(held_out)


def label(draws: Draws, key: str, text: str) -> Label:
    """Return a label: its word in the world without drift, and what it could become."""
    known, held_out = pools(text)
    word = known[0] if draws.coin() else draws.pick(known)
    others = [other for other in known if other != word]
    if not draws.practice:
        others += held_out
    return Label(key=key, text=word, others=tuple(others))


def _split(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split("|") if word.strip())
