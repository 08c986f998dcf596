"""CartPole3D: balance a pole on a cart in a box of flying balls."""
