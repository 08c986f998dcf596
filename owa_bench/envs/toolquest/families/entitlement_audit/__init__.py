"""Find access that nobody is entitled to, and what it costs."""
