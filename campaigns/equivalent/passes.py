"""The passes of each optimiser, each as a function that makes a model of a model by it alone."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import onnx

Optimise = Callable[[onnx.ModelProto], onnx.ModelProto]

#: The rules of ONNX Runtime's rule-based transformers, which no log names
#: (onnxruntime/core/optimizer/graph_transformer_utils.cc, GenerateRewriteRules).
ONNXRUNTIME_RULES = (
    *("EliminateIdentity", "EliminateSlice", "UnsqueezeElimination", "EliminateDropout"),
    *("ExpandElimination", "CastElimination", "CastChainElimination", "PreShapeNodeElimination"),
    *("NoopElimination", "DivMulFusion", "FuseReluClip", "GemmSumFusion", "GemmTransposeFusion"),
    *("NotWhereFusion", "ConvAddFusion", "ConvMulFusion", "ConvBNFusion", "Pad_Fusion"),
    *("MatMul_BatchNormalization_Fusion", "LabelEncoderFusion", "ClipQuantRewrite"),
    *("ReluQuantRewrite",),
)
#: Its transformers (the same file, GenerateTransformers). Releases ignore names they do not know.
ONNXRUNTIME_TRANSFORMERS = (
    *("DoubleQDQPairsRemover", "ConstantSharing", "CommonSubexpressionElimination"),
    *("ConstantFolding", "ConstantFoldingDQ", "MatMulAddFusion", "ReshapeFusion"),
    *("FreeDimensionOverrideTransformer", "GeluFusion", "GeluFusionL1", "GeluFusionL2"),
    *("LayerNormFusion", "LayerNormFusionL1", "LayerNormFusionL2", "QDQPropagationTransformer"),
    *("WeightBiasQuantization", "WhereDummyDq", "TransposeOptimizer"),
    *("TransposeOptimizer_CPUExecutionProvider", "QDQS8ToU8Transformer"),
    *("QDQSelectorActionTransformer", "GemmActivationFusion", "MatMulIntegerToFloatFusion"),
    *("DynamicQuantizeMatMulFusion", "ConvActivationFusion", "SimplifiedLayerNormFusion"),
    *("AttentionFusion", "EmbedLayerNormFusion", "GatherSliceToSplitFusion"),
    *("GatherToSliceFusion", "MatmulTransposeFusion", "BiasGeluFusion"),
    *("GroupQueryAttentionFusion", "GroupQueryAttentionPreNormFusion", "SkipLayerNormFusion"),
    *("BiasSkipLayerNormFusion", "FastGeluFusion", "QuickGeluFusion", "SwiGluFusion"),
    *("SliceConcatToSpaceToDepthFusion", "BiasSoftmaxFusion", "BiasDropoutFusion"),
    *("MatMulScaleFusion", "MatMulActivationFusion", "MatMulNBitsFusion", "DQMatMulNBitsFusion"),
    *("MatMulNBitsMlpFusion", "MatMulNBitsQkvFusion", "MatMulNBitsQLoRAFusion"),
    *("Avx2WeightS8ToU8Transformer", "QDQFinalCleanupTransformer", "RocmBlasAltImpl"),
    *("ConvAddActivationFusion", "NchwcTransformer", "NhwcTransformer"),
)
_ONNXRUNTIME = (*ONNXRUNTIME_RULES, *ONNXRUNTIME_TRANSFORMERS)


def copy(model: onnx.ModelProto) -> onnx.ModelProto:
    """A copy of a model, for optimisers that change what they are given."""
    twin = onnx.ModelProto()
    twin.CopyFrom(model)
    return twin


# onnxoptimizer.


def by_onnxoptimizer(model: onnx.ModelProto, names: Iterable[str]) -> onnx.ModelProto:
    """The model after some passes of onnxoptimizer."""
    import onnxoptimizer

    result: onnx.ModelProto = onnxoptimizer.optimize(model, list(names))
    return result


def onnxoptimizer_passes() -> dict[str, Optimise]:
    """Every pass of onnxoptimizer that removes or joins nodes."""
    import onnxoptimizer

    names: list[str] = onnxoptimizer.get_fuse_and_elimination_passes()
    return {name: partial(by_onnxoptimizer, names=[name]) for name in names}


def onnxoptimizer_nothing(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model read and written by onnxoptimizer."""
    return by_onnxoptimizer(model, ["nop"])


def onnxoptimizer_without(name: str) -> Optimise:
    """Every pass of onnxoptimizer but one."""
    names = [one for one in onnxoptimizer_passes() if one != name]
    return partial(by_onnxoptimizer, names=names)


# onnxsim: its own copies of onnxoptimizer's passes, and more.


#: Steps of onnxsim that are no passes.
_ONNXSIM_IDLE = {"skip_constant_folding": True, "skip_shape_inference": True}
#: How passes begin, of its other ones, that may run by default.
_ONNXSIM_MORE = ("fuse_", "eliminate_", "rewrite_", "adjust_", "replace_")


