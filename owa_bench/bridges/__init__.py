"""Other people's protocols: what lets their agents play our episodes."""
