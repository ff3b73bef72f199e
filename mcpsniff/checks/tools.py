"""Checks: tools."""
