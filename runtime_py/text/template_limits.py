"""The sandbox that chat templates run in: jinja2's own, with limits on time and size.

A template is code from a stranger. jinja2's sandbox keeps it away from files and from Python's
insides, but not from looping for ever or asking for a string of a terabyte. Here every turn of a
loop, macro, operator, filter and call asks the `Budget` first, and every value that they make is
measured. Nothing is interrupted from outside: no signal, thread or process is needed, so it works
wherever Python does.

Filters and methods that no chat template needs, and whose cost can't be told before, are refused.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from jinja2 import nodes
from jinja2.runtime import Context, Macro
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.visitor import NodeTransformer

from edgeinfinite.runtime_py.text.template_budget import (
    budget,
    check_arguments,
    check_filter,
    check_format_method,
    check_operation,
    check_text_method,
    measured,
    written,
)

_REFUSED_FILTERS = ("pprint", "random", "striptags", "urlize", "wordwrap", "xmlattr")
_REFUSED_METHODS = ("encode", "expandtabs", "format_map", "striptags", "translate", "unescape")


class LimitedEnvironment(ImmutableSandboxedEnvironment):
    """See the module; `BUDGET` must be set while a template of it runs."""

    intercepted_binops = frozenset(("+", "-", "*", "/", "//", "%", "**"))

    def __init__(self, **options: Any) -> None:
        super().__init__(finalize=written, **options)
        self.globals.pop("lipsum", None)
        for name in _REFUSED_FILTERS:
            self.filters.pop(name, None)
        for name, function in list(self.filters.items()):
            self.filters[name] = _limited_filter(name, function)

    def limit_filter(self, name: str) -> None:
        """Puts a filter that was added later under the limits as well."""
        self.filters[name] = _limited_filter(name, self.filters[name])

    def step(self, text: int) -> str:
        """Called at the start of every turn of a loop or macro, with the text that stands in it."""
        allowed = budget()
        allowed.step()
        allowed.write(text)
        return ""

    def made(self, value: Any) -> Any:
        """Called with every list, tuple and dict that the template writes out."""
        return measured(value)

    def joined(self, parts: tuple[Any, ...]) -> str:
        """`a ~ b`."""
        for part in parts:
            measured(part)
        return str(measured("".join(map(str, parts))))

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        check_operation(operator, left, right)
        return measured(super().call_binop(context, operator, left, right))

    def call(__self, __context: Context, __obj: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N805
        if __obj == __self.step or __obj == __self.made or __obj == __self.joined:
            return __obj(*args)
        if not isinstance(__obj, Macro):  # whose own calls are checked
            check_arguments(args, kwargs)
        owner = getattr(__obj, "__self__", None)
        if isinstance(owner, str):
            args = check_text_method(owner, getattr(__obj, "__name__", ""), args, kwargs)
        return measured(super().call(__context, __obj, *args, **kwargs))

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        if isinstance(obj, str | bytes) and attr in _REFUSED_METHODS:
            return False
        return super().is_safe_attribute(obj, attr, value)

    def wrap_str_format(self, value: Any) -> Callable[..., str] | None:
        wrapped = super().wrap_str_format(value)
        if wrapped is None or value.__name__ == "format_map":
            return None

        def formatted(*args: Any, **kwargs: Any) -> str:
            check_format_method(value.__self__, (args, kwargs))
            return wrapped(*args, **kwargs)

        return formatted

    def _generate(self, source: nodes.Template, *args: Any, **kwargs: Any) -> str:
        return super()._generate(_Metered().visit(source), *args, **kwargs)


class _Metered(NodeTransformer):
    """Adds the calls of `step`, `made` and `joined` to a parsed template."""

    def visit(self, node: nodes.Node, *args: Any, **kwargs: Any) -> Any:
        self.generic_visit(node, *args, **kwargs)
        if isinstance(node, nodes.For | nodes.Macro | nodes.CallBlock | nodes.Block):
            text = sum(len(data.data) for data in node.find_all(nodes.TemplateData))
            step = _call("step", nodes.Const(text, lineno=node.lineno))
            node.body.insert(0, nodes.ExprStmt(step, lineno=node.lineno))
        if isinstance(node, nodes.Concat):
            return _call("joined", nodes.Tuple(node.nodes, "load", lineno=node.lineno))
        stored = isinstance(node, nodes.Tuple) and node.ctx != "load"
        if isinstance(node, nodes.List | nodes.Dict | nodes.Tuple) and not stored:
            return _call("made", node)
        return node


def _call(name: str, argument: nodes.Expr) -> nodes.Call:
    line = argument.lineno
    function = nodes.EnvironmentAttribute(name, lineno=line)
    return nodes.Call(function, [argument], [], None, None, lineno=line)


def _limited_filter(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    # Some get the context or the environment first; jinja2 finds that in a mark, which is kept.
    first = 1 if hasattr(function, "jinja_pass_arg") else 0

    @functools.wraps(function)
    def limited(*args: Any, **kwargs: Any) -> Any:
        before, (value, *rest) = args[:first], args[first:]
        more = tuple(rest)
        check_arguments(more, kwargs)
        budget().step()
        value = check_filter(name, value, more, kwargs)
        return measured(function(*before, value, *more, **kwargs))

    return limited
