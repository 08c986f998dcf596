"""Skills of the reference agents of Recall: reading, stores, retrieval, solving."""
