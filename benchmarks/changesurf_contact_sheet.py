"""Pages of every site at magnitude 0 and 1, one picture: docs/pictures/changesurf.jpg.

Each row is a site, undrifted on the left and fully drifted on the right, twice: where
the visit begins, and the page on which the oracle hands in its work.
Run: python benchmarks/changesurf_contact_sheet.py [--seed N]
"""

import argparse
import io
import json
import sys
from pathlib import Path
from typing import Any

import msgspec
from PIL import Image, ImageDraw

from owa_bench.drift import timeline as timelines
from owa_bench.envs.changesurf.generate import FAMILIES, HELD_OUT_FAMILIES
from owa_bench.envs.changesurf.server.state import commits
from owa_bench.envs.changesurf.suite import SUITE
from owa_bench.records.instance import Instance

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "docs" / "pictures" / "changesurf.jpg"
WIDTH, HEIGHT, STRIPE = 440, 246, 16


def pictures(env: Any, family: str, seed: int, delta: float) -> list[bytes]:
    """Return the first page and the last one before the commit."""
    plain = Instance(suite="changesurf", version=3, family=family, tier=2, seed=seed)
    step = timelines.drift_step("changesurf", plain, delta)
    instance = msgspec.structs.replace(plain, drift_step=step)
    env.reset(options={"instance": instance})
    session = env.unwrapped.session
    privilege = env.unwrapped.oracle_access()
    shots = [session.picture()]
    before = shots[0]
    over = False
    while not over and not commits(session.state.site):
        before = session.picture()
        hint = privilege.oracle.hint(*privilege.observe())
        *_, ended, cut, _ = env.step(json.dumps(hint))
        over = ended or cut
    return [*shots, before]


def sheet(rows: list[tuple[str, list[bytes]]]) -> Image.Image:
    """Return all pictures on one sheet, a row per site."""
    whole = Image.new("RGB", (4 * WIDTH, len(rows) * (HEIGHT + STRIPE)), "white")
    pen = ImageDraw.Draw(whole)
    for line, (title, shots) in enumerate(rows):
        top = line * (HEIGHT + STRIPE)
        pen.text((4, top + 2), title, fill="black")
        for column, shot in enumerate(shots):
            picture = Image.open(io.BytesIO(shot))
            scale = WIDTH / picture.width
            size = (WIDTH, int(picture.height * scale))
            small = picture.resize(size).crop((0, 0, WIDTH - 4, HEIGHT))
            whole.paste(small, (column * WIDTH, top + STRIPE))
    return whole


def main() -> int:
    """Draw the sheet."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=5)
    seed = parser.parse_args().seed
    env = SUITE.env(timelines.source("changesurf"))
    rows = []
    sites: dict[str, str] = {}
    for family in (*FAMILIES, *HELD_OUT_FAMILIES):
        site, _, goal = family.partition("/")
        if site not in sites or goal in ("book", "apply", "buy", "transfer"):
            sites[site] = family
    for family in sites.values():
        shots = [s for d in (0.0, 1.0) for s in pictures(env, family, seed, d)]
        rows.append((f"{family}: magnitude 0, 0, 1, 1", shots))
    env.close()
    TARGET.parent.mkdir(parents=True, exist_ok=True)
    sheet(rows).save(TARGET, quality=70)
    print(f"{TARGET.relative_to(ROOT)}: {len(rows)} sites")
    return 0


if __name__ == "__main__":
    sys.exit(main())
