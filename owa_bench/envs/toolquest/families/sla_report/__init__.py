"""Report broken service levels and what they cost."""
