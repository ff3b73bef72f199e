"""Checks: framing."""
