"""Assembly, plan, episode loop, recorder, executors, campaign, replay."""
