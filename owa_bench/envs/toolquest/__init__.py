"""ToolQuest: find, authenticate to and compose HTTP APIs that change."""
