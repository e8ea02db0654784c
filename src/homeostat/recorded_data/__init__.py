"""Recorded runs and recorded loads, read from files, as plain values."""
