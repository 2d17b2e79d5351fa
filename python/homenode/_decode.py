"""JSON into dataclasses, by their types."""

from __future__ import annotations

import dataclasses
import typing
from typing import Any, Dict, Type, TypeVar

T = TypeVar("T")

_HINTS: Dict[type, Dict[str, Any]] = {}


def decode(kind: Type[T], value: Any) -> T:
    """``value`` as a dataclass. Keys that the class lacks are passed over: a newer command says more.

    >>> @dataclasses.dataclass(frozen=True)
    ... class Point:
    ...     x: int
    ...     name: typing.Optional[str] = None
    >>> decode(Point, {"x": 3, "colour": "red"}).x
    3
    """
    if kind not in _HINTS:
        _HINTS[kind] = typing.get_type_hints(kind)
    hints = _HINTS[kind]
    fields = dataclasses.fields(kind)  # type: ignore[arg-type]
    return kind(**{f.name: _value(hints[f.name], value[f.name]) for f in fields if f.name in value})


def _value(hint: Any, value: Any) -> Any:
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Union:
        return None if value is None else _value(next(a for a in args if a is not type(None)), value)
    if origin is tuple:
        each = args * len(value) if args[-1] is not Ellipsis else args[:1] * len(value)
        return tuple(_value(a, v) for a, v in zip(each, value))
    if dataclasses.is_dataclass(hint):
        return decode(hint, value)  # type: ignore[arg-type]
    if hint is float and isinstance(value, int):
        return float(value)
    return value
