"""Scenarios: the definition of a simulation, read from TOML."""
