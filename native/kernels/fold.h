// Folds: many values to one.
#pragma once

#include "kernels.h"
#include "types.h"

namespace zs::ZS_ISA {

struct Folders {
  Folder row[kFolds][kDTypes];
};

// In fold.cpp.
extern const Folders folders;

}  // namespace zs::ZS_ISA
