"""Reconcile a ledger with a bank."""
