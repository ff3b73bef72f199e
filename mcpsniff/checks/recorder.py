"""Checks: recorder."""
