// The tables of what each op computes.
#include "oracle.h"

namespace zs::oracle {

namespace {

template <class T>
struct Unary {
  const char* op;
  T (*of)(T);
};
template <class T>
struct Binary {
  const char* op;
  T (*of)(T, T);
};
template <class T>
struct Relation {
  const char* op;
  bool (*of)(T, T);
};
template <class T>
struct Predicate {
  const char* op;
  bool (*of)(T);
};
// Known to be near the true value only, which is computed in more digits.
struct Near {
  const char* op;
  long double (*of)(long double);
};
struct NearPair {
  const char* op;
  long double (*of)(long double, long double);
};

// --- Integers: in 128 bits, then wrapped around --------------------------------------------------

using Wide = __int128;

template <class T>
T floor_divide(T a, T b) {
  if (b == 0) return 0;
  const Wide quotient = Wide(a) / Wide(b);
  return static_cast<T>(Wide(a) % Wide(b) != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient);
}

template <class T>
T remainder(T a, T b) {
  if (b == 0) return 0;
  const Wide rest = Wide(a) % Wide(b);
  return static_cast<T>(rest != 0 && (a < 0) != (b < 0) ? rest + Wide(b) : rest);
}

template <class T>
T shifted_left(T a, T b) {
  if (b < 0 || Wide(b) >= Wide(8 * sizeof(T))) return 0;
  return static_cast<T>(static_cast<unsigned __int128>(a) << static_cast<int>(b));
}

template <class T>
T shifted_right(T a, T b) {
  const bool over = b < 0 || Wide(b) >= Wide(8 * sizeof(T));
  return static_cast<T>(Wide(a) >> (over ? 64 : static_cast<int>(b)));
}

template <class T>
std::vector<Binary<T>> integer_pairs() {
  return {
      {"add", [](T a, T b) { return static_cast<T>(Wide(a) + Wide(b)); }},
      {"subtract", [](T a, T b) { return static_cast<T>(Wide(a) - Wide(b)); }},
      {"multiply",
       [](T a, T b) {
         return static_cast<T>(static_cast<unsigned __int128>(a) * static_cast<unsigned __int128>(b));
       }},
      {"squared_difference",
       [](T a, T b) {
         const auto difference = static_cast<unsigned __int128>(Wide(a) - Wide(b));
         return static_cast<T>(difference * difference);
       }},
      {"floor_divide", floor_divide<T>},
      {"remainder", remainder<T>},
      {"fmod", [](T a, T b) { return b == 0 ? T(0) : static_cast<T>(Wide(a) % Wide(b)); }},
      {"bitwise_and", [](T a, T b) { return static_cast<T>(a & b); }},
      {"bitwise_or", [](T a, T b) { return static_cast<T>(a | b); }},
      {"bitwise_xor", [](T a, T b) { return static_cast<T>(a ^ b); }},
      {"bitwise_left_shift", shifted_left<T>},
      {"bitwise_right_shift", shifted_right<T>},
      {"maximum", [](T a, T b) { return a > b ? a : b; }},
      {"minimum", [](T a, T b) { return a < b ? a : b; }},
      {"fmax", [](T a, T b) { return a > b ? a : b; }},
      {"fmin", [](T a, T b) { return a < b ? a : b; }},
  };
}

template <class T>
std::vector<Unary<T>> integer_ones() {
  return {
      {"negative", [](T a) { return static_cast<T>(-Wide(a)); }},
      {"positive", [](T a) { return a; }},
      {"abs", [](T a) { return static_cast<T>(a < 0 ? -Wide(a) : Wide(a)); }},
      {"sign", [](T a) { return static_cast<T>((a > 0) - (a < 0)); }},
      {"square",
       [](T a) {
         return static_cast<T>(static_cast<unsigned __int128>(a) * static_cast<unsigned __int128>(a));
       }},
      {"bitwise_invert", [](T a) { return static_cast<T>(~a); }},
  };
}

// --- Floats --------------------------------------------------------------------------------------

template <class T>
T either_nan(T a, T b, T otherwise) {
  return std::isnan(a) || std::isnan(b) ? std::numeric_limits<T>::quiet_NaN() : otherwise;
}

template <class T>
std::vector<Binary<T>> float_pairs() {
  return {
      {"add", [](T a, T b) { return a + b; }},
      {"subtract", [](T a, T b) { return a - b; }},
      {"multiply", [](T a, T b) { return a * b; }},
      {"divide", [](T a, T b) { return a / b; }},
      {"squared_difference", [](T a, T b) { return (a - b) * (a - b); }},
      {"fmod", [](T a, T b) { return std::fmod(a, b); }},
      {"copysign", [](T a, T b) { return std::copysign(a, b); }},
      {"nextafter", [](T a, T b) { return std::nextafter(a, b); }},
      // Of zeros of both signs the second.
      {"maximum", [](T a, T b) { return either_nan(a, b, a > b ? a : b); }},
      {"minimum", [](T a, T b) { return either_nan(a, b, a < b ? a : b); }},
      {"fmax", [](T a, T b) { return std::isnan(b) ? a : std::isnan(a) || !(a > b) ? b : a; }},
      {"fmin", [](T a, T b) { return std::isnan(b) ? a : std::isnan(a) || !(a < b) ? b : a; }},
  };
}

template <class T>
std::vector<Unary<T>> float_ones() {
  return {
      {"negative", [](T a) { return -a; }},
      {"positive", [](T a) { return a; }},
      {"abs", [](T a) { return std::fabs(a); }},
      {"sign", [](T a) { return std::isnan(a) ? a : static_cast<T>((a > 0) - (a < 0)); }},
      {"square", [](T a) { return a * a; }},
      {"reciprocal", [](T a) { return 1 / a; }},
      {"sqrt", [](T a) { return std::sqrt(a); }},
      {"floor", [](T a) { return std::floor(a); }},
      {"ceil", [](T a) { return std::ceil(a); }},
      {"trunc", [](T a) { return std::trunc(a); }},
      {"round", [](T a) { return std::nearbyint(a); }},
  };
}

template <class T>
std::vector<Predicate<T>> float_questions() {
  return {{"isnan", [](T a) { return std::isnan(a); }},
          {"isinf", [](T a) { return std::isinf(a); }},
          {"isfinite", [](T a) { return std::isfinite(a); }}};
}

const Near kNear[] = {
    {"exp", [](long double x) { return std::exp(x); }},
    {"expm1", [](long double x) { return std::expm1(x); }},
    {"log", [](long double x) { return std::log(x); }},
    {"log1p", [](long double x) { return std::log1p(x); }},
    {"log2", [](long double x) { return std::log2(x); }},
    {"log10", [](long double x) { return std::log10(x); }},
    {"sin", [](long double x) { return std::sin(x); }},
    {"cos", [](long double x) { return std::cos(x); }},
    {"tan", [](long double x) { return std::tan(x); }},
    {"asin", [](long double x) { return std::asin(x); }},
    {"acos", [](long double x) { return std::acos(x); }},
    {"atan", [](long double x) { return std::atan(x); }},
    {"sinh", [](long double x) { return std::sinh(x); }},
    {"cosh", [](long double x) { return std::cosh(x); }},
    {"tanh", [](long double x) { return std::tanh(x); }},
    {"asinh", [](long double x) { return std::asinh(x); }},
    {"acosh", [](long double x) { return std::acosh(x); }},
    {"atanh", [](long double x) { return std::atanh(x); }},
    {"erf", [](long double x) { return std::erf(x); }},
    {"rsqrt", [](long double x) { return 1 / std::sqrt(x); }},
    {"sigmoid", [](long double x) { return 1 / (1 + std::exp(-x)); }},
};

const NearPair kNearPairs[] = {
    {"pow", [](long double x, long double y) { return std::pow(x, y); }},
    {"atan2", [](long double x, long double y) { return std::atan2(x, y); }},
    {"hypot", [](long double x, long double y) { return std::hypot(x, y); }},
};

// --- Truth values, and what all dtypes have ------------------------------------------------------

std::vector<Binary<bool>> truth_pairs() {
  const auto either = [](bool a, bool b) { return a || b; };
  const auto both = [](bool a, bool b) { return a && b; };
  return {{"add", either},         {"maximum", either},     {"fmax", either},
          {"bitwise_or", either},  {"multiply", both},      {"minimum", both},
          {"fmin", both},          {"bitwise_and", both},
          {"bitwise_xor", [](bool a, bool b) { return a != b; }}};
}

std::vector<Unary<bool>> truth_ones() {
  const auto itself = [](bool a) { return a; };
  return {{"abs", itself}, {"floor", itself}, {"ceil", itself}, {"trunc", itself},
          {"bitwise_invert", [](bool a) { return !a; }}};
}

template <class T>
std::vector<Relation<T>> relations() {
  return {
      {"equal", [](T a, T b) { return a == b; }},
      {"not_equal", [](T a, T b) { return a != b; }},
      {"less", [](T a, T b) { return a < b; }},
      {"less_equal", [](T a, T b) { return a <= b; }},
      {"greater", [](T a, T b) { return a > b; }},
      {"greater_equal", [](T a, T b) { return a >= b; }},
      {"logical_and", [](T a, T b) { return a != T(0) && b != T(0); }},
      {"logical_or", [](T a, T b) { return a != T(0) || b != T(0); }},
      {"logical_xor", [](T a, T b) { return (a != T(0)) != (b != T(0)); }},
  };
}

template <class T>
std::vector<Predicate<T>> questions() {
  if constexpr (kFloat<T>) {
    auto all = float_questions<T>();
    all.push_back({"logical_not", [](T a) { return a == T(0); }});
    return all;
  } else {
    return {{"logical_not", [](T a) { return a == T(0); }}};
  }
}

template <class T>
std::vector<Binary<T>> pairs() {
  if constexpr (std::is_same_v<T, bool>) {
    return truth_pairs();
  } else if constexpr (kFloat<T>) {
    return float_pairs<T>();
  } else {
    return integer_pairs<T>();
  }
}

template <class T>
std::vector<Unary<T>> ones() {
  if constexpr (std::is_same_v<T, bool>) {
    return truth_ones();
  } else if constexpr (kFloat<T>) {
    return float_ones<T>();
  } else {
    return integer_ones<T>();
  }
}

template <class T>
const auto kPairs = pairs<T>();
template <class T>
const auto kOnes = ones<T>();
template <class T>
const auto kRelations = relations<T>();
template <class T>
const auto kQuestions = questions<T>();

template <class Table>
auto find(const Table& table, const char* op) -> decltype(&*std::begin(table)) {
  for (const auto& row : table) {
    if (std::strcmp(row.op, op) == 0) return &row;
  }
  return nullptr;
}

// --- Comparing -----------------------------------------------------------------------------------

template <class T>
double number(T x) {
  if constexpr (kSmall<T>) {
    return value_of(x);
  } else {
    return static_cast<double>(x);
  }
}

template <class T>
std::string told(const char* text, T value) {
  char line[64];
  std::snprintf(line, sizeof line, "%s%.17g", text, number(value));
  return line;
}

template <class T>
std::string operands(const Kernel& kernel, const void* const* in) {
  std::string line;
  for (int k = 0; k < kernel.inputs; ++k) {
    visit(kernel.in[k], [&](auto* type) {
      line += told(k ? ", " : "of ", load<std::remove_pointer_t<decltype(type)>>(in[k]));
    });
  }
  return line;
}

template <class T>
void exactly(const Kernel& kernel, const void* const* in, const void* out, T expected, std::string& wrong) {
  const T got = load<T>(out);
  const auto* a = reinterpret_cast<const unsigned char*>(&got);
  const auto* b = reinterpret_cast<const unsigned char*>(&expected);
  if (same(kernel.out, a, b, sizeof(T))) return;
  wrong = operands<T>(kernel, in) + told(" it is ", got) + told(", not ", expected);
}

template <class T>
void nearly(const Kernel& kernel, const void* const* in, const void* out, long double expected,
            std::string& wrong) {
  const T got = load<T>(out), nearest = static_cast<T>(expected);
  if (std::isnan(got) && std::isnan(nearest)) return;
  if (got == nearest && std::signbit(got) == std::signbit(nearest)) return;
  double error = std::numeric_limits<double>::infinity();
  if (std::isfinite(got) && std::isfinite(nearest)) {
    const T size = std::fabs(nearest);
    const T up = std::nextafter(size, std::numeric_limits<T>::infinity());
    const T place = std::isinf(up) ? size - std::nextafter(size, T(0)) : up - size;
    error = static_cast<double>(std::fabs(static_cast<long double>(got) - expected) / place);
  }
  if (error <= kMostUlp) return;
  wrong = operands<T>(kernel, in) + told(" it is ", got) + told(", not ", nearest) + told("; ulp: ", error);
}

// The 16-bit float nearest to x. The bits of those that are not negative ascend with their values.
template <class T>
T nearest(double x) {
  if (std::isnan(x)) return {0x7fff};
  const double target = std::fabs(rounded<T>(x));
  unsigned low = 0, high = 0x7fff;
  while (low < high) {
    const unsigned middle = (low + high) / 2;
    const double value = value_of(T{static_cast<std::uint16_t>(middle)});
    if (value < target) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return {static_cast<std::uint16_t>(low | (std::signbit(x) ? 0x8000u : 0u))};
}

// Floats to integers truncate, stop at the ends of the range, and NaN is 0.
template <class To, class From>
To converted(From x) {
  if constexpr (kSmall<From>) {
    return converted<To>(static_cast<float>(value_of(x)));
  } else if constexpr (kSmall<To>) {
    // From wider integers by way of float, as NumPy; from double at once, but for bfloat16.
    const bool at_once = std::is_same_v<From, double> && std::is_same_v<To, Half>;
    const double value = at_once ? static_cast<double>(x) : static_cast<double>(static_cast<float>(x));
    return nearest<To>(value);
  } else if constexpr (std::is_same_v<To, bool>) {
    return x != From(0);
  } else if constexpr (kFloat<From> && kInteger<To>) {
    using Limits = std::numeric_limits<To>;
    if (std::isnan(x)) return 0;
    const long double whole = std::trunc(static_cast<long double>(x));
    if (whole <= static_cast<long double>(Limits::min())) return Limits::min();
    if (whole >= static_cast<long double>(Limits::max())) return Limits::max();
    return static_cast<To>(whole);
  } else {
    return static_cast<To>(x);
  }
}

template <class From>
void check_conversion(const Kernel& kernel, const void* const* in, const void* out, std::string& wrong) {
  visit(kernel.out, [&](auto* type) {
    using To = std::remove_pointer_t<decltype(type)>;
    exactly(kernel, in, out, converted<To>(load<From>(in[0])), wrong);
  });
}

template <class T>
bool check_op(const Kernel& kernel, const void* const* in, const void* out, std::string& wrong) {
  const char* op = kernel.op;
  const T a = load<T>(in[0]);
  const T b = kernel.inputs > 1 ? load<T>(in[1]) : T();
  if (kernel.inputs == 2) {
    if (const auto* row = find(kPairs<T>, op)) {
      exactly(kernel, in, out, row->of(a, b), wrong);
      return true;
    }
    if (const auto* row = find(kRelations<T>, op)) {
      exactly(kernel, in, out, row->of(a, b), wrong);
      return true;
    }
  } else {
    if (const auto* row = find(kOnes<T>, op)) {
      exactly(kernel, in, out, row->of(a), wrong);
      return true;
    }
    if (const auto* row = find(kQuestions<T>, op)) {
      exactly(kernel, in, out, row->of(a), wrong);
      return true;
    }
  }
  if constexpr (kFloat<T>) {
    const auto* one = kernel.inputs == 1 ? find(kNear, op) : nullptr;
    const auto* pair = kernel.inputs == 2 ? find(kNearPairs, op) : nullptr;
    if (one) nearly<T>(kernel, in, out, one->of(a), wrong);
    if (pair) nearly<T>(kernel, in, out, pair->of(a, b), wrong);
    return one || pair;
  }
  return false;
}

// Computed in float and rounded once.
template <class T>
bool check_small(const Kernel& kernel, const void* const* in, const void* out, std::string& wrong) {
  const auto* row = kernel.inputs == 2 ? find(kPairs<float>, kernel.op) : nullptr;
  if (row == nullptr) return false;
  const auto value = [&](int k) { return static_cast<float>(value_of(load<T>(in[k]))); };
  exactly(kernel, in, out, nearest<T>(static_cast<double>(row->of(value(0), value(1)))), wrong);
  return true;
}

template <class T>
bool check_where(const Kernel& kernel, const void* const* in, const void* out, std::string& wrong) {
  const T* chosen = static_cast<const T*>(load<bool>(in[0]) ? in[1] : in[2]);
  exactly(kernel, in, out, load<T>(chosen), wrong);
  return true;
}

}  // namespace

bool check(const Kernel& kernel, const void* const* in, const void* out, std::string& wrong) {
  return visit(kernel.in[kernel.inputs - 1], [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    if (std::strcmp(kernel.op, "convert") == 0) {
      check_conversion<T>(kernel, in, out, wrong);
      return true;
    }
    if (std::strcmp(kernel.op, "where") == 0) return check_where<T>(kernel, in, out, wrong);
    if constexpr (kSmall<T>) {
      return check_small<T>(kernel, in, out, wrong);
    } else {
      return kernel.inputs <= 2 && check_op<T>(kernel, in, out, wrong);
    }
  });
}

}  // namespace zs::oracle