def _onnxsim_names() -> tuple[list[str], list[str]]:
    """Its passes, and others: some of these run by default, and most quantise on demand."""
    import onnxsim.onnxsim_cpp2py_export as native

    names: list[str] = sorted(native._list_optimizers())
    more: list[str] = sorted(native._list_other_optimizers())
    return names, more


def by_onnxsim(
    model: onnx.ModelProto, options: Mapping[str, Any] = MappingProxyType({})
) -> onnx.ModelProto:
    """The model that onnxsim makes, without its own check."""
    import onnxsim

    result: onnx.ModelProto = onnxsim.simplify(copy(model), check_n=0, **options)[0]
    return result


def onnxsim_passes() -> dict[str, Optimise]:
    """Each pass of onnxsim, the others skipped."""
    names, more = _onnxsim_names()
    passes: dict[str, Optimise] = {}
    for name in (*names, *(one for one in more if one.startswith(_ONNXSIM_MORE))):
        others = [one for one in (*names, *more) if one != name]
        options = {**_ONNXSIM_IDLE, "skipped_optimizers": others}
        passes[name] = partial(by_onnxsim, options=options)
    for name in _ONNXSIM_IDLE:
        options = {**_ONNXSIM_IDLE, name: False, "perform_optimization": False}
        passes[name.removeprefix("skip_")] = partial(by_onnxsim, options=options)
    return passes


def onnxsim_without(name: str) -> Optimise:
    """Every pass of onnxsim but one."""
    return partial(by_onnxsim, options={"skipped_optimizers": [name]})


