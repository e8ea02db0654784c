"""Loads the pipelines of an application file."""

from __future__ import annotations

import importlib.util
import sys
import traceback
from importlib.machinery import SourceFileLoader
from pathlib import Path

from homeostat.core.errors import ConfigError
from homeostat.spark.pipeline import Pipeline
from homeostat.strict.toml_reading import nearest


def parts(app: str) -> tuple[Path, str]:
    """The file and the name in `path/to/app.py:name`. Without a name, it means all pipelines of the file."""
    file, colon, name = app.rpartition(":")
    return (Path(file), name) if colon and not app.endswith(".py") else (Path(app), "")


def send_along(app: str) -> None:
    """Send the definitions in the file along with the tasks, because executors cannot import the file."""
    from pyspark import cloudpickle

    cloudpickle.register_pickle_by_value(sys.modules[_module_name(parts(app)[0])])  # type: ignore[no-untyped-call]


def load(app: str) -> list[Pipeline]:
    """The pipelines of `app.py`, or the one that `app.py:name` names. A ConfigError if there is none."""
    path, name = parts(app)
    if not path.is_file():
        raise ConfigError("no such application file", where=str(path), fix="give the path of a Python file")
    pipelines = _pipelines(path)
    if not pipelines:
        raise ConfigError(
            "the file defines no pipeline", where=str(path), fix="decorate a function with @homeostat.pipeline(…)"
        )
    names = [pipeline.name for pipeline in pipelines]
    double = next((each for each in names if names.count(each) > 1), None)
    if double is not None:
        raise ConfigError(
            f"two pipelines are named {double!r}", where=str(path), fix="rename one with @homeostat.pipeline(name=…)"
        )
    if not name:
        return pipelines
    if name not in names:
        raise ConfigError(f"the file has no pipeline {name!r}", where=str(path), fix=nearest(name, names))
    return [pipeline for pipeline in pipelines if pipeline.name == name]


class _SourceLoader(SourceFileLoader):
    """Leaves no compiled file beside the application."""

    def set_data(self, path: str, data: object, *, _mode: int = 0o666) -> None:
        pass


def _pipelines(path: Path) -> list[Pipeline]:
    name = _module_name(path)
    spec = importlib.util.spec_from_file_location(name, path, loader=_SourceLoader(name, str(path.absolute())))
    if path.suffix != ".py" or spec is None or spec.loader is None:
        raise ConfigError("not a Python file", where=str(path), fix="give a file whose name ends in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    sys.path.insert(0, str(path.parent.resolve()))
    try:
        spec.loader.exec_module(module)
    except ConfigError as error:
        line = _line(path, error)
        raise ConfigError(error.what, where=f"{line}: {error.where}" if error.where else line, fix=error.fix) from error
    except (Exception, SystemExit) as error:
        raise ConfigError(f"importing the file raised {_words(error)}", where=_line(path, error)) from error
    by_id: dict[int, Pipeline] = {id(each): each for each in vars(module).values() if isinstance(each, Pipeline)}
    return list(by_id.values())


def _module_name(path: Path) -> str:
    """A file named like another module, such as `random.py`, must not replace that module."""
    module = sys.modules.get(path.stem)
    ours = module is None or getattr(module, "__file__", None) == str(path.absolute())
    return path.stem if ours else f"{path.stem} (application)"


def _words(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _line(path: Path, error: BaseException) -> str:
    """The line of the user's own file in which the error happened."""
    if isinstance(error, SyntaxError):
        return f"{path}:{error.lineno}"
    inside = [f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename == str(path.absolute())]
    return f"{path}:{inside[-1]}" if inside else str(path)
