"""Git repositories that suites of real code share: commits run, pushes checked."""
