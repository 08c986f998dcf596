"""AIQ: complexity, dissimilarity, intelligence space, and novelty metrics."""
