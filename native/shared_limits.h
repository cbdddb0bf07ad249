// Made by docs/generate.py from src/zerostride/compute/limits.py, which explains them.
#pragma once

namespace zs::limits {

constexpr int kMostOperands = 32;
constexpr int kMostThreads = 4096;
constexpr int kMostBlock = 1024;
constexpr int kLeastBlock = 256;
constexpr int kBlockBytes = 24576;
constexpr int kQuickDividends = 100;
constexpr int kQuickDivisors = 24;
constexpr int kQuickWideDividends = 900;
constexpr int kQuickWideDivisors = 100;

}  // namespace zs::limits
