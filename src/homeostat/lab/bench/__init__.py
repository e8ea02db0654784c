"""Measurements of Homeostat itself. Each is one `homeostat bench` command."""
