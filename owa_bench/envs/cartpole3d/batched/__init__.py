"""CartPole3D for thousands of environments at once: the same physics in torch."""
