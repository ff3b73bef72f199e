"""Bytes to frames: each framer turns the recorded bytes of a channel into frames and keeps their spans."""
