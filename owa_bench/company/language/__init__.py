"""Texts of a company, written and read: sentences, policies, letters. No data, no judge."""
