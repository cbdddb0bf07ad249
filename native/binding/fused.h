// The Python type that fused functions inherit: a call that never enters Python when its program is
// known.
#pragma once

#include "python.h"

namespace zs {

// Fused(), with
//   learn(operands, program, captured, packed): calls with such operands (arrays' shapes and dtypes,
//     kinds of numbers) run that Program on them and on the captured arrays after them; `packed` says
//     whether the result is a tuple;
//   forget(): all of that;
//   _call(*operands, **keywords), of a subclass: does every other call.
// Adds the type to the module. Negative with an error set if that fails.
int add_fused_type(PyObject* module);

}  // namespace zs
