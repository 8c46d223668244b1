// Blocks of LANES tokens with their coordinates transposed, so that every inner loop runs over tokens.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "scalar.hpp"

namespace {

using Block = std::vector<float>;  // [coordinate][LANES]

// rows of `width` floats, `stride` apart, into columns of LANES; missing rows are zero
[[gnu::always_inline]] inline void load(float *to, const float *from, int64_t stride, int width, int count) {
  if (count < LANES) std::memset(to, 0, sizeof(float) * width * LANES);
  for (int l = 0; l < count; ++l) {
    const float *line = from + l * stride;
    // the same row of the next LANES tokens: short strided rows defeat the processor's own prefetching
    for (int j = 0; j < width; j += 16) __builtin_prefetch(line + LANES * stride + j);
    for (int j = 0; j < width; ++j) to[j * LANES + l] = line[j];
  }
}

[[gnu::always_inline]] inline void store(float *to, const float *from, int64_t stride, int width, int count) {
  for (int l = 0; l < count; ++l)
    for (int j = 0; j < width; ++j) to[l * stride + j] = from[j * LANES + l];
}

[[gnu::always_inline]] inline void dot(float *out, const float *a, const float *b, int width) {
  FOR_LANES out[l] = 0.f;
  for (int j = 0; j < width; ++j) FOR_LANES out[l] += a[j * LANES + l] * b[j * LANES + l];
}

[[gnu::always_inline]] inline double total(const float *x) {
  double sum = 0;
  for (int l = 0; l < LANES; ++l) sum += x[l];
  return sum;
}

}  // namespace
