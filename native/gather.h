// Gathering a block of an operand into a buffer, element after element, and scattering one into an
// output. Compiled for each instruction set; the vectors are the compiler's own, of any processor.
#pragma once

#include <cstdint>

#include "nest.h"
#include "stage.h"
#include "transpose.h"

namespace zs::ZS_ISA {
namespace {

// A block of an operand: axes innermost first, those of one element dropped, neighbours merged.
struct Box {
  std::int64_t size;  // bytes of an element
  int axes;
  std::int64_t extent[kMaxAxes];
  std::int64_t stride[kMaxAxes];  // bytes, in memory
  std::int64_t pitch[kMaxAxes];   // elements, in the buffer
  bool dense;                     // the axes are in the buffer's order
};

void add_axis(Box& box, std::int64_t extent, std::int64_t stride, std::int64_t pitch) {
  if (extent == 1) return;
  const int last = box.axes - 1;
  if (last >= 0 && stride == box.stride[last] * box.extent[last]) {
    box.extent[last] *= extent;
    return;
  }
  box.extent[box.axes] = extent;
  box.stride[box.axes] = stride;
  box.pitch[box.axes++] = pitch;
}

// The axis along which memory is contiguous is walked right after the buffer's innermost, so that
// the two make planes that can be transposed.
void put_contiguous_second(Box& box) {
  box.dense = true;
  if (box.axes < 3 || box.stride[0] == box.size || box.stride[0] == 0) return;
  for (int i = 2; i < box.axes; ++i) {
    if (box.stride[i] != box.size) continue;
    const std::int64_t extent = box.extent[i], pitch = box.pitch[i];
    for (int j = i; j > 1; --j) {
      box.extent[j] = box.extent[j - 1];
      box.stride[j] = box.stride[j - 1];
      box.pitch[j] = box.pitch[j - 1];
    }
    box.extent[1] = extent;
    box.stride[1] = box.size;
    box.pitch[1] = pitch;
    box.dense = false;
    return;
  }
}

// Operand k in blocks of `chunk` along axis `inner` and `rows` along axis `across`.
void make_box(Box& box, const Nest& nest, int k, std::int64_t chunk, std::int64_t rows) {
  box.size = nest.size[k];
  box.axes = 0;
  std::int64_t pitch = 1;
  if (nest.access[k] != Access::Splat) {
    for (int i = 0; i < nest.inner; ++i) {
      add_axis(box, nest.axis[i].extent, nest.axis[i].stride[k], pitch);
      pitch *= nest.axis[i].extent;
    }
    add_axis(box, chunk, nest.axis[nest.inner].stride[k], pitch);
    pitch *= chunk;
  }
  if (nest.across >= 0) add_axis(box, rows, nest.axis[nest.across].stride[k], pitch);
  put_contiguous_second(box);
}

template <class T>
T load(const char* from) {
  T value;
  __builtin_memcpy(&value, from, sizeof(T));
  return value;
}

template <class T>
void store(char* to, T value) {
  __builtin_memcpy(to, &value, sizeof(T));
}

// Few bytes, without a call: the two ends, which may share bytes.
void copy(char* to, const char* from, std::int64_t bytes) {
  if (bytes > 64) {
    __builtin_memcpy(to, from, static_cast<std::size_t>(bytes));
  } else if (bytes >= 32) {
    const auto a = load<Bytes<32>>(from), b = load<Bytes<32>>(from + bytes - 32);
    store(to, a);
    store(to + bytes - 32, b);
  } else if (bytes >= 16) {
    const auto a = load<Bytes<16>>(from), b = load<Bytes<16>>(from + bytes - 16);
    store(to, a);
    store(to + bytes - 16, b);
  } else if (bytes >= 8) {
    const auto a = load<std::uint64_t>(from), b = load<std::uint64_t>(from + bytes - 8);
    store(to, a);
    store(to + bytes - 8, b);
  } else {
    for (std::int64_t i = 0; i < bytes; ++i) to[i] = from[i];
  }
}

template <class T>
void fill(T* to, T value, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) to[i] = value;
}

// Every Step-th element: the compiler knows how to shuffle where the step is a constant.
template <class T, int Step>
void take_steps(T* __restrict to, const char* __restrict from, std::int64_t n) {
  constexpr std::int64_t kBytes = Step * static_cast<std::int64_t>(sizeof(T));
  for (std::int64_t i = 0; i < n; ++i) to[i] = load<T>(from + i * kBytes);
}

template <class T, int Step>
void put_steps(char* __restrict to, const T* __restrict from, std::int64_t n) {
  constexpr std::int64_t kBytes = Step * static_cast<std::int64_t>(sizeof(T));
  for (std::int64_t i = 0; i < n; ++i) store(to + i * kBytes, from[i]);
}

template <class T>
void gather_line(T* __restrict to, const char* __restrict from, std::int64_t stride,
                 std::int64_t n) {
  constexpr std::int64_t kSize = sizeof(T);
  if (stride == kSize) return copy(reinterpret_cast<char*>(to), from, n * kSize);
  if (stride == 0) return fill(to, load<T>(from), n);
  if (stride == -kSize) return take_steps<T, -1>(to, from, n);
  if (stride == 2 * kSize) return take_steps<T, 2>(to, from, n);
  if (stride == 3 * kSize) return take_steps<T, 3>(to, from, n);
  if (stride == 4 * kSize) return take_steps<T, 4>(to, from, n);
  for (std::int64_t i = 0; i < n; ++i) to[i] = load<T>(from + i * stride);
}

template <class T>
void scatter_line(char* __restrict to, const T* __restrict from, std::int64_t stride,
                  std::int64_t n) {
  constexpr std::int64_t kSize = sizeof(T);
  if (stride == kSize) return copy(to, reinterpret_cast<const char*>(from), n * kSize);
  if (stride == -kSize) return put_steps<T, -1>(to, from, n);
  if (stride == 2 * kSize) return put_steps<T, 2>(to, from, n);
  for (std::int64_t i = 0; i < n; ++i) store(to + i * stride, from[i]);
}

// Each element of a line N times.
template <class T, int N>
void repeat_each(T* __restrict to, const char* __restrict from, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    const T value = load<T>(from + i * static_cast<std::int64_t>(sizeof(T)));
    for (int j = 0; j < N; ++j) to[i * N + j] = value;
  }
}

