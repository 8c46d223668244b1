// Squared distances of LANES pairs from q = |C_v P_u - C_u P_v|², with their derivatives; see gyroformer/ops/pairs.py.
#pragma once

#if defined(__AVX512F__)
#include <immintrin.h>
#endif

#include "scalar.hpp"

namespace {

// |z| below which the power series are used; s + c = √|z| + √(1 + |z|) is below √2 there, and its logarithm small
constexpr float NEAR = .125f;

// -kq from which on 1 + kq is kq to the last digit, and whose square is a number still; such pairs are 42/√|k| apart or
// more, where only sums of points lie, each of which is within the layers' reach
constexpr float FAR = 1e18f;

// asin²√z = Σ a_n z^n, with a_1 = 1 and a_(n+1) = 2n²/((n + 1)(2n + 1)) a_n
constexpr double A2 = 1. / 3, A3 = A2 * 8 / 15, A4 = A3 * 18 / 28, A5 = A4 * 32 / 45, A6 = A5 * 50 / 66,
                 A7 = A6 * 72 / 91, A8 = A7 * 98 / 120, A9 = A8 * 128 / 153;

#define F(x) static_cast<float>(x)

// asin²√z / z and its derivatives for |z| < NEAR: by the argument q of 4 q r(kq)², and by k (over 4 q²)
[[gnu::always_inline]] inline float near_square(float z) {
  return 1.f + z * (F(A2) + z * (F(A3) + z * (F(A4) + z * (F(A5) + z * (F(A6) + z * F(A7))))));
}
[[gnu::always_inline]] inline float near_by_q(float z) {
  return 1.f + z * (F(2 * A2) + z * (F(3 * A3) + z * (F(4 * A4) + z * (F(5 * A5) + z * (F(6 * A6) + z * (F(7 * A7) +
                    z * F(8 * A8)))))));
}
[[gnu::always_inline]] inline float near_by_k(float z) {
  return F(A2) + z * (F(2 * A3) + z * (F(3 * A4) + z * (F(4 * A5) + z * (F(5 * A6) + z * (F(6 * A7) + z * (F(7 * A8) +
                 z * F(8 * A9)))))));
}

// asin√t/√t for 0 <= t <= 1/4: a least-squares polynomial, error below 5e-9 before rounding
[[gnu::always_inline]] inline float asin_quarter(float t) {
  return 1.f + t * (.16666786f + t * (.074945346f + t * (.04553901f + t * (.023909364f + t * .0425536f))));
}

// 1/√x for LANES normal numbers, to two units in the last place: an estimate and a step of Newton's method where the
// processor has estimates, a third of the time of a root and a division
[[gnu::always_inline]] inline void inverse_roots(float *out, const float *x) {
#if defined(__AVX512F__)
  for (int g = 0; g < LANES; g += 16) {
    const __m512 given = _mm512_loadu_ps(x + g), guess = _mm512_rsqrt14_ps(given);
    const __m512 half = _mm512_mul_ps(_mm512_mul_ps(given, guess), _mm512_mul_ps(guess, _mm512_set1_ps(.5f)));
    _mm512_storeu_ps(out + g, _mm512_mul_ps(guess, _mm512_sub_ps(_mm512_set1_ps(1.5f), half)));
  }
#else
  FOR_LANES out[l] = 1.f / std::sqrt(x[l]);
#endif
}

// k = 0: the first terms of the power series
template <bool BACK>
void flat_distances(const float *q, float *square, float *by_q, float *by_k) {
  FOR_LANES {
    square[l] += 4.f * q[l];
    if (BACK) by_q[l] = 4.f, by_k[l] = 4.f * q[l] * q[l] * F(A2);
  }
}

// k q below NEAR for all lanes: power series
template <bool BACK>
void near_distances(const float *q, float k, float *square, float *by_q, float *by_k) {
  FOR_LANES {
    const float z = k * q[l];
    square[l] += 4.f * q[l] * near_square(z);
    if (BACK) by_q[l] = 4.f * near_by_q(z), by_k[l] = 4.f * q[l] * q[l] * near_by_k(z);
  }
}

// k < 0, from the whole angle A = 2 arsinh√w = log(1 + 2w + 2√(w(1 + w))), w = -kq, which needs one root:
// d² = -A²/k and, with r = 1/√(w(1 + w)), its derivative 2Ar by q. With MIXED some lanes are nearer than NEAR.
template <bool BACK, bool MIXED>
void hyperbolic_distances(const float *q, float k, float *square, float *by_q, float *by_k) {
  const float over = -1.f / k;
  alignas(64) float product[LANES], inverse[LANES];
  FOR_LANES {
    const float w = -k * q[l];
    product[l] = MIXED && w < NEAR ? 1.f : w + w * w;
  }
  inverse_roots(inverse, product);
  FOR_LANES {
    const float w = -k * q[l];
    const bool near = MIXED && w < NEAR;
    const float y = near ? -w : 0.f;
    const float angle = logarithm(1.f + 2.f * ((near ? 1.f : w) + product[l] * inverse[l]));
    const float far = over * angle * angle, d = near ? 4.f * q[l] * near_square(y) : far;
    square[l] += d;
    if (BACK) {
      const float slope = 2.f * angle * inverse[l];
      by_q[l] = near ? 4.f * near_by_q(y) : slope;
      by_k[l] = near ? 4.f * q[l] * q[l] * near_by_k(y) : (far - q[l] * slope) * over;
    }
  }
}

// k < 0 with lanes beyond FAR, for which A = log(4w) and r = 1/w; the others have the bits that they have elsewhere
template <bool BACK>
void far_distances(const float *q, float k, float *square, float *by_q, float *by_k) {
  const float over = -1.f / k;
  alignas(64) float usual[LANES];
  FOR_LANES usual[l] = -k * q[l] < FAR ? q[l] : 0.f;
  hyperbolic_distances<BACK, true>(usual, k, square, by_q, by_k);
  for (int l = 0; l < LANES; ++l) {
    const float w = -k * q[l];
    if (w < FAR) continue;
    const float angle = 2.f * F(M_LN2) + std::log(w), d = over * angle * angle;
    square[l] += d;
    if (!BACK) continue;
    by_q[l] = 2.f * angle / w;
    by_k[l] = (d - q[l] * by_q[l]) * over;
  }
}

// -k from which on -kq of pairs that are not at one place is a normal number
constexpr float CURVED = 1e-18f;

// (asinh√w - √(w/(1 + w)))/(w√(w(1 + w))) for w < NEAR: Σ (-1)^n (1 - c_n) w^n with c_n = (2n + 2)!!/(2n + 3)!!, the
// difference of the series of asinh√w/√(w(1 + w)) and of 1/(1 + w)
[[gnu::always_inline]] inline float near_lag(float w) {
  return F(1. / 3) - w * (F(7. / 15) - w * (F(19. / 35) - w * (F(187. / 315) - w * (F(437. / 693) - w *
         (F(1979. / 3003) - w * (F(4387. / 6435) - w * F(76627. / 109395)))))));
}

struct Negative {  // what every pair of a space with k < 0 needs of it
  const float k, root = std::sqrt(-k), over_root = 1.f / root, over = -1.f / k;
};

// Distances d themselves for -k >= CURVED and -kq < FAR: one form for all lanes, near and far, without a branch.
// With A as above and r = 1/√(w(1 + w)): d = A/√-k, its derivative √-k r by q, and (A/2 - wr)/√-k³ by k.
template <bool BACK>
[[gnu::always_inline]] inline void plain_distances(const float *q, const Negative &space, float *far, float *by_q,
                                                   float *by_k) {
  const float k = space.k, root = space.root, over_root = space.over_root, over = space.over;
  alignas(64) float product[LANES], inverse[LANES];
  FOR_LANES {
    const float w = -k * q[l], p = w + w * w;
    product[l] = p > TINY ? p : TINY;
  }
  inverse_roots(inverse, product);
  FOR_LANES {
    const float w = -k * q[l], r = w > 0.f ? inverse[l] : 0.f, middle = product[l] * r;
    const float angle = logarithm_past_one(2.f * (w + middle));
    far[l] = over_root * angle;
    if (BACK) {
      by_q[l] = root * r;
      const bool near = w < NEAR;
      by_k[l] = over_root * (near ? q[l] * middle * near_lag(near ? w : 0.f) : over * (.5f * angle - w * r));
    }
  }
}

// the largest of LANES numbers
[[gnu::always_inline]] inline float largest(const float *q) {
  float most = q[0];
#pragma omp simd reduction(max : most)
  for (int l = 0; l < LANES; ++l) most = q[l] > most ? q[l] : most;
  return most;
}

// k > 0
template <bool BACK>
void spherical_distances(const float *q, float k, float *square, float *by_q, float *by_k) {
  const float over = 1.f / k;
  alignas(64) float sine[LANES], rest[LANES], half[LANES], sine_over[LANES], rest_over[LANES], half_over[LANES];
  FOR_LANES {
    const float z = k * q[l], bounded = z < 1.f ? z : 1.f;  // by rounding z may pass 1, the cut locus
    sine[l] = z < .25f ? 1.f : bounded;
    rest[l] = 1.f - bounded > 0.f ? 1.f - bounded : 1.f;
  }
  inverse_roots(sine_over, sine);
  FOR_LANES {
    const float z = k * q[l];
    const float t = z < .25f ? z : .5f * (z < 1.f ? 1.f - z : 0.f) / (1.f + sine[l] * sine_over[l]);
    half[l] = t > TINY ? t : TINY;  // sin² of (π/2 - angle)/2, or of the angle itself
  }
  inverse_roots(half_over, half);
  if (BACK) inverse_roots(rest_over, rest);
  FOR_LANES {
    const float z = k * q[l];
    const bool near = z < NEAR, small = z < .25f, end = z >= 1.f;
    const float a = asin_quarter(half[l]);
    const float ratio = small ? a : (HALF_PI - 2.f * half[l] * half_over[l] * a) * sine_over[l];
    const float d = 4.f * q[l] * ratio * ratio;
    square[l] += d;
    if (BACK) {
      // beyond the cut locus the ratio is constant
      const float slope = end ? 4.f * ratio * ratio : 4.f * ratio * rest_over[l];
      const float y = near ? z : 0.f;
      by_q[l] = slope;
      by_k[l] = near ? 4.f * q[l] * q[l] * near_by_k(y) : (end ? 0.f : (q[l] * slope - d) * over);
    }
  }
}

// d² of a head from q for LANES pairs, added to `square`; with BACK its derivatives by q and by k. The sign of k and the
// size of z are settled outside the loops over lanes.
template <bool BACK>
void distances(const float *q, float k, float *square, float *by_q, float *by_k) {
  if (k == 0.f) return flat_distances<BACK>(q, square, by_q, by_k);
  float most = q[0], least = q[0];
#pragma omp simd reduction(max : most) reduction(min : least)
  for (int l = 0; l < LANES; ++l) {
    most = q[l] > most ? q[l] : most;
    least = q[l] < least ? q[l] : least;
  }
  if (std::fabs(k) * most < NEAR) return near_distances<BACK>(q, k, square, by_q, by_k);
  if (k > 0.f) return spherical_distances<BACK>(q, k, square, by_q, by_k);
  if (-k * most >= FAR) return far_distances<BACK>(q, k, square, by_q, by_k);
  if (-k * least < NEAR) return hyperbolic_distances<BACK, true>(q, k, square, by_q, by_k);
  hyperbolic_distances<BACK, false>(q, k, square, by_q, by_k);
}

#undef F

}  // namespace
