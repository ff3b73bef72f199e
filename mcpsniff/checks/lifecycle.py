"""Checks: lifecycle."""
