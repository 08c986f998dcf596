"""Training of policies with Stable-Baselines3."""
