"""The kinds of tool that axis T counts as categories: a closed list.

A suite's card maps each of its tools to one of them, or to "" where it is of none: a tool that
belongs to the frame of the episode (a wait, an answer sheet, the end of a day) reaches nothing.
The list is [D]; axis T: [R] eqs 7-9 of the AAI paper.
"""

from collections.abc import Mapping

TOOL_KINDS: Mapping[str, str] = {
    "http_api": "HTTP API",
    "query": "database or query endpoint",
    "browser": "browser",
    "code": "code runner",
    "files": "files and documents",
    "version_control": "version control",
    "packages": "package registry",
    "messages": "mail and chat",
    "scheduler": "scheduler",
    "cloud": "cloud operations",
}
