"""The line of each key of a TOML document, which `tomllib` does not report."""

from __future__ import annotations

import tomllib

KeyPath = tuple[str | int, ...]


def key_lines(text: str) -> dict[KeyPath, int]:
    """The line (from 1) of every table, key and array element of a document that `tomllib` has accepted."""
    return _Scanner(text.replace("\r\n", "\n")).scan()


class _Scanner:
    """Walks the text once. It assumes that the document is valid."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.line = 1
        self.lines: dict[KeyPath, int] = {}
        self.tables_in_array: dict[KeyPath, int] = {}

    def scan(self) -> dict[KeyPath, int]:
        table: KeyPath = ()
        self._skip_blank()
        while self.at < len(self.text):
            if self.text.startswith("[[", self.at):
                table = self._array_header()
            elif self.text[self.at] == "[":
                table = self._header()
            else:
                self._pair(table)
            self._skip_blank()
        return self.lines

    def _header(self) -> KeyPath:
        self._advance(1)
        path = self._resolve(self._key())
        self._advance(1)
        return self._record((), path)

    def _array_header(self) -> KeyPath:
        self._advance(2)
        *parents, name = self._key()
        array = (*self._resolve(tuple(parents)), name)
        self._advance(2)
        index = self.tables_in_array.get(array, -1) + 1
        self.tables_in_array[array] = index
        return self._record((), (*array, index))

    def _resolve(self, names: KeyPath) -> KeyPath:
        """`fault.x` inside `[[fault]]` means the last fault so far."""
        path: KeyPath = ()
        for name in names:
            path = (*path, name)
            if path in self.tables_in_array:
                path = (*path, self.tables_in_array[path])
        return path

    def _pair(self, table: KeyPath) -> None:
        key = self._key()
        path = self._record(table, key)
        self._skip_space()
        self._advance(1)
        self._skip_space()
        self._value(path)

    def _record(self, table: KeyPath, key: KeyPath) -> KeyPath:
        for length in range(1, len(key) + 1):
            self.lines.setdefault(table + key[:length], self.line)
        return table + key

    def _key(self) -> KeyPath:
        parts = [self._key_part()]
        self._skip_space()
        while self.text[self.at] == ".":
            self._advance(1)
            parts.append(self._key_part())
            self._skip_space()
        return tuple(parts)

    def _key_part(self) -> str:
        self._skip_space()
        start = self.at
        if self.text[start] in "\"'":
            self._string()
            return str(tomllib.loads(f"key = {self.text[start : self.at]}")["key"])
        while self.text[self.at] not in " \t.=]":
            self._advance(1)
        return self.text[start : self.at]

    def _value(self, path: KeyPath) -> None:
        opening = self.text[self.at]
        if opening in "\"'":
            self._string()
        elif opening == "[":
            self._array(path)
        elif opening == "{":
            self._inline_table(path)
        else:
            while self.at < len(self.text) and self.text[self.at] not in ",]}\n#":
                self._advance(1)

    def _array(self, path: KeyPath) -> None:
        self._advance(1)
        self._skip_blank()
        index = 0
        while self.text[self.at] != "]":
            self._value(self._record(path, (index,)))
            self._skip_blank()
            if self.text[self.at] == ",":
                self._advance(1)
                self._skip_blank()
            index += 1
        self._advance(1)

    def _inline_table(self, path: KeyPath) -> None:
        self._advance(1)
        self._skip_blank()
        while self.text[self.at] != "}":
            self._pair(path)
            self._skip_blank()
            if self.text[self.at] == ",":
                self._advance(1)
                self._skip_blank()
        self._advance(1)

    def _string(self) -> None:
        quote = self.text[self.at]
        escapes = quote == '"'
        if self.text.startswith(quote * 3, self.at):
            self._advance(3)
            while not self.text.startswith(quote * 3, self.at):
                self._advance(2 if escapes and self.text[self.at] == "\\" else 1)
            self._advance(3)
            # up to two more quotes belong to the text itself
            while self.at < len(self.text) and self.text[self.at] == quote:
                self._advance(1)
            return
        self._advance(1)
        while self.text[self.at] != quote:
            self._advance(2 if escapes and self.text[self.at] == "\\" else 1)
        self._advance(1)

    def _skip_space(self) -> None:
        while self.at < len(self.text) and self.text[self.at] in " \t":
            self.at += 1

    def _skip_blank(self) -> None:
        while self.at < len(self.text) and self.text[self.at] in " \t\n#":
            if self.text[self.at] == "#":
                end = self.text.find("\n", self.at)
                self.at = len(self.text) if end < 0 else end
            else:
                self._advance(1)

    def _advance(self, count: int) -> None:
        self.line += self.text.count("\n", self.at, self.at + count)
        self.at += count
