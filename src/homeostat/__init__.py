"""Homeostat: self-regulating stream processing."""

from homeostat._version import __version__

__all__ = ["__version__"]
