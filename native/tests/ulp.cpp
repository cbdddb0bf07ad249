// The elementary functions of native/vmath.h for one instruction set, and a judge of any
// results. native/tests/vmath_library.py builds it as a shared library, and as a program where the
// processor is emulated.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "../vmath.h"

namespace {

namespace math = zs::ZS_ISA::math;

// The exact functions of a measurement: in double for float, in long double for double.
template <class W>
struct Exact {
  static W sigmoid(W x) { return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x)); }
  static W softplus(W x) { return (x > 0 ? x : W(0)) + std::log1p(std::exp(-std::fabs(x))); }
  static W mish(W x) {
    const W low = std::numeric_limits<W>::lowest();
    return x < low ? W(-0.0) : x * std::tanh(softplus(x));
  }
  static W gelu(W x) {
    const W low = std::numeric_limits<W>::lowest();
    return x < low ? W(-0.0) : x / 2 * std::erfc(-x / std::sqrt(W(2)));
  }
  static W rsqrt(W x) { return 1 / std::sqrt(x); }
  static W logaddexp(W x, W y) {
    if (x == y) return x + std::log(W(2));
    return (x > y ? x : y) + std::log1p(std::exp(-std::fabs(x - y)));
  }
};

template <class T>
using Unary = void (*)(const T*, T*, std::int64_t);
template <class T>
using Binary = void (*)(const T*, const T*, T*, std::int64_t);

// One function: its rows and its exact values. Those of one argument have no binary ones, and back.
struct Function {
  const char* name;
  Unary<float> unary_float;
  Unary<double> unary_double;
  double (*exact_float)(double);
  long double (*exact_double)(long double);
  Binary<float> binary_float = nullptr;
  Binary<double> binary_double = nullptr;
  double (*exact_float_2)(double, double) = nullptr;
  long double (*exact_double_2)(long double, long double) = nullptr;
};

#define STD(name)                                            \
  {#name, math::name##_row<float>, math::name##_row<double>, \
   [](double x) -> double { return std::name(x); },          \
   [](long double x) -> long double { return std::name(x); }}
#define OWN(name)                                                                 \
  {#name, math::name##_row<float>, math::name##_row<double>, Exact<double>::name, \
   Exact<long double>::name}
#define NAMED_2(name, exact_f, exact_d)                                                            \
  {#name,   nullptr, nullptr, nullptr, nullptr, math::name##_row<float>, math::name##_row<double>, \
   exact_f, exact_d}
#define STD_2(name)                                                       \
  NAMED_2(                                                                \
      name, [](double x, double y) -> double { return std::name(x, y); }, \
      [](long double x, long double y) -> long double { return std::name(x, y); })

const Function kFunctions[] = {
    STD(exp),
    STD(exp2),
    STD(expm1),
    STD(log),
    STD(log2),
    STD(log10),
    STD(log1p),
    STD(sin),
    STD(cos),
    STD(tan),
    STD(sinh),
    STD(cosh),
    STD(tanh),
    STD(asin),
    STD(acos),
    STD(atan),
    STD(asinh),
    STD(acosh),
    STD(atanh),
    STD(erf),
    STD(sqrt),
    STD(floor),
    STD(ceil),
    STD(trunc),
    OWN(rsqrt),
    OWN(mish),
    OWN(gelu),
    OWN(sigmoid),
    OWN(softplus),
    STD_2(pow),
    STD_2(atan2),
    {"round_even", math::round_even_row<float>, math::round_even_row<double>,
     [](double x) -> double { return std::nearbyint(x); },
     [](long double x) -> long double { return std::nearbyint(x); }},
    NAMED_2(logaddexp, Exact<double>::logaddexp, Exact<long double>::logaddexp),
};

const Function* find(const char* name) {
  for (const Function& f : kFunctions) {
    if (std::strcmp(f.name, name) == 0) return &f;
  }
  return nullptr;
}

// How far `got` is from `exact`, in units of the last place of exact's neighbours. Infinite where
// one is NaN and the other is not, where a zero has the wrong sign, or one is infinite without
// reason.
template <class T, class W>
double distance(T got, W exact) {
  const double wrong = std::numeric_limits<double>::infinity();
  if (std::isnan(got) || std::isnan(exact)) {
    return std::isnan(got) && std::isnan(exact) ? 0 : wrong;
  }
  if (got == 0 && std::signbit(got) != std::signbit(exact)) return wrong;
  if (std::isinf(exact)) return got == exact ? 0 : wrong;
  using L = std::numeric_limits<T>;
  // An infinity stands for the first number that is out of range: it may be the next one.
  const W value = std::isinf(got) ? std::copysign(std::ldexp(W(1), L::max_exponent), got) : W(got);
  if (std::isinf(got) && std::fabs(exact) > std::fabs(value)) return value * exact > 0 ? 0 : wrong;
  const int exponent = exact == 0 ? L::min_exponent : std::ilogb(exact);
  const int lowest = L::min_exponent - 1;
  const W unit = std::ldexp(W(1), (exponent < lowest ? lowest : exponent) - (L::digits - 1));
  return static_cast<double>(std::fabs(value - exact) / unit);
}