def onnxsim_nothing(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model read and written by onnxsim."""
    return by_onnxsim(model, {**_ONNXSIM_IDLE, "perform_optimization": False})


# onnxslim.

#: A part of onnxslim that all of its passes begin with.
SHAPE_INFERENCE = "shape inference"
#: The optimisation of onnxslim that has patterns.
_FUSION = "graph_fusion"


def by_onnxslim(
    model: onnx.ModelProto, options: Mapping[str, Any] = MappingProxyType({})
) -> onnx.ModelProto:
    """The model that onnxslim makes."""
    import onnxslim

    result: onnx.ModelProto = onnxslim.slim(copy(model), **options)
    return result


def _onnxslim_names() -> tuple[list[str], list[str]]:
    """Its optimisations, and its patterns of fusion."""
    from onnxslim.core.optimization import OptimizationSettings
    from onnxslim.core.pattern.registry import DEFAULT_FUSION_PATTERNS

    return list(OptimizationSettings.keys()), list(DEFAULT_FUSION_PATTERNS)


def onnxslim_passes() -> dict[str, Optimise]:
    """Shape inference, and after it each optimisation and each pattern of fusion of onnxslim."""
    kinds, patterns = _onnxslim_names()
    passes: dict[str, Optimise] = {SHAPE_INFERENCE: _onnxslim_part("")}
    passes.update((kind, _onnxslim_part(kind)) for kind in kinds if kind != _FUSION)
    passes.update((pattern, _onnxslim_part(pattern)) for pattern in patterns)
    return passes


def _onnxslim_part(name: str, *, infers: bool = True) -> Optimise:
    """One optimisation or pattern of fusion, the others skipped; "" is none of them."""
    kinds, patterns = _onnxslim_names()
    kind = name if name in kinds else _FUSION
    skipped = {
        "skip_optimizations": [one for one in kinds if one != kind],
        "skip_fusion_patterns": [one for one in patterns if one != name],
    }
    return partial(by_onnxslim, options={"no_shape_infer": not infers, **skipped})


def onnxslim_nothing(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model read and written by onnxslim."""
    return _onnxslim_part("", infers=False)(model)


def onnxslim_without(name: str) -> Optimise:
    """Everything of onnxslim but one part."""
    options: dict[str, Any] = {"skip_fusion_patterns": [name]}
    if name == SHAPE_INFERENCE:
        options = {"no_shape_infer": True}
    elif name in _onnxslim_names()[0]:
        options = {"skip_optimizations": [name]}
    return partial(by_onnxslim, options=options)


# onnxscript.


def by_onnxscript(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model that onnxscript's optimiser makes."""
    from onnxscript import optimizer

    result: onnx.ModelProto = optimizer.optimize(copy(model))
    return result


def onnxscript_passes() -> dict[str, Optimise]:
    """Constant folding, each rule of the rewriter, and each pass of the representation."""
    from onnxscript.optimizer import _constant_folding as folding

    passes: dict[str, Optimise] = {}
    for name, make in _onnxscript_cleanups():
        passes[name] = partial(_by_ir, make=make)

    def fold() -> Any:
        return folding.FoldConstantsPass(
            shape_inference=True,
            input_size_limit=folding.DEFAULT_CONSTANT_FOLD_INPUT_SIZE_LIMIT,
            output_size_limit=folding.DEFAULT_CONSTANT_FOLD_OUTPUT_SIZE_LIMIT,
        )

    passes["constant_folding"] = partial(_by_ir, make=fold)
    for name, rules in _onnxscript_rules():
        passes[name] = partial(_by_rules, rules=rules)
    return passes


def _onnxscript_cleanups() -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield the passes of the representation that the optimiser runs, by name."""
    from onnx_ir.passes import common

    lifted = {"lift_all_constants": True, "size_limit": 0}
    for name, options in {
        "InlinePass": {},
        "RemoveUnusedNodesPass": {},
        "LiftConstantsToInitializersPass": lifted,
        "LiftSubgraphInitializersToMainGraphPass": {},
        "DeduplicateInitializersPass": {},
        "CommonSubexpressionEliminationPass": {},
        "IdentityEliminationPass": {},
        "OutputFixPass": {},
        "NameFixPass": {},
    }.items():
        if hasattr(common, name):
            yield name, partial(getattr(common, name), **options)


def _onnxscript_rules() -> Iterator[tuple[str, Any]]:
    """Yield the rewriter's rules and rule sets by name: common ones, fusions, ONNX Runtime's."""
    from importlib import import_module

    from onnxscript.rewriter import ort_fusions
    from onnxscript.rewriter.rules import common

    for name in common.__all__:
        rules = getattr(common, name)
        rules = rules() if callable(rules) and not hasattr(rules, "apply_to_model") else rules
        yield name, rules if _is_set(rules) else _in_any_order(rules)
    for place in ("_layer_norm", "_rms_normalization", "_rotary_embedding", "_gqa"):
        module = import_module(f"onnxscript.rewriter.rules.fusion.{place}")
        for name in vars(module):
            if not name.startswith("_") and _is_set(getattr(module, name)):
                yield name, getattr(module, name)
    for number, rule in enumerate(ort_fusions.ORT_PATTERN_REWRITE_RULES):
        yield f"ort_{rule.name or number}", [rule]


def _in_any_order(rule: Any) -> list[Any]:
    """A rule for operands of sums and products in any order, as the rewriter's own sets have it."""
    try:
        return list(rule.commute())
    except AssertionError:  # the rewriter swaps the operands of binary nodes alone
        return [rule]


def _is_set(rules: Any) -> bool:
    from onnxscript.rewriter import RewriteRuleSet

    return isinstance(rules, RewriteRuleSet)


def _by_rules(model: onnx.ModelProto, rules: Any) -> onnx.ModelProto:
    from onnxscript import rewriter

    result: onnx.ModelProto = rewriter.rewrite(copy(model), rules)
    return result


def _by_ir(model: onnx.ModelProto, make: Callable[[], Any]) -> onnx.ModelProto:
    import onnx_ir

    result: onnx.ModelProto = onnx_ir.to_proto(make()(onnx_ir.from_proto(copy(model))).model)
    return result


def onnxscript_nothing(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model read and written by onnxscript's rewriter, without what nothing uses."""
    from onnxscript.rewriter import pattern

    class Never(pattern.RewriteRuleClassBase):  # type: ignore[misc]
        """A rule that no node meets."""

        def pattern(self, op: Any, x: Any) -> Any:
            return op.NoSuchOp(x, _domain="none")

        def rewrite(self, op: Any, x: Any) -> Any:
            return x

    return _by_rules(model, [Never.rule()])


# ONNX Runtime.

#: Always left out: it writes weights in blocks as wide as the vectors of this processor, which no
#: other machine may have.
BLOCKS = "NchwcTransformer"


def by_onnxruntime(
    model: onnx.ModelProto, level: str, disabled: Iterable[str] = ()
) -> onnx.ModelProto:
    """The model that ONNX Runtime runs at a level, with some of its optimisers disabled."""
    import onnxruntime

    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder, "optimised.onnx")
        options: Any = onnxruntime.SessionOptions()
        options.optimized_model_filepath = str(output)
        options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, level)
        options.log_severity_level = 4
        onnxruntime.InferenceSession(
            model.SerializeToString(),
            options,
            providers=["CPUExecutionProvider"],
            disabled_optimizers={*disabled, BLOCKS},
        )
        return onnx.load(str(output))


def onnxruntime_passes(level: str) -> dict[str, Optimise]:
    """Each optimiser of ONNX Runtime at a level, all others disabled."""
    return {
        name: partial(by_onnxruntime, level=level, disabled=[n for n in _ONNXRUNTIME if n != name])
        for name in _ONNXRUNTIME
        if name != BLOCKS
    }


def onnxruntime_nothing(model: onnx.ModelProto, level: str) -> onnx.ModelProto:
    """The model read and written by ONNX Runtime with all optimisers disabled."""
    return by_onnxruntime(model, level, _ONNXRUNTIME)


def onnxruntime_without(name: str, level: str) -> Optimise:
    """ONNX Runtime at a level with one of its optimisers disabled."""
    return partial(by_onnxruntime, level=level, disabled=[name])


Passes = Callable[[], Mapping[str, Optimise]]
Without = Callable[[str], Optimise]
