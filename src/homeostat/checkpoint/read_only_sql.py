"""Refuses SQL that does more than read, before Spark carries out any of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from homeostat.core.errors import ConfigError
from homeostat.spark_errors import first_line

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# They call any method of any Java class, so they can write files and end the process.
CALLING_JAVA = frozenset({"java_method", "reflect", "try_reflect"})
_FUNCTION, _SUBQUERY = "UnresolvedFunction", "plan"
_RUNS_A_PROGRAM = "ScriptTransformation"


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
        parser.parseQuery(sql)  # the rule of the grammar that is a query, as opposed to a statement
    except ParseException:
        raise _refusal("this statement is not a query") from None
    for node in _nodes(plan):
        name = str(node.getClass().getSimpleName())
        if name == _RUNS_A_PROGRAM:
            raise _refusal("TRANSFORM starts a program")
        if name == _FUNCTION and (function := str(node.nameParts().last()).lower()) in CALLING_JAVA:
            raise _refusal(f"the function {function} calls into Java")


def _refusal(what: str) -> ConfigError:
    return ConfigError(f"{what}, and `state query` only reads", where="SQL", fix="write a SELECT")


def _nodes(node: Any) -> Iterator[Any]:
    """A plan or an expression with everything below it: children, expressions, subqueries and the parts of WITH."""
    yield node
    names = {str(method.getName()) for method in node.getClass().getMethods() if not method.getParameterCount()}
    for name in ("children", "innerChildren", "expressions"):
        if name in names:
            below = getattr(node, name)().iterator()
            while below.hasNext():
                yield from _nodes(below.next())
    if _SUBQUERY in names and "children" in names and "expressions" not in names:
        yield from _nodes(node.plan())
