"""From a run directory to a signed statement, a page, and checks of both."""
