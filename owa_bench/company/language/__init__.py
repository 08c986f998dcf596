"""What a company writes and how it is read: sentences, policies, letters. No data, no judge."""
