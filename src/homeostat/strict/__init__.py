"""Strict reading of what people write: TOML, units, and errors that name the line and the fix."""
