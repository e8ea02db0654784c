"""Measurements of Homeostat itself, repeatable with one command each."""
