"""ToolQuest, third edition: cases in one coherent company."""
