"""Scenarios: what a simulation is made of, read from TOML."""
