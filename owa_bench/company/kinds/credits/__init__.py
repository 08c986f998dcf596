"""The kind `credits`: a queue of credit requests, decided by a written policy."""
