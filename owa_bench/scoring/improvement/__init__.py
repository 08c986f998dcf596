"""Self-improvement: kappa over checkpoints."""
