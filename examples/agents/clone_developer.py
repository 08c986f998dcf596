"""A developer in a git clone: writes features as files, by plain git and `owa-tool`.

Played once a day, from the folder of this file:

    owa-bench run --suite projforge --tier 1 --agent 'clone:python3 clone_developer.py'

It knows how issues are worded (`owa_bench.agents.solvers.project`) and follows changelogs.
"""

import json
import os
import re
import subprocess
from pathlib import Path

from owa_bench.agents.solvers.project import feature_code, library_contract

MEMORY = Path(os.environ["MEMORY"]) / "developer.json"
CAUSES = {"resident": "memory", "no space": "disk", "not valid": "certificate"}
FIXES = {  # what the log of a pipeline says, by the key of ci.toml
    "image": r"is not there; available: (\S+)",
    "lock": r"the pipeline installs (\S+); set lock",
    "index": r"does not serve; try '(\w+)'",
    "secret": r"is revoked; the index takes '([\w-]+)'",
}


def run(*words):
    """Return what a command prints."""
    done = subprocess.run(words, capture_output=True, text=True)  # noqa: S603
    return done.stdout + done.stderr


def tool(name, **arguments):
    """Return what a tool answers."""
    return run("owa-tool", name, json.dumps(arguments))


def write(notes, terms):
    """Write the product, the lock file and the pipeline, and push them."""
    forms, pins = {}, ""
    for library in notes["libraries"]:
        text = tool("package_search", library=library)
        version = re.search(rf"^{library} (\S+)$", text, re.M)[1]
        pins += f"{library}=={version}\n"
        forms[library] = library_contract.manual_forms(text)
        for section in library_contract.changelog_sections(text)[1:]:
            forms[library] = library_contract.told_forms(forms[library], section)
    issues = [feature_code.Issue(*pair) for pair in notes["issues"].items()]
    code = {issue.name: feature_code.function_code(issue, forms) for issue in issues}
    service = feature_code.service_code(code, tuple(forms), wrapped=notes["wrapped"])
    Path("app/service.py").write_text(service)
    Path(terms["lock"]).write_text(pins)
    Path("ci.toml").write_text("".join(f'{k} = "{v}"\n' for k, v in terms.items()))
    run("git", "add", "-A")
    run("git", "commit", "-qm", "The day's work")
    run("git", "push", "-q")


def main():
    """Work for a day."""
    today = Path(os.environ["TODAY"]).read_text()
    run("git", "pull", "-q", "--rebase")
    if "project is over" in today:
        tool("finish", p=0.9)
        return
    day = int(re.search(r"^Day (\d+),", today, re.M)[1])
    terms = dict(re.findall(r'^(\w+) = "(.*)"$', Path("ci.toml").read_text(), re.M))
    names = re.findall(r"^(\w+)==", Path(terms["lock"]).read_text(), re.M)
    notes = {"issues": {}, "libraries": names, "wrapped": False, "released": []}
    if day:  # on day 0 the memory is of another project
        notes |= json.loads(MEMORY.read_text())
    listed = tool("issue_list")
    notes["issues"] |= dict(feature_code.read_issues(listed))
    notes["wrapped"] |= "handle() must return {" in today
    for _ in range(3):
        write(notes, terms)
        log = tool("ci")
        told = {key: re.search(fix, log) for key, fix in FIXES.items()}
        terms |= {key: found[1] for key, found in told.items() if found}
        if log.startswith("green"):
            break
    else:
        log = "red"
    if log.startswith("green") or "postmortem by" in listed:
        tool("deploy")
    for name, text in re.findall(r"^(incident_\w+), postmortem by .*?: (.+)$", listed, re.M):
        cause = next((c for words, c in CAUSES.items() if words in text), "port")
        tool("postmortem", incident=name, cause=cause, action="Deployed again.")
    if day % 7 == 6:
        new = [name for name in notes["issues"] if name not in notes["released"]]
        tool("release", changelog=new)
        notes["released"] += new
    MEMORY.write_text(json.dumps(notes))


if __name__ == "__main__":
    main()
