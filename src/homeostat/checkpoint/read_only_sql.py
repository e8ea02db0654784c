"""Refuses SQL that does more than read, before Spark carries out any of it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from homeostat.core.errors import ConfigError
from homeostat.spark_errors import first_line

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# These functions call any method of any Java class, so they can write files and end the process.
CALLING_JAVA = frozenset({"java_method", "reflect", "try_reflect"})
_FUNCTION, _SUBQUERY = "UnresolvedFunction", "plan"
_RUNS_A_PROGRAM = "ScriptTransformation"
# In the text of a Java method, such as "public scala.collection.immutable.Seq org.example.Plan.children()".
_WITHOUT_PARAMETERS = re.compile(r"\.(\w+)\(\)")


def require_query(spark: SparkSession, sql: str) -> None:
    """Raise ConfigError unless Spark's parser accepts the text as a query that calls only SQL functions."""
    from pyspark.errors import ParseException

    session: Any = spark
    parser = session._jsparkSession.sessionState().sqlParser()
    try:
        plan = parser.parsePlan(sql)
    except ParseException as error:
        raise ConfigError(first_line(error), where="SQL", fix="write a query, such as SELECT * FROM state") from None
    try:
        parser.parseQuery(sql)  # accepts only queries, not other statements
    except ParseException:
        raise _refusal("this statement is not a query") from None
    for node in _Nodes(spark).below(plan):
        name = str(node.getClass().getSimpleName())
        if name == _RUNS_A_PROGRAM:
            raise _refusal("TRANSFORM starts a program")
        if name == _FUNCTION and (function := str(node.nameParts().last()).lower()) in CALLING_JAVA:
            raise _refusal(f"the function {function} calls into Java")


def _refusal(what: str) -> ConfigError:
    return ConfigError(f"{what}, and `state query` only reads", where="SQL", fix="write a SELECT")


class _Nodes:
    """A plan or an expression with everything below it: children, expressions, subqueries and the parts of WITH."""

    def __init__(self, spark: SparkSession) -> None:
        jvm: Any = spark.sparkContext._jvm
        self._text_of = jvm.org.apache.commons.lang3.ArrayUtils.toString
        self._methods: dict[str, frozenset[str]] = {}

    def below(self, node: Any) -> Iterator[Any]:
        yield node
        names = self._methods_of(node.getClass())
        for name in ("children", "innerChildren", "expressions"):
            if name in names:
                below = getattr(node, name)().iterator()
                while below.hasNext():
                    yield from self.below(below.next())
        if _SUBQUERY in names and "children" in names and "expressions" not in names:
            yield from self.below(node.plan())

    def _methods_of(self, java_class: Any) -> frozenset[str]:
        """The methods without parameters. Asking for them one by one would take hundreds of calls to Java."""
        name = str(java_class.getName())
        if name not in self._methods:
            self._methods[name] = frozenset(_WITHOUT_PARAMETERS.findall(self._text_of(java_class.getMethods())))
        return self._methods[name]
