"""What the tool suites share: the env shell, its views, tools, clock and sinks."""
