// Squared distances of LANES pairs from q = |C_v P_u - C_u P_v|², with their derivatives; see gyroformer/ops/pairs.py.
#pragma once

#include "scalar.hpp"

namespace {

// |z| below which the power series are used; s + c = √|z| + √(1 + |z|) is below √2 there, and its logarithm small
constexpr float NEAR = .125f;

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

// d² of a head from q for LANES pairs, added to `square`; with BACK its derivatives by q and by k. The sign of k and the
// size of z are settled outside the loops over lanes.
template <bool BACK>
void distances(const float *q, float k, float *square, float *by_q, float *by_k) {
  float most = 0.f;
#pragma omp simd reduction(max : most)
  for (int l = 0; l < LANES; ++l) most = q[l] > most ? q[l] : most;
  if (std::fabs(k) * most < NEAR) {
    FOR_LANES {
      const float z = k * q[l];
      square[l] += 4.f * q[l] * near_square(z);
      if (BACK) by_q[l] = 4.f * near_by_q(z), by_k[l] = 4.f * q[l] * q[l] * near_by_k(z);
    }
  } else if (k < 0.f) {
    const float over = -4.f / k, inverse = 1.f / k;
    FOR_LANES {
      const float w = -k * q[l];  // -z
      const bool near = w < NEAR;
      const float y = near ? -w : 0.f, s = std::sqrt(near ? 1.f : w), c = std::sqrt(1.f + w);
      const float angle = logarithm(s + c);
      const float d = near ? 4.f * q[l] * near_square(y) : over * angle * angle;
      square[l] += d;
      if (BACK) {
        const float slope = near ? 4.f * near_by_q(y) : 4.f * angle / (s * c);
        by_q[l] = slope;
        by_k[l] = near ? 4.f * q[l] * q[l] * near_by_k(y) : (q[l] * slope - d) * inverse;
      }
    }
  } else {
    const float inverse = 1.f / k;
    FOR_LANES {
      const float z = k * q[l];
      const bool near = z < NEAR, small = z < .25f, end = z >= 1.f;  // by rounding z may pass 1, the cut locus
      const float bounded = end ? 1.f : z, rest = 1.f - bounded;
      const float s = std::sqrt(small ? 1.f : bounded);
      const float t = small ? z : .5f * rest / (1.f + s);  // sin² of (π/2 - angle)/2
      const float a = asin_quarter(t);
      const float ratio = small ? a : (HALF_PI - 2.f * std::sqrt(t) * a) / s;
      const float d = 4.f * q[l] * ratio * ratio;
      square[l] += d;
      if (BACK) {
        // beyond the cut locus the ratio is constant
        const float slope = end ? 4.f * ratio * ratio : 4.f * ratio / std::sqrt(end ? 1.f : rest);
        const float y = near ? z : 0.f;
        by_q[l] = slope;
        by_k[l] = near ? 4.f * q[l] * q[l] * near_by_k(y) : (end ? 0.f : (q[l] * slope - d) * inverse);
      }
    }
  }
}

#undef F

}  // namespace
