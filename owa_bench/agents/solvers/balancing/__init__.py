"""Control of a pole on a cart and detection of novelty, for agents of CartPole3D."""
