"""Find customer records made twice."""
