"""Plugin of mypy for laws: a body gets magnitudes, whatever its callers may give.

In the head of a function under `@law`, `Annotated[QuantityLike, …]` and `Annotated[Quantity, …]`
are read as `Number`, by which the body is checked. Who calls the law sees what is written there: so
do users, whose type checkers need no plugin.
"""

from __future__ import annotations

from collections.abc import Callable

from mypy.checker import TypeChecker
from mypy.nodes import Decorator, FuncDef, MypyFile, NameExpr, TypeAlias, TypeInfo
from mypy.plugin import AnalyzeTypeContext, FunctionContext, Plugin
from mypy.semanal import SemanticAnalyzer
from mypy.typeanal import TypeAnalyser
from mypy.types import CallableType, Instance, Type, UnboundType, get_proper_type

LAW = "calc.core.law.law"


class Laws(Plugin):
    def get_type_analyze_hook(self, fullname: str) -> Callable[[AnalyzeTypeContext], Type] | None:
        return _in_a_body if fullname == "typing.Annotated" else None

    def get_function_hook(self, fullname: str) -> Callable[[FunctionContext], Type] | None:
        return _for_callers if fullname == LAW else None


def _in_a_body(context: AnalyzeTypeContext) -> Type:
    """The type that is annotated, or `Number` in place of a quantity in the head of a law.

    A law's defaults are what a caller might have given, too: `law` reads them, and refuses what
    does not fit, when it is imported.
    """
    assert isinstance(context.api, TypeAnalyser)
    analyzer = context.api.api
    assert isinstance(analyzer, SemanticAnalyzer)
    annotated, function = context.type.args[0], analyzer.scope.function
    is_quantity = isinstance(annotated, UnboundType) and annotated.name.startswith("Quantity")
    if is_quantity and isinstance(function, FuncDef) and _is_law(analyzer, function):
        for argument in function.arguments:
            argument.initializer = None
        return _named(analyzer.modules, "calc.core.elementwise", "Number")
    return context.api.analyze_type(annotated)


def _is_law(analyzer: SemanticAnalyzer, function: FuncDef) -> bool:
    symbol = analyzer.globals.get(function.name)
    return (
        symbol is not None
        and isinstance(symbol.node, Decorator)
        and symbol.node.func is function
        and any(
            isinstance(decorator, NameExpr) and decorator.fullname == LAW
            for decorator in symbol.node.original_decorators
        )
    )


def _for_callers(context: FunctionContext) -> Type:
    """The type of a law as it is written."""
    assert isinstance(context.api, TypeChecker)
    law, modules = get_proper_type(context.default_return_type), context.api.modules
    if not isinstance(law, CallableType):
        return law
    number = _named(modules, "calc.core.elementwise", "Number")
    accepted = _named(modules, "calc.core.units", "QuantityLike")
    result = _named(modules, "calc.core.units", "Quantity")
    return law.copy_modified(
        arg_types=[accepted if kind == number else kind for kind in law.arg_types],
        ret_type=result if law.ret_type == number else law.ret_type,
    )


def _named(modules: dict[str, MypyFile], module: str, name: str) -> Type:
    node = modules[module].names[name].node
    if isinstance(node, TypeAlias):
        return get_proper_type(node.target)
    assert isinstance(node, TypeInfo)
    return Instance(node, [])


def plugin(version: str) -> type[Plugin]:
    return Laws
