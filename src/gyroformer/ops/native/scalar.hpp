// Scalar functions that every kernel shares, each a plain expression that a loop over lanes vectorises.
#pragma once

#include <cmath>
#include <cstdint>

namespace {

constexpr int LANES = 64;   // tokens, or pairs, at a time
constexpr int VECTOR = 16;  // width of the accumulators of sums over tokens
constexpr float EPS = 1.1920929e-7f;
constexpr float TINY = 1.1754944e-38f;
constexpr float HALF_PI = 1.57079632679489662f;
// set by the build from gyroformer.ops.lifted: REACH and least_cone
constexpr float REACH = SET_REACH, LEAST = SET_LEAST;

constexpr float MOST_TURNS = 1e5f;    // longer angles (k > 0) have lost their phase in float32 anyway

#define FOR_LANES _Pragma("omp simd") for (int l = 0; l < LANES; ++l)
#define FOR_VECTOR _Pragma("omp simd") for (int v = 0; v < VECTOR; ++v)

[[gnu::always_inline]] inline float positive(float x) { return x > 0.f ? x : 0.f; }

// The four functions below are series after a reduction of the argument, without branches or calls: so the loops
// that use them are vectorised by any compiler. Their errors are below 2e-7 relative.

[[gnu::always_inline]] inline float round_to_even(float x) { return (x + 12582912.f) - 12582912.f; }  // |x| < 2^22

// e^x for -87 <= x <= 88.
[[gnu::always_inline]] inline float exponential(float x) {
  const float n = round_to_even(x * 1.44269504f);
  const float r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  const float p = 1.f + r * (1.f + r * (1.f / 2 + r * (1.f / 6 + r * (1.f / 24 + r * (1.f / 120 + r * (1.f / 720))))));
  return p * __builtin_bit_cast(float, (static_cast<int32_t>(n) + 127) << 23);
}

// log(2^e (1 + f)) for -0.3 < f < 0.42, from 2 artanh(f/(2 + f)).
[[gnu::always_inline]] inline float logarithm_of(float e, float f) {
  const float s = f / (f + 2.f), t = s * s;
  const float p = 2.f * s * (1.f + t * (1.f / 3 + t * (1.f / 5 + t * (1.f / 7 + t * (1.f / 9)))));
  return e * 0.693359375f + (p - e * 2.12194440e-4f);
}

// A normal x > 0 as 2^e m with the mantissa m in [1/√2, √2).
[[gnu::always_inline]] inline void taken_apart(float x, int32_t &e, float &m) {
  const int32_t shifted = __builtin_bit_cast(int32_t, x) - 0x3f3504f3;  // so that the mantissa starts at 1/√2
  e = shifted >> 23;
  m = __builtin_bit_cast(float, (shifted & 0x007fffff) + 0x3f3504f3);
}

// log x for normal x > 0.
[[gnu::always_inline]] inline float logarithm(float x) {
  int32_t e;
  float m;
  taken_apart(x, e, m);
  return logarithm_of(static_cast<float>(e), m - 1.f);
}

// log(1 + x) for x >= 0, as exact for small x: what 1 + x rounds away counts where nothing else is left.
[[gnu::always_inline]] inline float logarithm_past_one(float x) {
  const float y = 1.f + x, lost = x - (y - 1.f);
  int32_t e;
  float m;
  taken_apart(y, e, m);
  return logarithm_of(static_cast<float>(e), (m - 1.f) + (e == 0 ? lost : 0.f));
}

// sin x and cos x for 0 <= x < 1e5.
[[gnu::always_inline]] inline void sine_cosine(float x, float &sine, float &cosine) {
  const float n = round_to_even(x * 0.636619772f);
  const float r = ((x - n * 1.5703125f) - n * 4.837512969970703125e-4f) - n * 7.54978995489188e-8f;
  const float t = r * r;
  const float s = r * (1.f + t * (-1.f / 6 + t * (1.f / 120 + t * (-1.f / 5040 + t * (1.f / 362880)))));
  const float c = 1.f + t * (-.5f + t * (1.f / 24 + t * (-1.f / 720 + t * (1.f / 40320))));
  const int32_t quarter = static_cast<int32_t>(n);
  const bool swap = quarter & 1;
  const float a = swap ? c : s, b = swap ? s : c;
  sine = quarter & 2 ? -a : a;
  cosine = (quarter + 1) & 2 ? -b : b;
}

// The sign of a head's curvature, known where a loop is compiled: each space needs one half of the functions below.
enum Space { BALL, SPHERE };  // k <= 0, k > 0

// sin(√z)/√z and cos(√z), hyperbolic for z < 0 up to √-z = REACH, with their derivatives in z.
struct Turn { float sine, cosine, dsine, dcosine; };

template <Space SPACE>
[[gnu::always_inline]] inline Turn turn(float z) {
  const bool near = std::fabs(z) < 1.f, ball = SPACE == BALL, far = SPACE != SPHERE && z < -REACH * REACH;
  const float y = near ? z : 0.f;
  const float s = 1.f + y * (-1.f / 6 + y * (1.f / 120 + y * (-1.f / 5040 + y * (1.f / 362880 + y * (-1.f / 39916800)))));
  const float c = 1.f + y * (-.5f + y * (1.f / 24 + y * (-1.f / 720 + y * (1.f / 40320 + y * (-1.f / 3628800 + y * (1.f / 479001600))))));
  const float ds = -1.f / 6 + y * (2.f / 120 + y * (-3.f / 5040 + y * (4.f / 362880 + y * (-5.f / 39916800))));
  const float r = std::sqrt(near ? 1.f : std::fabs(z));
  const float reach = ball ? (r < REACH ? r : REACH) : 0.f;
  const float grow = exponential(reach), fall = 1.f / grow;
  float circular_sine, circular_cosine;
  sine_cosine(ball ? 0.f : (r < MOST_TURNS ? r : MOST_TURNS), circular_sine, circular_cosine);
  const float fs = (ball ? .5f * (grow - fall) : circular_sine) / r;
  const float fc = ball ? .5f * (grow + fall) : circular_cosine;
  const float zf = near ? 1.f : z;
  Turn t;
  t.sine = near ? s : fs;
  t.cosine = near ? c : fc;
  // beyond REACH the cosine is constant and the sine falls as 1/√-z, so that its vector keeps its length
  t.dsine = near ? ds : (far ? -.5f * fs / zf : .5f * (fc - fs) / zf);
  t.dcosine = far ? 0.f : -.5f * t.sine;
  return t;
}

// atan(√w)/√w and its derivative for |w| <= 0.1716, a convergent of Gauss's continued fraction.
[[gnu::always_inline]] inline void atan_fraction(float w, float &a, float &da) {
  const float p = 1155.f + w * (1190.f + w * 231.f), q = 1155.f + w * (1575.f + w * (525.f + w * 25.f));
  const float dp = 1190.f + w * 462.f, dq = 1575.f + w * (1050.f + w * 75.f);
  const float inverse = 1.f / q;
  a = p * inverse;
  da = (dp - a * dq) * inverse;
}

// atan(x) for x >= 0.
[[gnu::always_inline]] inline float atan_positive(float x) {
  const bool big = x > 2.41421356f, mid = x > 0.41421356f;
  const float y = big ? -1.f / x : (mid ? (x - 1.f) / (x + 1.f) : x);
  float a, unused;
  atan_fraction(y * y, a, unused);
  return (big ? HALF_PI : (mid ? .5f * HALF_PI : 0.f)) + y * a;
}

// atan(√w)/√w for w > -1 and its derivative.
template <Space SPACE>
[[gnu::always_inline]] inline void atan_ratio(float w, float &a, float &da) {
  const bool near = std::fabs(w) < .15f, ball = SPACE == BALL;
  float na, nda;
  atan_fraction(near ? w : 0.f, na, nda);
  const float wf = near ? .5f : w, r = std::sqrt(std::fabs(wf));
  const float hyperbolic = logarithm(1.f + (ball ? r : 0.f)) - .5f * logarithm(ball ? 1.f + wf : 1.f);
  const float circular = atan_positive(r);
  const float fa = (ball ? hyperbolic : circular) / r;
  a = near ? na : fa;
  da = near ? nda : .5f * (1.f / (1.f + wf) - fa) / wf;
}

// atan2(√a, b)/√a with its derivatives in a and b; b > 0 for a <= 0.
struct Angle { float ratio, by_a, by_b; };

template <Space SPACE>
[[gnu::always_inline]] inline Angle angle_over_sine(float a, float b) {
  const bool front = SPACE == BALL || b > 0.f;
  const float fb = front ? b : 1.f, inverse = 1.f / fb;
  float ratio, slope;
  const float raw = (front ? a : 0.f) * inverse * inverse;
  const bool clipped = SPACE != SPHERE && raw < LEAST - 1.f;
  const float w = clipped ? LEAST - 1.f : raw;
  atan_ratio<SPACE>(w, ratio, slope);
  const float r = std::sqrt(front ? 1.f : (a > TINY ? a : TINY));
  const float behind = (2.f * HALF_PI - atan_positive(r / (front ? 1.f : (b < -TINY ? -b : TINY)))) / r;
  const float square = front ? 1.f : (a > TINY ? a : TINY), bb = front ? 0.f : b;
  const float cut = 1.f / (square + bb * bb);
  Angle out;
  out.ratio = front ? ratio * inverse : behind;
  out.by_a = front ? (clipped ? 0.f : slope * inverse * inverse * inverse) : .5f * (bb * cut - behind) / square;
  out.by_b = front ? (clipped ? -ratio * inverse * inverse : -inverse * inverse / (1.f + w)) : -cut;
  return out;
}

// asin(√z)/√z and its derivative, z <= 1; asinh for z < 0. `left` is 1 - z, where the caller knows it better than the
// subtraction does.
template <Space SPACE>
[[gnu::always_inline]] inline void asin_ratio(float z, float left, float &a, float &da) {
  const bool end = SPACE != BALL && z >= 1.f;
  z = end ? 1.f : z;
  const bool near = std::fabs(z) < .125f, ball = SPACE == BALL;
  const float y = near ? z : 0.f, rest = 1.f / (1.f - y), root = std::sqrt(rest);
  float na, nda;
  atan_fraction(y * rest, na, nda);
  const float zf = near ? .5f : z, r = std::sqrt(std::fabs(zf)), c = std::sqrt(positive(near ? .5f : left));
  const float hyperbolic = logarithm(r + (ball ? c : 1.f));
  const float angle = atan_positive(r / (c > TINY ? c : 1.f));
  const float circular = c > TINY ? angle : HALF_PI;
  const float fa = (ball ? hyperbolic : circular) / r;
  a = near ? na * root : fa;
  const float safe = c > TINY ? c : 1.f;
  da = near ? nda * rest * rest * root + .5f * na * root * rest : (end ? 0.f : .5f * (1.f / safe - fa) / zf);
}

}  // namespace
