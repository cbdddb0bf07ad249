"""Functions of higher rooms that a lower room calls; `zerostride.attachments` puts them here.

A room imports from rooms below it alone. Where it has to call upwards, it calls a hook.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar

if TYPE_CHECKING:
    from .plan import Plan

P = ParamSpec("P")
R = TypeVar("R")


class Hook(Generic[P, R]):
    """A function that another module attaches.

    >>> double = Hook[[int], int]()
    >>> double.attach(lambda number: 2 * number)
    >>> double(21)
    42
    """

    __slots__ = ("_function",)

    def attach(self, function: Callable[P, R]) -> None:
        """Calls go to this function from now on."""
        self._function = function

    def __call__(self, *args: P.args, **options: P.kwargs) -> R:
        """Calls the attached function."""
        return self._function(*args, **options)


#: A report of a model in a form: "html", "markdown" or "text".
render_report: Hook[[Any, str], str] = Hook()
#: The plan of xarray's arrays, which are combined by the names of their dimensions.
plan_of_labelled: Hook[[tuple[Any, ...]], Plan] = Hook()
#: NumPy's name of a dtype; raises TypeError where NumPy has no such dtype.
dtype_name: Hook[[Any], str] = Hook()
#: The row of the array library that a type is of, or None: `zerostride.arrays.table.find_row`.
find_library: Hook[[type], Any] = Hook()
#: The module that hands operands to their library's adapter: `zerostride.arrays.dispatch`.
find_dispatch: Hook[[], Any] = Hook()
