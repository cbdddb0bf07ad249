#include "chain.h"

#include "vmath/base.h"

#if defined(__AVX512BW__)
#include <immintrin.h>
#endif

#if defined(__GNUC__) && !defined(__clang__)
// Vectors stay inside this file: how they would be passed to other code does not matter.
#pragma GCC diagnostic ignored "-Wpsabi"
#endif

namespace zs::ZS_ISA {
namespace {

// A vector register, and how many of them are on their way: a link takes some ten cycles for them, and
// what the next one is has been looked up by then.
#if defined(__AVX512F__)
constexpr int kBytes = 64;
constexpr int kMany = 16;
#elif defined(__AVX__)
constexpr int kBytes = 32;
constexpr int kMany = 8;
#else
constexpr int kBytes = 16;
constexpr int kMany = 8;
#endif

template <class T>
struct VectorOf {
  typedef T Type __attribute__((vector_size(kBytes)));
};
template <class T>
using Vector = typename VectorOf<T>::Type;
template <class T>
constexpr int kLanes = kBytes / static_cast<int>(sizeof(T));

// The links compute as the kernels of these names do (arithmetic.h, bits.h, rounding.h): `a` is the
// value, `b` the other operand, both vectors of T.
template <class V>
inline V larger_or_nan(V a, V b) {
  const V larger = a > b ? a : b;
  return a != a ? a : larger;
}
template <class V>
inline V smaller_or_nan(V a, V b) {
  const V smaller = a < b ? a : b;
  return a != a ? a : smaller;
}

#define ZS_LINK(name, result)          \
  struct name {                        \
    template <class T, class V>        \
    static ZS_ALWAYS V of(V a, V b) {  \
      return result;                   \
    }                                  \
  };
ZS_LINK(AddTo, a + b)
ZS_LINK(SubtractIt, a - b)
ZS_LINK(SubtractFrom, b - a)
ZS_LINK(MultiplyBy, a * b)
ZS_LINK(DivideBy, a / b)
ZS_LINK(DivideInto, b / a)
ZS_LINK(MaximumWith, larger_or_nan(a, b))
ZS_LINK(MaximumOf, larger_or_nan(b, a))
ZS_LINK(MinimumWith, smaller_or_nan(a, b))
ZS_LINK(MinimumOf, smaller_or_nan(b, a))
ZS_LINK(DifferenceSquared, (a - b) * (a - b))
ZS_LINK(AndWith, a & b)
ZS_LINK(OrWith, a | b)
ZS_LINK(XorWith, a ^ b)
#undef ZS_LINK

// All lanes one element. (Less zero, which changes nothing, not the sign of a zero either.)
template <class T>
ZS_ALWAYS Vector<T> spread(const char* at) {
  T one;
  __builtin_memcpy(&one, at, sizeof one);
  return one - Vector<T>{};
}

// Rows of whole vectors.
template <class T>
struct Whole {
  static constexpr int kCount = kMany;
  ZS_ALWAYS Vector<T> load(const char* at) const {
    Vector<T> loaded;
    __builtin_memcpy(&loaded, at, sizeof loaded);
    return loaded;
  }
  ZS_ALWAYS void store(char* at, Vector<T> value) const {
    __builtin_memcpy(at, &value, sizeof value);
  }
};

// Fewer vectors of it.
template <class T, int kVectors>
struct Few : Whole<T> {
  static constexpr int kCount = kVectors;
};

// The end of a row: less than a vector; the other lanes are unused.
template <class T>
struct Part {
  static constexpr int kCount = 1;
  std::size_t bytes;
#if defined(__AVX512BW__)
  ZS_ALWAYS __mmask64 mask() const { return (__mmask64{1} << bytes) - 1; }
  ZS_ALWAYS Vector<T> load(const char* at) const {
    return (Vector<T>)_mm512_maskz_loadu_epi8(mask(), at);
  }
  ZS_ALWAYS void store(char* at, Vector<T> value) const {
    _mm512_mask_storeu_epi8(at, mask(), (__m512i)value);
  }
#else
  Vector<T> load(const char* at) const {
    Vector<T> loaded{};
    __builtin_memcpy(&loaded, at, bytes);
    return loaded;
  }
  void store(char* at, Vector<T> value) const { __builtin_memcpy(at, &value, bytes); }
#endif
};

template <class T, class Access>
class Links {
 public:
  Links(const Access& access, int64_t done)
      : access_(access), offset_(done * static_cast<int64_t>(sizeof(T))) {}

  void run(const ChainLink* links, int count) {
    load(links[0]);
    for (int i = 1; i + 1 < count; ++i) take(links[i]);
    store(links[count - 1]);
  }

 private:
  using V = Vector<T>;
  static constexpr int kCount = Access::kCount;

  ZS_ALWAYS char* row(const ChainLink& link) const { return static_cast<char*>(link.at) + offset_; }

  ZS_ALWAYS void load(const ChainLink& link) {
    const bool one = link.other == Other::One;
    const V all = one ? spread<T>(static_cast<const char*>(link.at)) : V{};
#pragma GCC unroll 16
    for (int i = 0; i < kCount; ++i) value_[i] = one ? all : access_.load(row(link) + i * kBytes);
  }

  ZS_ALWAYS void store(const ChainLink& link) {
#pragma GCC unroll 16
    for (int i = 0; i < kCount; ++i) access_.store(row(link) + i * kBytes, value_[i]);
  }