// Each element of a line n times: short runs as whole vectors that the next run overwrites in part.
template <class T>
void gather_runs(T* __restrict to, const char* __restrict from, std::int64_t stride, std::int64_t n,
                 std::int64_t lines) {
  constexpr int kLanes = 32 / sizeof(T);
  if (stride == static_cast<std::int64_t>(sizeof(T))) {
    if (n == 2) return repeat_each<T, 2>(to, from, lines);
    if (n == 3) return repeat_each<T, 3>(to, from, lines);
    if (n == 4) return repeat_each<T, 4>(to, from, lines);
  }
  for (std::int64_t j = 0; j < lines; ++j, to += n, from += stride) {
    const T value = load<T>(from);
    if (n <= kLanes) {
      for (int i = 0; i < kLanes; ++i) to[i] = value;
    } else {
      fill(to, value, n);
    }
  }
}

// N lines element by element in turn.
template <class T, int N>
void interleave(T* to, const char* from, std::int64_t stride, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    for (int j = 0; j < N; ++j) {
      to[i * N + j] = load<T>(from + j * stride + i * static_cast<std::int64_t>(sizeof(T)));
    }
  }
}

// The two innermost axes.
template <class T>
void gather_plane(const Box& box, const char* from, T* to) {
  constexpr std::int64_t kSize = sizeof(T);
  const std::int64_t n = box.extent[0], lines = box.extent[1], pitch = box.pitch[1];
  const std::int64_t along = box.stride[0], over = box.stride[1];
  if (along == 0 && pitch == n) return gather_runs(to, from, over, n, lines);
  if (over == kSize && along != kSize) {
    if (pitch == n && n == 2) return interleave<T, 2>(to, from, along, lines);
    if (pitch == n && n == 3) return interleave<T, 3>(to, from, along, lines);
    if (pitch == n && n == 4) return interleave<T, 4>(to, from, along, lines);
    if (n >= kEdge<T> && lines >= kEdge<T>) {
      return transpose<T, true>(from, along, reinterpret_cast<char*>(to), pitch * kSize, n, lines);
    }
    if (n < lines) {
      for (std::int64_t i = 0; i < n; ++i) {
        for (std::int64_t j = 0; j < lines; ++j) to[j * pitch + i] = load<T>(from + j * kSize);
        from += along;
      }
      return;
    }
  }
  for (std::int64_t j = 0; j < lines; ++j) gather_line(to + j * pitch, from + j * over, along, n);
}

