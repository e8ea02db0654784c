"""Strict reading of configuration files: TOML, units, and errors that name the line and the fix."""
