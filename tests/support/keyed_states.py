"""States that tests run both in memory and on Spark."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from typing import Any, NamedTuple

import homeostat as hs

Yields = Iterator[tuple[Any, ...]]


class Purchase(NamedTuple):
    item: str
    price: float
    at: datetime | None


class Basket(hs.State):
    """Every kind of variable; emits all values as JSON."""

    emits = "shop STRING, user STRING, known STRING"

    rows = hs.Count()
    last = hs.Value(Purchase)
    greeting = hs.Value(str, "hello")
    prices = hs.List(float)
    cheapest = hs.Map(str, float)
    items = hs.Counts(str)

    def on_rows(self, key: tuple[str, str], rows: Iterator[Any]) -> Yields:
        for row in rows:
            self.rows += 1
            if row.item == "forget":
                self._forget()
                continue
            self.last = Purchase(row.item, row.price, row.at)
            self.prices.append(row.price)
            self.cheapest[row.item] = min(row.price, self.cheapest.get(row.item, row.price))
            self.items[row.item] += 1
        self.greeting = f"{self.greeting}!"
        yield (*key, json.dumps(self.as_dict(), sort_keys=True))

    def _forget(self) -> None:
        del self.last
        self.prices = [price for price in self.prices if price < 2]
        if "tea" in self.cheapest:
            del self.cheapest["tea"]
        self.items.clear()

    def as_dict(self) -> dict[str, Any]:
        last = self.last
        return {
            "rows": self.rows,
            "last": None if last is None else [last.item, last.price, last.at.isoformat() if last.at else None],
            "greeting": self.greeting,
            "prices": sorted(self.prices),
            "some prices": bool(self.prices),
            "cheapest": dict(self.cheapest),
            "items": dict(self.items),
            "milk": self.items["milk"],
        }


class Sessions(hs.State):
    """Clicks until ten seconds pass without one, by the time of the clicks."""

    emits = "user STRING, clicks BIGINT, what STRING"
    time = "event"

    clicks = hs.Count()

    def on_rows(self, key: str, rows: Iterator[Any]) -> Yields:
        latest = max(row.at for row in rows if self._count_click())
        self.sleep()
        self.wake("10 s", since=latest)
        self.wake("12 s", since=latest)
        yield key, self.clicks, f"{len(self.timers)} timers"

    def _count_click(self) -> bool:
        self.clicks += 1
        return True

    def on_timer(self, key: str, at_ms: int) -> Yields:
        yield key, self.clicks, f"{at_ms} by {self.now_ms}"
        del self.clicks


class Fading(hs.State):
    """Of each kind, a variable that expires at once and one that stays; and a timer that sets another in the past."""

    emits = "key STRING, known STRING"

    short = hs.Count(ttl="1 ms")
    long = hs.Count(ttl="1 h")
    short_list = hs.List(int, ttl="1 ms")
    long_list = hs.List(int, ttl="1 h")
    short_map = hs.Map(int, int, ttl="1 ms")
    long_map = hs.Map(int, int, ttl="1 h")
    rings = hs.Count()

    def on_rows(self, key: str, rows: Iterator[Any]) -> Yields:
        for row in rows:
            self.short += 1
            self.long += 1
            self.short_list.append(row.n)
            self.long_list.append(row.n)
            self.short_map[row.n] = row.n
            self.long_map[row.n] = row.n
        if not self.timers and not self.rings:
            self.wake("1 ms")
        yield key, self._as_text()

    def on_timer(self, key: str, at_ms: int) -> Yields:
        self.rings += 1
        if self.rings < 3:
            self.wake("1 ms", since=at_ms)
        yield key, f"ring {self.rings}"

    def _as_text(self) -> str:
        lists = (sorted(self.short_list), sorted(self.long_list), sorted(self.short_map), sorted(self.long_map))
        return json.dumps((self.short, self.long, *lists))


class Visits(hs.State):
    """A synopsis of each kind."""

    emits = "page STRING, visitors DOUBLE, median DOUBLE, top STRING"

    visitors = hs.Distinct(error=0.05)
    seconds = hs.Quantiles(error=0.05)
    terms = hs.HeavyHitters(str, error=0.05)

    def on_rows(self, key: str, rows: Iterator[Any]) -> Yields:
        for row in rows:
            self.visitors.add(row.user)
            self.seconds.add(row.seconds)
            self.terms.add(row.term)
        yield key, self.visitors.estimate, self.seconds.at(0.5), self.terms.top(1)[0].item
