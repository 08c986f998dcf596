"""The Gymnasium shells of suites: tools, views, calls, episodes and event sinks."""
