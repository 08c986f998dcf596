"""Marks of tests that need agents' processes in a sandbox."""

import pytest

from owa_bench.sandbox import views

needs_namespaces = pytest.mark.skipif(
    bool(views.namespaces_fault()), reason=f"no namespaces: {views.namespaces_fault()}"
)
needs_sandbox = pytest.mark.skipif(
    bool(views.bubblewrap_fault()), reason=f"no sandbox: {views.bubblewrap_fault()}"
)
