"""Skills of agents that revise a subject: a proposer, and rules of adoption."""
