"""Checks: ordering."""
