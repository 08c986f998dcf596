"""Model gateway: the way from an agent to a model's provider and to named hosts."""