template <class T>
void scatter_plane(const Box& box, char* to, const T* from) {
  constexpr std::int64_t kSize = sizeof(T);
  const std::int64_t n = box.extent[0], lines = box.extent[1], pitch = box.pitch[1];
  const std::int64_t along = box.stride[0], over = box.stride[1];
  if (over == kSize && along != kSize && n >= kEdge<T> && lines >= kEdge<T>) {
    return transpose<T, false>(reinterpret_cast<const char*>(from), pitch * kSize, to, along, lines,
                               n);
  }
  for (std::int64_t j = 0; j < lines; ++j) scatter_line(to + j * over, from + j * pitch, along, n);
}

// Axes 0..top of a box.
template <class T>
void gather_axes(const Box& box, int top, const char* from, T* to) {
  if (top < 0) {
    *to = load<T>(from);
  } else if (top > 0 && box.stride[top] == 0 && box.dense) {
    // Once, and then copies of it.
    gather_axes(box, top - 1, from, to);
    const std::int64_t all = box.pitch[top] * box.extent[top];
    for (std::int64_t done = box.pitch[top]; done < all;) {
      const std::int64_t more = done < all - done ? done : all - done;
      copy(reinterpret_cast<char*>(to + done), reinterpret_cast<const char*>(to),
           more * static_cast<std::int64_t>(sizeof(T)));
      done += more;
    }
  } else if (top == 0) {
    gather_line(to, from, box.stride[0], box.extent[0]);
  } else if (top == 1) {
    gather_plane(box, from, to);
  } else {
    for (std::int64_t i = 0; i < box.extent[top]; ++i) {
      gather_axes(box, top - 1, from + i * box.stride[top], to + i * box.pitch[top]);
    }
  }
}

template <class T>
void scatter_axes(const Box& box, int top, char* to, const T* from) {
  if (top < 0) {
    store(to, *from);
  } else if (top == 0) {
    scatter_line(to, from, box.stride[0], box.extent[0]);
  } else if (top == 1) {
    scatter_plane(box, to, from);
  } else {
    for (std::int64_t i = 0; i < box.extent[top]; ++i) {
      scatter_axes(box, top - 1, to + i * box.stride[top], from + i * box.pitch[top]);
    }
  }
}

// `to` is aligned, and kSlack longer than the box.
void gather(const Box& box, const char* from, char* to) {
  const int top = box.axes - 1;
  switch (box.size) {
    case 1:
      return gather_axes(box, top, from, reinterpret_cast<std::uint8_t*>(to));
    case 2:
      return gather_axes(box, top, from, reinterpret_cast<std::uint16_t*>(to));
    case 4:
      return gather_axes(box, top, from, reinterpret_cast<std::uint32_t*>(to));
    default:
      return gather_axes(box, top, from, reinterpret_cast<std::uint64_t*>(to));
  }
}

void scatter(const Box& box, char* to, const char* from) {
  const int top = box.axes - 1;
  switch (box.size) {
    case 1:
      return scatter_axes(box, top, to, reinterpret_cast<const std::uint8_t*>(from));
    case 2:
      return scatter_axes(box, top, to, reinterpret_cast<const std::uint16_t*>(from));
    case 4:
      return scatter_axes(box, top, to, reinterpret_cast<const std::uint32_t*>(from));
    default:
      return scatter_axes(box, top, to, reinterpret_cast<const std::uint64_t*>(from));
  }
}

}  // namespace
}  // namespace zs::ZS_ISA