  template <class F>
  ZS_ALWAYS void with_row(const ChainLink& link) {
#pragma GCC unroll 16
    for (int i = 0; i < kCount; ++i) {
      value_[i] = F::template of<T>(value_[i], access_.load(row(link) + i * kBytes));
    }
  }
  template <class F>
  ZS_ALWAYS void with_one(const ChainLink& link) {
    const V one = spread<T>(static_cast<const char*>(link.at));
#pragma GCC unroll 16
    for (int i = 0; i < kCount; ++i) value_[i] = F::template of<T>(value_[i], one);
  }
  template <class F>
  ZS_ALWAYS void with_self() {
#pragma GCC unroll 16
    for (int i = 0; i < kCount; ++i) value_[i] = F::template of<T>(value_[i], value_[i]);
  }
  template <class Function>
  ZS_ALWAYS void each(const Function& function) {
#pragma GCC unroll 16
    for (int i = 0; i < kCount; ++i) value_[i] = function(value_[i]);
  }

  static constexpr int key(Link link, Other other) {
    return static_cast<int>(link) * 3 + static_cast<int>(other);
  }

#define ZS_CASES(link, F)                                          \
  case key(Link::link, Other::Each): return with_row<F>(one);       \
  case key(Link::link, Other::One): return with_one<F>(one);       \
  case key(Link::link, Other::Self): return with_self<F>();

  ZS_ALWAYS void take(const ChainLink& one) {
    const int wanted = key(one.link, one.other);
    switch (wanted) {
      ZS_CASES(Add, AddTo)
      ZS_CASES(Subtract, SubtractIt)
      ZS_CASES(SubtractFrom, SubtractFrom)
      ZS_CASES(Multiply, MultiplyBy)
      ZS_CASES(SquaredDifference, DifferenceSquared)
      case key(Link::Store, Other::Each): return store(one);
      default: break;
    }
    if constexpr (kFloat<T>) {
      take_float(one, wanted);
    } else {
      take_bits(one, wanted);
    }
  }

  ZS_ALWAYS void take_float(const ChainLink& one, int wanted) {
    using S = Vector<Signed<T>>;
    switch (wanted) {
      ZS_CASES(Divide, DivideBy)
      ZS_CASES(DivideInto, DivideInto)
      ZS_CASES(Maximum, MaximumWith)
      ZS_CASES(MaximumOf, MaximumOf)
      ZS_CASES(Minimum, MinimumWith)
      ZS_CASES(MinimumOf, MinimumOf)
      case key(Link::Negative, Other::Self): return each([](V x) { return -x; });
      case key(Link::Reciprocal, Other::Self): return each([](V x) { return T(1) / x; });
      case key(Link::Relu, Other::Self): return each([](V x) { return x <= T(0) ? V{} : x; });
      case key(Link::Abs, Other::Self):
        return each([](V x) { return (V)((S)x & static_cast<Signed<T>>(kHighest<Signed<T>>)); });
      default: break;
    }
  }

  ZS_ALWAYS void take_bits(const ChainLink& one, int wanted) {
    using S = Vector<Signed<T>>;
    switch (wanted) {
      ZS_CASES(And, AndWith)
      ZS_CASES(Or, OrWith)
      ZS_CASES(Xor, XorWith)
      case key(Link::Negative, Other::Self): return each([](V x) { return -x; });
      default: break;
    }
    // Shifts by one count, which may be over-wide.
    T count;
    __builtin_memcpy(&count, one.at, sizeof count);
    const bool over = count >= kBits<T>;
    const T inside = over ? T(kBits<T> - 1) : count;
    switch (wanted) {
      case key(Link::ShiftLeft, Other::One):
        return each([=](V x) { return over ? V{} : x << inside; });
      case key(Link::ShiftRight, Other::One):
        return each([=](V x) { return over ? V{} : x >> inside; });
      case key(Link::ShiftRightSigned, Other::One):
        return each([=](V x) { return (V)((S)x >> static_cast<Signed<T>>(inside)); });
      default: break;
    }
  }
#undef ZS_CASES

  const Access& access_;
  const int64_t offset_;
  V value_[kCount];
};

// As many turns of so many vectors as there are. Returns the elements done.
template <class T, class Access>
int64_t run_turns(const ChainLink* links, int count, int64_t done, int64_t n) {
  constexpr int64_t kStep = int64_t{Access::kCount} * kLanes<T>;
  const Access access;
  for (; done + kStep <= n; done += kStep) Links<T, Access>(access, done).run(links, count);
  return done;
}

template <class T>
void run_chain(const ChainLink* links, int count, int64_t n) {
  int64_t done = run_turns<T, Whole<T>>(links, count, 0, n);
  done = run_turns<T, Few<T, kMany / 4>>(links, count, done, n);
  done = run_turns<T, Few<T, 1>>(links, count, done, n);
  if (done == n) return;
  const Part<T> part{static_cast<std::size_t>(n - done) * sizeof(T)};
  Links<T, Part<T>>(part, done).run(links, count);
}

}  // namespace

void chain_floats(const ChainLink* links, int count, int64_t n) {
  run_chain<float>(links, count, n);
}
void chain_doubles(const ChainLink* links, int count, int64_t n) {
  run_chain<double>(links, count, n);
}
void chain_words(const ChainLink* links, int count, int64_t n) {
  run_chain<uint32_t>(links, count, n);
}
void chain_longs(const ChainLink* links, int count, int64_t n) {
  run_chain<uint64_t>(links, count, n);
}

}  // namespace zs::ZS_ISA
