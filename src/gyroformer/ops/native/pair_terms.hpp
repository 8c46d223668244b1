// Terms exp(-d²) of LANES pairs of nodes, one row against a tile of columns, and what their gradient adds to both.
//
// A tile holds coordinates of LANES columns, coordinate by coordinate: entry j of column l is at j * stride + l.
#pragma once

#include "pair_distance.hpp"
#include "registers.hpp"
#include "scalar.hpp"

namespace {

constexpr float MOST = 87.f;  // exp(-x) counts as 0 beyond: the end of float32's normal numbers
constexpr float HIGH = 70.f;  // exp(x) counts as exp(HIGH) beyond: a sum of millions of them is finite

// keeps a product from being joined with a sum: a b - c d is then 0 exactly where both products are the same
[[gnu::always_inline]] inline void rounded(Register &x) {
#if defined(__AVX512F__)
  asm("" : "+v"(x));
#elif defined(__x86_64__)
  asm("" : "+x"(x));
#elif defined(__aarch64__)
  asm("" : "+w"(x));
#endif
}

// q = |C_v p - c P_v|² of a row (p, c) and a tile's LANES columns, 0 where the points are the same
[[gnu::always_inline]] inline void quotients(float *q, const float *p, float c, const float *sines, const float *cosines,
                                             int d, int64_t stride = LANES) {
  for (int g = 0; g < LANES; g += GROUP * WIDE) {
    Register cosine[GROUP], sum[GROUP];
    for (int i = 0; i < GROUP; ++i) cosine[i] = get(cosines + g + i * WIDE), sum[i] = Register{};
    for (int j = 0; j < d; ++j)
      for (int i = 0; i < GROUP; ++i) {
        Register other = get(sines + j * stride + g + i * WIDE) * c;
        rounded(other);
        Register mine = cosine[i] * p[j];
        rounded(mine);
        const Register delta = mine - other;
        sum[i] += delta * delta;
      }
    for (int i = 0; i < GROUP; ++i) put(q + g + i * WIDE, sum[i]);
  }
}

// Adds a head's gradient from `twice` = 2 dL/dq: rows' sums over columns to `row` [d + 1][WIDE], columns' to `column`
// [d + 1][column_stride]; the last entry is the cosine's.
[[gnu::always_inline]] inline void spread(const float *twice, const float *p, float c, const float *sines,
                                          const float *cosines, int d, float *row, float *row_cosine, float *column,
                                          float *column_cosine, int64_t stride = LANES,
                                          int64_t column_stride = LANES) {
  for (int g = 0; g < LANES; g += GROUP * WIDE) {
    Register cosine[GROUP], to_row[GROUP], to_column[GROUP], by_mine[GROUP], by_other[GROUP];
    for (int i = 0; i < GROUP; ++i) {
      const Register weight = get(twice + g + i * WIDE);
      cosine[i] = get(cosines + g + i * WIDE);
      to_row[i] = weight * cosine[i];
      to_column[i] = weight * c;
      by_mine[i] = by_other[i] = Register{};
    }
    for (int j = 0; j < d; ++j) {
      Register sum = get(row + j * WIDE);
      for (int i = 0; i < GROUP; ++i) {
        const Register sine = get(sines + j * stride + g + i * WIDE);
        float *back = column + j * column_stride + g + i * WIDE;
        Register other = sine * c;
        rounded(other);
        Register mine = cosine[i] * p[j];
        rounded(mine);
        const Register delta = mine - other;
        sum += to_row[i] * delta;
        put(back, get(back) - to_column[i] * delta);
        by_mine[i] += p[j] * delta;
        by_other[i] += sine * delta;
      }
      put(row + j * WIDE, sum);
    }
    Register sum = get(row_cosine);
    for (int i = 0; i < GROUP; ++i) {
      const Register weight = get(twice + g + i * WIDE);
      float *back = column_cosine + g + i * WIDE;
      sum -= weight * by_other[i];
      put(back, get(back) + weight * by_mine[i]);
    }
    put(row_cosine, sum);
  }
}

// exp(-d²), or exp(-d), times the mask; with BACK `factor` is its derivative by d² over itself, with the sign
template <bool PLAIN, bool BACK>
[[gnu::always_inline]] inline void fall_off(float *out, const float *square, const float *mask, float *factor) {
  FOR_LANES {
    const float x = PLAIN ? std::sqrt(square[l]) : square[l];
    const bool beyond = x > MOST;
    const float e = exponential(beyond ? -MOST : -x);
    out[l] = beyond ? 0.f : e * mask[l];
    if (BACK) factor[l] = PLAIN ? (x > 0.f ? -.5f / (x > 0.f ? x : 1.f) : 0.f) : -1.f;
  }
}

// exp(mine + other - x) for the lanes that the mask keeps
[[gnu::always_inline]] inline void tilted(float *out, const float *x, const float *mask, const float *mine,
                                          const float *other) {
  FOR_LANES {
    const float sum = mine[l] + other[l] - x[l];
    const float bounded = sum > HIGH ? HIGH : sum;
    out[l] = bounded < -MOST ? 0.f : exponential(bounded < -MOST ? -MOST : bounded) * mask[l];
  }
}

// 0, or NaN if a number is not finite, which series of bits would hide
inline float nothing(const float *x, int64_t count) {
  float sum = 0.f;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < count; ++i) sum += 0.f * x[i];
  return sum;
}

struct Lists {  // ascending nodes for each node
  const int64_t *indptr, *indices;
};

}  // namespace
