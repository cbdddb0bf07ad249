# Made by docs/generate.py: the type stub of `zerostride/__init__.py`.
from .attention import (
    AttentionPlan as AttentionPlan,
    compare_attention as compare_attention,
    plan_attention as plan_attention,
)
from .compute.functions import (
    Elementwise as Elementwise,
    broadcast as broadcast,
    prelu as prelu,
    where as where,
)
from .compute.native import (
    backend as backend,
    get_num_threads as get_num_threads,
    set_num_threads as set_num_threads,
)
from .compute.unary import (
    Activation as Activation,
    Unary as Unary,
    cast as cast,
    clip as clip,
)
from .core.plan import (
    Plan as Plan,
)
from .core.rules import (
    whdc as whdc,
)
from .core.strict_mode import (
    strict as strict,
)
from .derive.compare import (
    compare as compare,
)
from .derive.comparison import (
    Comparison as Comparison,
)
from .engines.planning import (
    plan as plan,
    plan_to as plan_to,
)
from .engines.supports import (
    supports as supports,
)
from .errors import (
    AccidentalBroadcastWarning as AccidentalBroadcastWarning,
    BroadcastError as BroadcastError,
    EngineVersionWarning as EngineVersionWarning,
    ModelError as ModelError,
    NotExpressible as NotExpressible,
    PluginWarning as PluginWarning,
    Reason as Reason,
    TraceError as TraceError,
    ZerostrideError as ZerostrideError,
)
from .fusion import (
    fuse as fuse,
)
from .fusion.derivatives import (
    grad as grad,
    value_and_grad as value_and_grad,
    vjp as vjp,
)
from .fusion.quantised import (
    dequantize as dequantize,
    fake_quantize as fake_quantize,
    quantize as quantize,
)
from .fusion.reductions import (
    all as all,
    any as any,
    argmax as argmax,
    argmin as argmin,
    logsumexp as logsumexp,
    max as max,
    mean as mean,
    min as min,
    prod as prod,
    sum as sum,
    sum_of_squares as sum_of_squares,
)
from .models.audit.run import (
    audit as audit,
)
from .models.findings import (
    Finding as Finding,
    Report as Report,
    Verdict as Verdict,
)
from .models.port import (
    port as port,
)
from .models.shapes import (
    shapes as shapes,
)
from .quantisation.model import (
    QuantizationPlan as QuantizationPlan,
)
from .quantisation.planning import (
    plan_quantization as plan_quantization,
)
from .runtimes.bisect.run import (
    bisect as bisect,
)
from .runtimes.convert.run import (
    convert as convert,
)
from .runtimes.equivalent.run import (
    equivalent as equivalent,
)
from .runtimes.verify.checks import (
    verify as verify,
)
from .sizes.condition import (
    Condition as Condition,
)
from .sizes.dim import (
    Dim as Dim,
)

from .system.version import __version__ as __version__

abs: Unary
acos: Unary
acosh: Unary
add: Elementwise
asin: Unary
asinh: Unary
atan: Unary
atan2: Elementwise
atanh: Unary
bitwise_and: Elementwise
bitwise_invert: Unary
bitwise_left_shift: Elementwise
bitwise_or: Elementwise
bitwise_right_shift: Elementwise
bitwise_xor: Elementwise
ceil: Unary
celu: Activation
copysign: Elementwise
cos: Unary
cosh: Unary
divide: Elementwise
elu: Activation
equal: Elementwise
erf: Unary
exp: Unary
expm1: Unary
floor: Unary
floor_divide: Elementwise
fmax: Elementwise
fmin: Elementwise
fmod: Elementwise
gelu: Unary
gelu_tanh: Unary
greater: Elementwise
greater_equal: Elementwise
hard_sigmoid: Activation
hard_swish: Unary
heaviside: Elementwise
hypot: Elementwise
isfinite: Unary
isinf: Unary
isnan: Unary
leaky_relu: Activation
less: Elementwise
less_equal: Elementwise
log: Unary
log10: Unary
log1p: Unary
log2: Unary
logaddexp: Elementwise
logaddexp2: Elementwise
logical_and: Elementwise
logical_not: Unary
logical_or: Elementwise
logical_xor: Elementwise
maximum: Elementwise
minimum: Elementwise
mish: Unary
multiply: Elementwise
negative: Unary
nextafter: Elementwise
not_equal: Elementwise
positive: Unary
pow: Elementwise
power: Elementwise
reciprocal: Unary
relu: Unary
remainder: Elementwise
round: Unary
rsqrt: Unary
selu: Activation
shrink: Activation
sigmoid: Unary
sign: Unary
silu: Activation
sin: Unary
sinh: Unary
softplus: Unary
softsign: Unary
sqrt: Unary
square: Unary
squared_difference: Elementwise
subtract: Elementwise
swish: Activation
tan: Unary
tanh: Unary
thresholded_relu: Activation
trunc: Unary

__all__ = [
    "AccidentalBroadcastWarning",
    "AttentionPlan",
    "BroadcastError",
    "Comparison",
    "Condition",
    "Dim",
    "EngineVersionWarning",
    "Finding",
    "ModelError",
    "NotExpressible",
    "Plan",
    "PluginWarning",
    "QuantizationPlan",
    "Reason",
    "Report",
    "TraceError",
    "Verdict",
    "ZerostrideError",
    "abs",
    "acos",
    "acosh",
    "add",
    "all",
    "any",
    "argmax",
    "argmin",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "audit",
    "backend",
    "bisect",
    "bitwise_and",
    "bitwise_invert",
    "bitwise_left_shift",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "broadcast",
    "cast",
    "ceil",
    "celu",
    "clip",
    "compare",
    "compare_attention",
    "convert",
    "copysign",
    "cos",
    "cosh",
    "dequantize",
    "divide",
    "elu",
    "equal",
    "equivalent",
    "erf",
    "exp",
    "expm1",
    "fake_quantize",
    "floor",
    "floor_divide",
    "fmax",
    "fmin",
    "fmod",
    "fuse",
    "gelu",
    "gelu_tanh",
    "get_num_threads",
    "grad",
    "greater",
    "greater_equal",
    "hard_sigmoid",
    "hard_swish",
    "heaviside",
    "hypot",
    "isfinite",
    "isinf",
    "isnan",
    "leaky_relu",
    "less",
    "less_equal",
    "log",
    "log10",
    "log1p",
    "log2",
    "logaddexp",
    "logaddexp2",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "logsumexp",
    "max",
    "maximum",
    "mean",
    "min",
    "minimum",
    "mish",
    "multiply",
    "negative",
    "nextafter",
    "not_equal",
    "plan",
    "plan_attention",
    "plan_quantization",
    "plan_to",
    "port",
    "positive",
    "pow",
    "power",
    "prelu",
    "prod",
    "quantize",
    "reciprocal",
    "relu",
    "remainder",
    "round",
    "rsqrt",
    "selu",
    "set_num_threads",
    "shapes",
    "shrink",
    "sigmoid",
    "sign",
    "silu",
    "sin",
    "sinh",
    "softplus",
    "softsign",
    "sqrt",
    "square",
    "squared_difference",
    "strict",
    "subtract",
    "sum",
    "sum_of_squares",
    "supports",
    "swish",
    "tan",
    "tanh",
    "thresholded_relu",
    "trunc",
    "value_and_grad",
    "verify",
    "vjp",
    "whdc",
    "where",
]
