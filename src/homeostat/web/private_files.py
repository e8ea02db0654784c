"""Files that only their owner may read: tokens and secrets."""

from __future__ import annotations

from pathlib import Path

from homeostat.core.errors import ConfigError


def read_private(path: Path, contents: str) -> str:
    """The text of the file. `contents` says what is in it, for the error if it cannot be read or others can read it."""
    try:
        text = path.read_text(encoding="utf-8")
        others = path.stat().st_mode & 0o077
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"the {contents} cannot be read: {type(error).__name__}", where=str(path)) from error
    if others:
        raise ConfigError(f"other users can read the {contents}", where=str(path), fix=f"chmod 600 {path}")
    return text
