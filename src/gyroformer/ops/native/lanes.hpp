// Blocks of LANES tokens with their coordinates transposed, so that every inner loop runs over tokens.
#pragma once

#include <cstdint>
#include <cstring>
#include <new>
#include <vector>

#include "scalar.hpp"

namespace {

// Memory that begins where a cache line does: wide loads that straddle two lines take twice as long.
template <class T>
struct Aligned {
  using value_type = T;
  static constexpr std::align_val_t LINE{64};
  Aligned() = default;
  template <class Other> Aligned(const Aligned<Other> &) {}
  T *allocate(size_t count) { return static_cast<T *>(::operator new(count * sizeof(T), LINE)); }
  void deallocate(T *at, size_t) { ::operator delete(at, LINE); }
  bool operator==(const Aligned &) const { return true; }
  bool operator!=(const Aligned &) const { return false; }
};

using Block = std::vector<float, Aligned<float>>;  // [coordinate][LANES]

typedef float Eight __attribute__((vector_size(32)));
typedef int32_t EightPlaces __attribute__((vector_size(32)));

#if defined(__clang__)
#define SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define SHUFFLE(a, b, ...) __builtin_shuffle(a, b, EightPlaces{__VA_ARGS__})
#endif

// Eight numbers of eight rows into eight numbers of eight columns.
[[gnu::always_inline]] inline void transpose(float *to, int64_t to_stride, const float *from, int64_t stride) {
  Eight r[8], t[8];
  for (int i = 0; i < 8; ++i) std::memcpy(&r[i], from + i * stride, sizeof(Eight));
  for (int i = 0; i < 8; i += 2) {
    t[i] = SHUFFLE(r[i], r[i + 1], 0, 8, 2, 10, 4, 12, 6, 14);
    t[i + 1] = SHUFFLE(r[i], r[i + 1], 1, 9, 3, 11, 5, 13, 7, 15);
  }
  for (int i = 0; i < 8; i += 4)
    for (int j = 0; j < 2; ++j) {
      r[i + j] = SHUFFLE(t[i + j], t[i + j + 2], 0, 1, 8, 9, 4, 5, 12, 13);
      r[i + j + 2] = SHUFFLE(t[i + j], t[i + j + 2], 2, 3, 10, 11, 6, 7, 14, 15);
    }
  for (int i = 0; i < 4; ++i) {
    t[i] = SHUFFLE(r[i], r[i + 4], 0, 1, 2, 3, 8, 9, 10, 11);
    t[i + 4] = SHUFFLE(r[i], r[i + 4], 4, 5, 6, 7, 12, 13, 14, 15);
  }
  for (int i = 0; i < 8; ++i) std::memcpy(to + i * to_stride, &t[i], sizeof(Eight));
}

// rows of `width` floats, `stride` apart, into columns of LANES; missing rows are zero
[[gnu::always_inline]] inline void load(float *to, const float *from, int64_t stride, int width, int count) {
  if (count < LANES) std::memset(to, 0, sizeof(float) * width * LANES);
  for (int l = 0; l < count; ++l)
    // the same row of the next LANES tokens: short strided rows defeat the processor's own prefetching
    for (int j = 0; j < width; j += 16) __builtin_prefetch(from + (LANES + l) * stride + j);
  const int whole = count - count % 8, blocks = width - width % 8;
  for (int l = 0; l < whole; l += 8)
    for (int j = 0; j < blocks; j += 8) transpose(to + j * LANES + l, LANES, from + l * stride + j, stride);
  for (int l = 0; l < count; ++l)
    for (int j = l < whole ? blocks : 0; j < width; ++j) to[j * LANES + l] = from[l * stride + j];
}

[[gnu::always_inline]] inline void store(float *to, const float *from, int64_t stride, int width, int count) {
  const int whole = count - count % 8, blocks = width - width % 8;
  for (int l = 0; l < whole; l += 8)
    for (int j = 0; j < blocks; j += 8) transpose(to + l * stride + j, stride, from + j * LANES + l, LANES);
  for (int l = 0; l < count; ++l)
    for (int j = l < whole ? blocks : 0; j < width; ++j) to[l * stride + j] = from[j * LANES + l];
}

[[gnu::always_inline]] inline void dot(float *out, const float *a, const float *b, int width) {
  for (int g = 0; g < LANES; g += VECTOR) {
    float sum[VECTOR] = {};
    for (int j = 0; j < width; ++j) FOR_VECTOR sum[v] += a[j * LANES + g + v] * b[j * LANES + g + v];
    for (int v = 0; v < VECTOR; ++v) out[g + v] = sum[v];
  }
}

[[gnu::always_inline]] inline double total(const float *x) {
  double sum = 0;
  for (int l = 0; l < LANES; ++l) sum += x[l];
  return sum;
}

// the same to rounding, in few steps
[[gnu::always_inline]] inline double quick_total(const float *x) {
  float part[VECTOR] = {};
  for (int g = 0; g < LANES; g += VECTOR) FOR_VECTOR part[v] += x[g + v];
  for (int width = VECTOR / 2; width > 0; width /= 2)
    for (int v = 0; v < width; ++v) part[v] += part[v + width];
  return part[0];
}

// The gradients of the heads' curvatures, summed in double, thread by thread.
struct Slopes {
  const int threads, heads;
  std::vector<double> parts;
  Slopes(int threads, int heads) : threads(threads), heads(heads), parts(static_cast<size_t>(threads) * heads, 0.0) {}
  double *of(int thread) { return parts.data() + static_cast<size_t>(thread) * heads; }
  float total(int head) const {
    double sum = 0;
    for (int thread = 0; thread < threads; ++thread) sum += parts[static_cast<size_t>(thread) * heads + head];
    return static_cast<float>(sum);
  }
};

}  // namespace
