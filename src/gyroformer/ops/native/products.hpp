// Products of matrices with the coordinates of LANES tokens, and sums over tokens.
#pragma once

#include <vector>

#include "lanes.hpp"

namespace {

// ROWS of the sums below, so that b[j] is read once for them
template <int ROWS>
[[gnu::always_inline]] inline void outer_rows(float *acc, const float *a, const float *b, int columns) {
  for (int j = 0; j < columns; ++j) {
    float part[ROWS][VECTOR];
    for (int i = 0; i < ROWS; ++i) FOR_VECTOR part[i][v] = acc[(i * columns + j) * VECTOR + v];
    for (int g = 0; g < LANES; g += VECTOR)
      for (int i = 0; i < ROWS; ++i) FOR_VECTOR part[i][v] += a[i * LANES + g + v] * b[j * LANES + g + v];
    for (int i = 0; i < ROWS; ++i) FOR_VECTOR acc[(i * columns + j) * VECTOR + v] = part[i][v];
  }
}

// sums over tokens: acc[i][j][VECTOR] += Σ a[i] b[j]
[[gnu::always_inline]] inline void outer(float *acc, const float *a, const float *b, int rows, int columns) {
  int i = 0;
  for (; i + 4 <= rows; i += 4) outer_rows<4>(acc + 1LL * i * columns * VECTOR, a + i * LANES, b, columns);
  for (; i < rows; ++i) outer_rows<1>(acc + 1LL * i * columns * VECTOR, a + i * LANES, b, columns);
}

// ROWS of the products below, for VECTOR columns
template <int ROWS>
[[gnu::always_inline]] inline void add_product(double *acc, const float *a, const float *b, int columns, int stride) {
  for (int j = 0; j < columns; j += VECTOR) {
    float part[ROWS][VECTOR] = {};
    for (int t = 0; t < LANES; ++t)
      for (int i = 0; i < ROWS; ++i) FOR_VECTOR part[i][v] += a[i * LANES + t] * b[t * stride + j + v];
    const int count = columns - j < VECTOR ? columns - j : VECTOR;
    for (int i = 0; i < ROWS; ++i)
      for (int v = 0; v < count; ++v) acc[i * columns + j + v] += part[i][v];
  }
}

inline int padded(int columns) { return (columns + VECTOR - 1) / VECTOR * VECTOR; }

// The same for matrices too large to have VECTOR numbers for each entry: acc[i][j] += Σ_t a[i][t] b[t][j], where b has
// a row for each token, `padded(columns)` long.
inline void outer(double *acc, const float *a, const float *b, int rows, int columns) {
  const int stride = padded(columns);
  int i = 0;
  for (; i + 8 <= rows; i += 8) add_product<8>(acc + 1LL * i * columns, a + i * LANES, b, columns, stride);
  for (; i < rows; ++i) add_product<1>(acc + 1LL * i * columns, a + i * LANES, b, columns, stride);
}

// out[j] = Σ_i a[i] m(i, j), four columns at a time so that a[i] is read once for them
template <typename Entry>
[[gnu::always_inline]] inline void combine(float *__restrict out, const float *__restrict a, int rows, int columns,
                                           Entry m) {
  int j = 0;
  for (; j + 4 <= columns; j += 4)
    for (int g = 0; g < LANES; g += VECTOR) {
      float s0[VECTOR] = {}, s1[VECTOR] = {}, s2[VECTOR] = {}, s3[VECTOR] = {};
      for (int i = 0; i < rows; ++i) {
        const float m0 = m(i, j), m1 = m(i, j + 1), m2 = m(i, j + 2), m3 = m(i, j + 3);
        const float *from = a + i * LANES + g;
#pragma omp simd
        for (int v = 0; v < VECTOR; ++v) {
          s0[v] += m0 * from[v];
          s1[v] += m1 * from[v];
          s2[v] += m2 * from[v];
          s3[v] += m3 * from[v];
        }
      }
      float *to = out + j * LANES + g;
      for (int v = 0; v < VECTOR; ++v) to[v] = s0[v], to[LANES + v] = s1[v], to[2 * LANES + v] = s2[v], to[3 * LANES + v] = s3[v];
    }
  for (; j < columns; ++j) {
    float *to = out + j * LANES;
    FOR_LANES to[l] = 0.f;
    for (int i = 0; i < rows; ++i) {
      const float factor = m(i, j);
      FOR_LANES to[l] += factor * a[i * LANES + l];
    }
  }
}

// out[j] = Σ_i a[i] m[i][j]
void times(float *out, const float *a, const float *m, int rows, int columns) {
  combine(out, a, rows, columns, [=](int i, int j) { return m[i * columns + j]; });
}

// out[i] = Σ_j m[i][j] b[j]
void times_transposed(float *out, const float *m, const float *b, int rows, int columns) {
  combine(out, b, columns, rows, [=](int j, int i) { return m[i * columns + j]; });
}

// Sums the threads' accumulators [thread][head][i][j][VECTOR] into out [head][i][j].
void gather(float *out, const std::vector<Block> &parts, int64_t entries) {
#pragma omp for
  for (int64_t e = 0; e < entries; ++e) {
    double sum = 0;
    for (const Block &part : parts)
      for (int v = 0; v < VECTOR; ++v) sum += part[e * VECTOR + v];
    out[e] = static_cast<float>(sum);
  }
}

}  // namespace