// Logarithms of sums may come near 0, where no digit is left of two arguments of 1: the unit is
// that of the largest of result and arguments (and a zero's sign means nothing).
template <class W>
double lessened(double d, W exact, W x, W y) {
  const W most = std::fmax(std::fabs(x), std::fabs(y));
  const bool less = std::isfinite(most) && std::fabs(exact) < most;
  return less ? d * static_cast<double>(std::fabs(exact) / most) : d;
}

template <class T, class W>
double judge_2(const Function& f, W (*exact)(W, W), const T* a, const T* b, const T* got,
               std::int64_t n, std::int64_t* at) {
  double worst = -1;
  for (std::int64_t i = 0; i < n; ++i) {
    const W right = exact(a[i], b[i]);
    const bool sums = f.binary_float == math::logaddexp_row<float>;
    const T value = sums && got[i] == 0 ? static_cast<T>(std::copysign(W(0), right)) : got[i];
    double d = distance(value, right);
    if (sums) d = lessened<W>(d, right, a[i], b[i]);
    if (d > worst) worst = d, *at = i;
  }
  return worst;
}

template <class T, class W>
double judge_1(W (*exact)(W), const T* a, const T* got, std::int64_t n, std::int64_t* at) {
  double worst = -1;
  for (std::int64_t i = 0; i < n; ++i) {
    const double d = distance(got[i], exact(a[i]));
    if (d > worst) worst = d, *at = i;
  }
  return worst;
}

}  // namespace

extern "C" {

// The functions' names and their numbers of arguments, ended by null.
const char* ulp_name(int index) {
  constexpr int count = sizeof kFunctions / sizeof *kFunctions;
  return index < count ? kFunctions[index].name : nullptr;
}
int ulp_inputs(const char* name) { return find(name)->binary_float ? 2 : 1; }

void ulp_compute_float(const char* name, const float* a, const float* b, float* out,
                       std::int64_t n) {
  const Function& f = *find(name);
  f.binary_float ? f.binary_float(a, b, out, n) : f.unary_float(a, out, n);
}
void ulp_compute_double(const char* name, const double* a, const double* b, double* out,
                        std::int64_t n) {
  const Function& f = *find(name);
  f.binary_double ? f.binary_double(a, b, out, n) : f.unary_double(a, out, n);
}

// The largest error of the results `got`, and the index that has it.
double ulp_judge_float(const char* name, const float* a, const float* b, const float* got,
                       std::int64_t n, std::int64_t* at) {
  const Function& f = *find(name);
  return f.binary_float ? judge_2(f, f.exact_float_2, a, b, got, n, at)
                        : judge_1(f.exact_float, a, got, n, at);
}
double ulp_judge_double(const char* name, const double* a, const double* b, const double* got,
                        std::int64_t n, std::int64_t* at) {
  const Function& f = *find(name);
  return f.binary_double ? judge_2(f, f.exact_double_2, a, b, got, n, at)
                         : judge_1(f.exact_double, a, got, n, at);
}

// The same row again and again, to be timed.
void ulp_repeat_float(const char* name, const float* a, const float* b, float* out, std::int64_t n,
                      int repeats) {
  for (int i = 0; i < repeats; ++i) ulp_compute_float(name, a, b, out, n);
}
void ulp_repeat_double(const char* name, const double* a, const double* b, double* out,
                       std::int64_t n, int repeats) {
  for (int i = 0; i < repeats; ++i) ulp_compute_double(name, a, b, out, n);
}
}

namespace {

// Arguments come from standard input, all first ones before all second ones; results go out.
template <class T>
int compute(const char* name, void (*function)(const char*, const T*, const T*, T*, std::int64_t),
            std::int64_t n) {
  const auto size = static_cast<std::size_t>(n);
  T* const all = new T[3 * size];
  if (std::fread(all, sizeof(T), 2 * size, stdin) != 2 * size) return 1;
  function(name, all, all + n, all + 2 * n, n);
  const bool written = std::fwrite(all + 2 * n, sizeof(T), size, stdout) == size;
  delete[] all;
  return written ? 0 : 1;
}

}  // namespace

// ulp NAME float|double COUNT
int main(int count, char** words) {
  if (count != 4 || find(words[1]) == nullptr) return 2;
  const std::int64_t n = std::atoll(words[3]);
  return std::strcmp(words[2], "float") == 0 ? compute(words[1], ulp_compute_float, n)
                                             : compute(words[1], ulp_compute_double, n);
}
