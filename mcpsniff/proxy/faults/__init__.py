"""Faults on purpose: late, lost, wrong or broken messages, chosen by filter, probability and seed."""
