"""Functions of higher rooms that a lower room calls; `zerostride.attachments` attaches them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..system.hooks import Hook

if TYPE_CHECKING:
    from .plan import Plan

#: Renders a model's report as "html", "markdown", "text", or a conversion's as "record".
render_report: Hook[[Any, str], str] = Hook()
#: The plan of xarray's arrays, which are combined by dimension names.
plan_of_labelled: Hook[[tuple[Any, ...]], Plan] = Hook()
#: NumPy's name of a dtype; raises TypeError if NumPy has no such dtype.
dtype_name: Hook[[Any], str] = Hook()
#: The row of the array library that owns a type, or None: `zerostride.arrays.table.find_row`.
find_library: Hook[[type], Any] = Hook()
#: The module that passes operands to their library's adapter: `zerostride.arrays.dispatch`.
find_dispatch: Hook[[], Any] = Hook()
