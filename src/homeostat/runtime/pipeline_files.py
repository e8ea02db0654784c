"""From a file on the command line to the pipelines in it."""

from __future__ import annotations

import importlib.util
import sys
import traceback
from pathlib import Path

from homeostat.core.errors import ConfigError
from homeostat.spark.pipeline import Pipeline
from homeostat.strict.toml_reading import nearest


def parts(app: str) -> tuple[Path, str]:
    """The file and the name of `path/to/app.py:name`; no name means all pipelines of the file."""
    file, colon, name = app.rpartition(":")
    return (Path(file), name) if colon and not app.endswith(".py") else (Path(app), "")


def send_along(app: str) -> None:
    """Executors cannot import the application's file: what it defines goes to them with the tasks that need it."""
    from pyspark import cloudpickle

    cloudpickle.register_pickle_by_value(sys.modules[_module_name(parts(app)[0])])  # type: ignore[no-untyped-call]


def load(app: str) -> list[Pipeline]:
    """The pipelines of `app.py`, or the named one of `app.py:name`; a file without any is refused."""
    path, name = parts(app)
    if not path.is_file():
        raise ConfigError("there is no such application file", where=str(path), fix="name a Python file")
    found = _pipelines(path)
    if not found:
        raise ConfigError(
            "there is no pipeline in it", where=str(path), fix="decorate a function with @homeostat.pipeline(…)"
        )
    names = [pipeline.name for pipeline in found]
    double = next((each for each in names if names.count(each) > 1), None)
    if double is not None:
        raise ConfigError(f"there are two pipelines called {double!r}", where=str(path), fix="rename one: name=…")
    if not name:
        return found
    if name not in names:
        raise ConfigError(f"there is no pipeline {name!r} in it", where=str(path), fix=nearest(name, names))
    return [pipeline for pipeline in found if pipeline.name == name]


def _pipelines(path: Path) -> list[Pipeline]:
    name = _module_name(path)
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ConfigError("this is no Python file", where=str(path), fix="name a file that ends in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    sys.path.insert(0, str(path.parent.resolve()))
    try:
        spec.loader.exec_module(module)
    except ConfigError as error:
        line = _line(path, error)
        raise ConfigError(error.what, where=f"{line}: {error.where}" if error.where else line, fix=error.fix) from error
    except (Exception, SystemExit) as error:
        raise ConfigError(f"it raises {_words(error)}", where=_line(path, error)) from error
    seen: dict[int, Pipeline] = {id(each): each for each in vars(module).values() if isinstance(each, Pipeline)}
    return list(seen.values())


def _module_name(path: Path) -> str:
    """A file that is called like something else, `random.py` say, must not take its place."""
    known = sys.modules.get(path.stem)
    ours = known is None or getattr(known, "__file__", None) == str(path.absolute())
    return path.stem if ours else f"{path.stem} (application)"


def _words(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _line(path: Path, error: BaseException) -> str:
    """Where in the user's own file it happened."""
    if isinstance(error, SyntaxError):
        return f"{path}:{error.lineno}"
    inside = [f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename == str(path.absolute())]
    return f"{path}:{inside[-1]}" if inside else str(path)
