// Eight rows at a time in double: a vector type, the elementary functions on it, and the analytic functions of
// gyroformer/geometry/trig.py, each with its slope. Selections replace branches; a branch that no lane takes is not
// computed.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#if defined(__AVX512F__)
#include <immintrin.h>
#endif

namespace {

constexpr int LANES = 8;
typedef double Lanes __attribute__((vector_size(64)));
typedef int64_t Mask __attribute__((vector_size(64)));

constexpr double EPS = std::numeric_limits<double>::epsilon();
constexpr double TINY = std::numeric_limits<double>::min();
constexpr double HUGEST = std::numeric_limits<double>::max();
constexpr double HALF_PI = 1.57079632679489661923;
// adding it rounds to an integer, which then stands in the low bits
constexpr double SHIFTER = 6755399441055744.0;
// the discs of the series: CIRCULAR_RADIUS, ARCTANGENT_RADIUS and ARCSINE_RADIUS of trig.py
constexpr double CIRCULAR_DISC = 1.0, ARCTANGENT_DISC = 0.15, ARCSINE_DISC = 0.125;
// angles above are reduced by the C library, lane by lane
constexpr double LONG_ANGLE = 1048576.0;

[[gnu::always_inline]] inline Lanes lanes(double x) { return Lanes{} + x; }
[[gnu::always_inline]] inline Lanes select(Mask m, Lanes a, Lanes b) { return m ? a : b; }

[[gnu::always_inline]] inline bool any(Mask m) {
#if defined(__AVX512F__)
  return _mm512_test_epi64_mask((__m512i)m, (__m512i)m) != 0;  // no compiler makes one instruction of the loop
#else
  int64_t found = 0;
  for (int l = 0; l < LANES; ++l) found |= m[l];
  return found != 0;
#endif
}

[[gnu::always_inline]] inline Lanes sqrt(Lanes x) {
  Lanes root;
  for (int l = 0; l < LANES; ++l) root[l] = __builtin_sqrt(x[l]);
  return root;
}

[[gnu::always_inline]] inline Lanes abs(Lanes x) { return select(x < 0, -x, x); }

// Numbers this large are left to the torch form: below, no product of a coefficient with a coordinate overflows, so that
// no sum of them is NaN.
constexpr double TOO_LARGE = 1e150;
[[gnu::always_inline]] inline Mask too_large(Lanes x) { return ~(abs(x) < TOO_LARGE); }

// Σ c[n] x^n, and with SLOPE its derivative. Even and odd powers are two chains, which the processor runs side by side;
// each is a variable of its own, for an element of an array would be kept in memory.
template <bool SLOPE, size_t N>
[[gnu::always_inline]] inline Lanes series(const std::array<double, N> &c, Lanes x, Lanes &slope) {
  const Lanes y = x * x;
  Lanes even = lanes(N % 2 ? c[N - 1] : 0), odd{}, by_even{}, by_odd{};
  for (size_t n = N / 2; n-- > 0;) {
    if constexpr (SLOPE) by_even = by_even * y + even, by_odd = by_odd * y + odd;
    even = even * y + c[2 * n];
    odd = odd * y + c[2 * n + 1];
  }
  if constexpr (SLOPE) slope = odd + 2 * x * (by_even + x * by_odd);
  return even + x * odd;
}

template <size_t N>
[[gnu::always_inline]] inline Lanes series(const std::array<double, N> &c, Lanes x) {
  Lanes unused;
  return series<false>(c, x, unused);
}

// Coefficients: x^n/n!; of the angle's sine over the angle and of its cosine in z = angle²; of atan(√z)/√z; of
// asin(√z)/√z. Each is as long as its disc needs for double.
template <size_t N>
constexpr std::array<double, N> exponential_terms() {
  std::array<double, N> c{};
  double factorial = 1;
  for (size_t n = 0; n < N; ++n) {
    if (n > 0) factorial *= static_cast<double>(n);
    c[n] = 1 / factorial;
  }
  return c;
}

template <size_t N>
constexpr std::array<double, N> circular_terms(int first) {
  std::array<double, N> c{};
  const std::array<double, 2 * N> power = exponential_terms<2 * N>();
  for (size_t n = 0; n < N; ++n) c[n] = (n % 2 ? -1 : 1) * power[2 * n + first];
  return c;
}

template <size_t N>
constexpr std::array<double, N> arctangent_terms() {
  std::array<double, N> c{};
  for (size_t n = 0; n < N; ++n) c[n] = (n % 2 ? -1.0 : 1.0) / static_cast<double>(2 * n + 1);
  return c;
}

template <size_t N>
constexpr std::array<double, N> arcsine_terms() {
  std::array<double, N> c{};
  double central = 1;  // (2n choose n)/4^n
  for (size_t n = 0; n < N; ++n) {
    if (n > 0) central *= static_cast<double>(2 * n - 1) / static_cast<double>(2 * n);
    c[n] = central / static_cast<double>(2 * n + 1);
  }
  return c;
}

constexpr auto EXPONENTIAL = exponential_terms<14>();
constexpr auto SINE = circular_terms<11>(1), COSINE = circular_terms<11>(0);
constexpr auto ARCTANGENT = arctangent_terms<23>();
constexpr auto ARCSINE = arcsine_terms<19>();
// 2 artanh(s)/s in s²
constexpr std::array<double, 12> LOGARITHM = [] {
  std::array<double, 12> c{};
  for (size_t n = 0; n < c.size(); ++n) c[n] = 2.0 / static_cast<double>(2 * n + 1);
  return c;
}();

// e^x for x <= 0; 0 below e^-708.
[[gnu::always_inline]] inline Lanes exponential(Lanes x) {
  const Lanes bounded = select(x < -708, lanes(-708), x);
  const Lanes shifted = bounded * 1.44269504088896340736 + SHIFTER, n = shifted - SHIFTER;
  const Lanes r = (bounded - n * 0.693147180369123816490) - n * 1.90821492927058770002e-10;
  const Mask exponent = ((Mask)shifted + 1023) << 52;
  return select(x < -708, Lanes{}, series(EXPONENTIAL, r) * (Lanes)exponent);
}

// log x for normal x > 0, from 2 artanh((m - 1)/(m + 1)) of the mantissa m in [1/√2, √2).
[[gnu::always_inline]] inline Lanes logarithm(Lanes x) {
  const Mask shifted = (Mask)x - 0x3fe6a09e667f3bcdLL;  // so that the mantissa starts at 1/√2
  const Lanes e = (Lanes)((shifted >> 52) + (Mask)lanes(SHIFTER)) - SHIFTER;
  const Lanes m = (Lanes)((shifted & 0x000fffffffffffffLL) + 0x3fe6a09e667f3bcdLL);
  const Lanes s = (m - 1) / (m + 1);
  const Lanes log = e * 0.693147180369123816490 + (s * series(LOGARITHM, s * s) + e * 1.90821492927058770002e-10);
  return select(x == x, log, x);
}

// 1/x, where a few digits do.
[[gnu::always_inline]] inline Lanes rough_inverse(Lanes x) {
#if defined(__AVX512F__)
  return (Lanes)_mm512_rcp14_pd((__m512d)x);
#else
  return 1 / x;
#endif
}

// log(1 + x) for x > -1: what the sum's rounding took, a unit in the last place, is given back.
[[gnu::always_inline]] inline Lanes logarithm1p(Lanes x) {
  const Lanes sum = 1 + x;
  return logarithm(sum) + (x - (sum - 1)) * rough_inverse(sum);
}

// sin x and cos x for x >= 0.
[[gnu::always_inline]] inline void sine_cosine(Lanes x, Lanes &sine, Lanes &cosine) {
  const Lanes bounded = select(x < LONG_ANGLE, x, Lanes{});
  const Lanes shifted = bounded * 0.63661977236758134308 + SHIFTER, n = shifted - SHIFTER;
  // π/2 in three pieces, the first two short enough for exact products with n
  const Lanes r = ((bounded - n * 1.57079632673412561417) - n * 6.07710050630396597660e-11) - n * 2.02226624879595063154e-21;
  const Lanes t = r * r;
  const Lanes s = r * series(SINE, t), c = series(COSINE, t);
  const Mask quarter = (Mask)shifted;
  const Mask swap = (quarter & 1) != 0;
  const Lanes a = select(swap, c, s), b = select(swap, s, c);
  sine = select((quarter & 2) != 0, -a, a);
  cosine = select(((quarter + 1) & 2) != 0, -b, b);
  const Mask rest = ~(x < LONG_ANGLE);  // NaN too
  if (any(rest))
    for (int l = 0; l < LANES; ++l)
      if (rest[l]) {
        sine[l] = std::sin(x[l]);
        cosine[l] = std::cos(x[l]);
      }
}

// atan x for x >= 0, also infinite.
[[gnu::always_inline]] inline Lanes arctangent(Lanes x) {
  const Mask big = x > 2.41421356237309504880, mid = x > 0.41421356237309504880;
  const Lanes y = select(big, lanes(-1), select(mid, x - 1, x)) / select(big, x, select(mid, x + 1, lanes(1)));
  return select(big, lanes(HALF_PI), select(mid, lanes(.5 * HALF_PI), Lanes{})) + y * series(ARCTANGENT, y * y);
}

[[gnu::always_inline]] inline Lanes bounded(Lanes z) {
  return select(z > HUGEST, lanes(HUGEST), select(z < -HUGEST, lanes(-HUGEST), z));
}

struct Sloped { Lanes value, slope; };

// sin(√z)/√z and cos(√z), hyperbolic for z < 0, on the disc; the cosine's slope is -sine/2
template <bool SLOPE>
[[gnu::always_inline]] inline void circular_disc(Lanes z, Sloped &sine, Lanes &cosine) {
  sine.value = series<SLOPE>(SINE, z, sine.slope);
  cosine = series(COSINE, z);
}

// tan(√z)/√z, and what is left of 1 after tanh² for z <= 0.
struct Tangent { Sloped ratio; Lanes rest; };

template <bool SLOPE>
[[gnu::noinline]] Tangent tangent(Lanes z) {
  z = bounded(z);
  const Mask near = abs(z) < CIRCULAR_DISC, below = z <= -CIRCULAR_DISC, above = ~(near | below);
  Tangent t{};
  if (any(near)) {
    Sloped sine;
    Lanes cosine;
    const Lanes inside = select(near, z, Lanes{});
    circular_disc<SLOPE>(inside, sine, cosine);
    const Lanes inverse = 1 / cosine;
    t.ratio.value = sine.value * inverse;
    if constexpr (SLOPE) t.ratio.slope = (sine.slope + .5 * t.ratio.value * sine.value) * inverse;
    t.rest = inverse * inverse;
  }
  if (any(below)) {
    const Lanes r = sqrt(select(below, -z, lanes(1))), decay = exponential(-2 * r), inverse = 1 / (1 + decay);
    const Lanes value = (1 - decay) * inverse / r, rest = 4 * decay * inverse * inverse;
    t.ratio.value = select(below, value, t.ratio.value);
    t.rest = select(below, rest, t.rest);
    if constexpr (SLOPE) t.ratio.slope = select(below, .5 * (value - rest) / (r * r), t.ratio.slope);
  }
  if (any(above)) {
    const Lanes square = select(above, z, lanes(1)), r = sqrt(square);
    Lanes sine, cosine;
    sine_cosine(r, sine, cosine);
    const Lanes value = sine / (cosine * r);
    t.ratio.value = select(above, value, t.ratio.value);
    if constexpr (SLOPE)
      t.ratio.slope = select(above, .5 * (1 / (cosine * cosine) - value) / square, t.ratio.slope);
  }
  return t;
}

// sin(√z)/√z and cos(√z), hyperbolic for z < 0.
struct Turn { Sloped sine, cosine; };

template <bool SLOPE>
[[gnu::noinline]] Turn turn(Lanes z) {
  z = bounded(z);
  const Mask near = abs(z) < CIRCULAR_DISC, below = z <= -CIRCULAR_DISC, above = ~(near | below);
  Turn t{};
  if (any(near)) circular_disc<SLOPE>(select(near, z, Lanes{}), t.sine, t.cosine.value);
  const auto far = [&](Mask there, Lanes sine, Lanes cosine, Lanes square) __attribute__((always_inline)) {
    t.sine.value = select(there, sine, t.sine.value);
    t.cosine.value = select(there, cosine, t.cosine.value);
    if constexpr (SLOPE) t.sine.slope = select(there, .5 * (cosine - sine) / square, t.sine.slope);
  };
  if (any(below)) {
    const Lanes square = select(below, z, lanes(-1)), r = sqrt(-square), fall = exponential(-r), grow = 1 / fall;
    far(below, .5 * (grow - fall) / r, .5 * (grow + fall), square);
  }
  if (any(above)) {
    const Lanes square = select(above, z, lanes(1)), r = sqrt(square);
    Lanes sine, cosine;
    sine_cosine(r, sine, cosine);
    far(above, sine / r, cosine, square);
  }
  if constexpr (SLOPE) t.cosine.slope = -.5 * t.sine.value;
  return t;
}

// atan(√z)/√z; at and below z = -1 its value at the last number above, with slope 0. The slope needs the series on its
// disc; the value alone loses no digit in the closed forms until z vanishes beside 1.
template <bool SLOPE>
[[gnu::noinline]] Sloped arctangent_ratio(Lanes z) {
  const Mask outside = z < EPS - 1;
  z = select(outside, lanes(EPS - 1), bounded(z));
  constexpr double DISC = SLOPE ? ARCTANGENT_DISC : EPS * EPS;
  const Mask near = abs(z) < DISC, below = z <= -DISC, above = ~(near | below);
  Sloped a{};
  if (any(near)) a.value = series<SLOPE>(ARCTANGENT, select(near, z, Lanes{}), a.slope);
  if (any(below)) {
    const Lanes inside = select(below, z, lanes(-.5)), r = sqrt(-inside);
    // artanh(r) = log(1 + 2r(1 + r)/(1 - r²))/2, and 1 - r² = 1 + z is exact near the boundary; 1 - r is not
    const Lanes value = .5 * logarithm1p(2 * r * (1 + r) / (1 + inside)) / r;
    a.value = select(below, value, a.value);
    if constexpr (SLOPE) a.slope = select(below, .5 * (1 / (1 + inside) - value) / inside, a.slope);
  }
  if (any(above)) {
    const Lanes square = select(above, z, lanes(1)), r = sqrt(square), value = arctangent(r) / r;
    a.value = select(above, value, a.value);
    if constexpr (SLOPE) a.slope = select(above, .5 * (1 / (1 + square) - value) / square, a.slope);
  }
  if constexpr (SLOPE) a.slope = select(outside, Lanes{}, a.slope);
  return a;
}

// asin(√z)/√z, asinh for z < 0; above z = 1 its value there, with slope 0.
template <bool SLOPE>
[[gnu::noinline]] Sloped arcsine_ratio(Lanes z) {
  const Mask outside = z > 1;
  z = select(outside, lanes(1), bounded(z));
  const Mask near = abs(z) < ARCSINE_DISC, below = z <= -ARCSINE_DISC, above = ~(near | below);
  Sloped a{};
  if (any(near)) a.value = series<SLOPE>(ARCSINE, select(near, z, Lanes{}), a.slope);
  if (any(below)) {
    const Lanes inside = select(below, z, lanes(-1)), r = sqrt(-inside), left = sqrt(1 - inside);
    const Lanes value = logarithm(r + left) / r;
    a.value = select(below, value, a.value);
    if constexpr (SLOPE) a.slope = select(below, .5 * (1 / left - value) / inside, a.slope);
  }
  if (any(above)) {
    const Lanes square = select(above, z, lanes(.5)), r = sqrt(square), left = sqrt(1 - square);
    const Mask end = left <= 0;
    const Lanes value = select(end, lanes(HALF_PI), arctangent(r / left)) / r;
    a.value = select(above, value, a.value);
    if constexpr (SLOPE)
      a.slope = select(above, .5 * (select(end, Lanes{}, 1 / left) - value) / square, a.slope);
  }
  if constexpr (SLOPE) a.slope = select(outside, Lanes{}, a.slope);
  return a;
}

}  // namespace
