// Stores that go past the caches, for outputs that these would not keep. A cached store first reads
// the line that it writes: of two operands and an output that is a quarter of the traffic.
//
// Compiled per instruction set, like all that includes it.
#pragma once

#include <cstddef>
#include <cstdint>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "sizes.h"

namespace zs::ZS_ISA {
namespace {

#if defined(__x86_64__)
constexpr bool kCanStream = true;
#else
constexpr bool kCanStream = false;
#endif

// Copies whole lines; both addresses are a line's.
[[maybe_unused]] void stream_lines(char* to, const char* from, std::int64_t bytes) {
#if defined(__AVX512F__)
  for (std::int64_t i = 0; i < bytes; i += 64) {
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to + i), _mm512_load_si512(from + i));
  }
#elif defined(__AVX__)
  for (std::int64_t i = 0; i < bytes; i += 32) {
    _mm256_stream_si256(reinterpret_cast<__m256i*>(to + i),
                        _mm256_load_si256(reinterpret_cast<const __m256i*>(from + i)));
  }
#elif defined(__x86_64__)
  for (std::int64_t i = 0; i < bytes; i += 16) {
    _mm_stream_si128(reinterpret_cast<__m128i*>(to + i),
                     _mm_load_si128(reinterpret_cast<const __m128i*>(from + i)));
  }
#else
  for (std::int64_t i = 0; i < bytes; ++i) to[i] = from[i];
#endif
}

// Makes stores past the caches visible to others before any later store.
[[maybe_unused]] void fence() {
#if defined(__x86_64__)
  _mm_sfence();
#endif
}

// An output on its way: contiguous bytes are gathered to whole lines. To store one part of a line past the
// caches and another through them would cost more than all this saves.
class Stream {
 public:
  // Sets the place of the next bytes.
  void go_to(char* to) {
    if (to == line_ + have_) return;
    flush();
    const auto skipped = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(to) % kLine);
    line_ = to - skipped;
    begin_ = have_ = skipped;
  }
  // Bytes that may be put at the end at once. Always the same: what computes them likes whole blocks.
  static constexpr std::int64_t kRoom = 2048;
  char* end() { return bytes_ + have_; }
  // So many bytes were put at the end.
  void add(std::int64_t bytes) {
    have_ += bytes;
    if (have_ >= kRoom) flush_lines();
  }
  // All is in memory, and is seen by others before anything that is stored later.
  void finish() {
    flush();
    fence();
  }

 private:
  // All lines that are whole; the rest of the last one waits for its end.
  void flush_lines() {
    const std::int64_t whole = have_ / kLine * kLine;
    if (whole == 0) return;
    std::int64_t at = begin_;
    if (begin_ != 0) at = copy(at, kLine);  // another's bytes lie before
    stream_lines(line_ + at, bytes_ + at, whole - at);
    have_ -= whole;
    if (have_) __builtin_memcpy(bytes_, bytes_ + whole, static_cast<std::size_t>(have_));
    line_ += whole;
    begin_ = 0;
  }

  void flush() {
    flush_lines();
    if (begin_ < have_) copy(begin_, have_);
    line_ += have_;
    begin_ = have_ = 0;
  }

  std::int64_t copy(std::int64_t from, std::int64_t to) {
    __builtin_memcpy(line_ + from, bytes_ + from, static_cast<std::size_t>(to - from));
    return to;
  }

  // Few enough to stay where they were just written, and each room worth a kernel's call.
  alignas(kLine) char bytes_[2 * kRoom];
  char* line_ = nullptr;    // where bytes_ belong
  std::int64_t begin_ = 0;  // of this stream's bytes
  std::int64_t have_ = 0;   // their end
};

}  // namespace
}  // namespace zs::ZS_ISA
