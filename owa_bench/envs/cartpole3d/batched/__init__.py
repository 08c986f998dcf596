"""CartPole3D in torch: thousands of episodes of one world at once, a lane each."""
