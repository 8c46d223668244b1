// Functions that act row by row and are made of a Möbius sum.

#include "operations.hpp"

namespace {

// x ⊕ p/C as (along x, along p, along the total Cx + p) over its denominator; see parts.gyro_sum.
template <class S>
struct GyroSum {
  S by_x, by_point, by_total, denominator, conformal_x;
  Mask at_pole;
};

struct Cancelling {
  Lanes scale, mixed;
  Mask cancels;
  [[gnu::always_inline]] Cancelling(Lanes xx, Lanes xp, Lanes pp, Lanes k, Lanes c)
      : scale(c * c + (k * xx) * (k * pp)), mixed(2 * k * c * xp), cancels(mixed > .5 * scale) {}
};

// `direct` is |Cx - k|x|²p|², read where the sum is near the pole; `share` is n of parts.gyro_sum
template <class S>
[[gnu::always_inline]] inline GyroSum<S> gyro_sum(const S &xx, const S &xp, const S &pp, const S &total, const S &direct,
                                                  const S &k, const S &c, const S &share) {
  const Mask sphere = value(k) > 0;
  GyroSum<S> sum;
  sum.conformal_x = conformal(xx, k);
  const Mask opposed = value(total) < .5 * (value(c) * value(c) * value(xx) + value(pp));
  const S both = sum.conformal_x * c;
  sum.by_x = select(opposed, -(k * total), c * c - 2.0 * k * c * xp - k * pp);
  sum.by_point = where(~opposed, both, 0);
  sum.by_total = where(opposed, both, 0);
  const S scale = c * c + (k * xx) * (k * pp), mixed = 2.0 * k * c * xp;
  const Mask cancels = value(mixed) > .5 * value(scale);
  S denominator = scale - mixed;
  if (any(cancels)) {
    const S by_pole = direct / where(cancels & sphere, xx, 1);
    denominator = select(cancels, select(sphere, by_pole, sum.conformal_x * share - k * total), denominator);
  }
  const S floor = where(sphere, (EPS * EPS) * scale, 0) + TINY;
  sum.at_pole = value(denominator) <= value(floor);
  sum.denominator = select(sum.at_pole, floor, denominator);
  return sum;
}

// Half the distance over |x - y|, and half the distance; see parts.py.
template <class S>
[[gnu::always_inline]] inline S half_distance_ratio(const S &between, const S &product, const S &denominator, const S &k) {
  const Mask ball = value(k) <= 0;
  S ratio = constant<S>(0);
  if (any(ball)) {
    const S safe = where(ball, product, 1);
    ratio = arsin_ratio(where(ball, k * between, 0) / safe) * inverse_sqrt(safe);
  }
  if (any(~ball)) {
    const S safe = where(~ball, denominator, 1);
    ratio = select(ball, ratio, artan_ratio(where(~ball, k * between, 0) / safe) * inverse_sqrt(safe));
  }
  return ratio;
}

template <class S>
[[gnu::always_inline]] inline S half_distance(const S &between, const S &product, const S &denominator, const S &k) {
  const Mask far = (value(k) > 0) & (value(k * between) > value(denominator));
  S half = safe_sqrt(between) * half_distance_ratio(between, product, denominator, k);
  if (any(far)) {
    const S rest = where(far, denominator, 0) / where(far, k * between, 1);
    const S beyond = (HALF_PI - safe_sqrt(rest) * artan_ratio(rest)) * inverse_sqrt(where(far, k, 1));
    half = select(far, beyond, half);
  }
  return half;
}

// Two points x and y of which the first comes with the sign SIGN, and their sum. Near the pole (k > 0) the vector
// `direct`, x - k|x|²y, is measured.
template <int SIGN>
struct OfTwoPoints : Operation {
  static constexpr int IN = 2, BASIS = 3, GRAMS = 4, PROBES = 1;
  static constexpr int basis[3][MOST_IN] = {{SIGN, 0}, {0, 1}, {SIGN, 1}};
  static constexpr int grams[4][2] = {{0, 0}, {0, 1}, {1, 1}, {2, 2}};

  [[gnu::always_inline]] static inline Mask probed(const Lanes *gram, Lanes k) {
    return Cancelling(gram[0], gram[1], gram[2], k, lanes(1)).cancels & (k > 0);
  }
  template <class S>
  [[gnu::always_inline]] static inline void probe(const S *gram, const S &k, S (*coefficients)[3]) {
    coefficients[0][0] = constant<S>(1);
    coefficients[0][1] = -(k * gram[0]);
    coefficients[0][2] = constant<S>(0);
  }
  template <class S>
  [[gnu::always_inline]] static inline GyroSum<S> sum(const S *gram, const S *square, const S &k) {
    const S one = constant<S>(1);
    return gyro_sum(gram[0], gram[1], gram[2], gram[3], square[0], k, one, conformal(gram[2], k));
  }
};

struct MobiusAdd : OfTwoPoints<1> {
  FINISH(const GyroSum<S> s = sum(gram, square, k);
         const S inverse = 1.0 / s.denominator;
         // at the pole the direction is lost: a point 1/eps away along the total stands for it
         const S far = inverse_sqrt(s.denominator);
         out[0] = where(~s.at_pole, s.by_x * inverse, 0);
         out[1] = where(~s.at_pole, s.by_point * inverse, 0);
         out[2] = select(s.at_pole, far, s.by_total * inverse);
         out[3] = constant<S>(0);)
};

struct Dist : OfTwoPoints<-1> {
  static constexpr Gives GIVES = Gives::Number;
  FINISH(const GyroSum<S> s = sum(gram, square, k);
         out[0] = 2.0 * half_distance(gram[3], s.conformal_x * conformal(gram[2], k), s.denominator, k);)
};

struct LogMap : OfTwoPoints<-1> {
  FINISH(const GyroSum<S> s = sum(gram, square, k);
         const S product = s.conformal_x * conformal(gram[2], k);
         const S ratio = s.conformal_x * half_distance_ratio(gram[3], product, s.denominator, k);
         // |numerator| = |x - y| √D, so numerator/√D has the length of x - y
         const S scale = ratio * inverse_sqrt(s.denominator);
         out[0] = where(~s.at_pole, s.by_x * scale, 0);
         out[1] = where(~s.at_pole, s.by_point * scale, 0);
         out[2] = select(s.at_pole, ratio, s.by_total * scale);
         out[3] = constant<S>(0);)
};

// x and a tangent vector u there, followed for twice the length of h u, where h is Own's `half`: x ⊕ p/C with p = s u;
// the probes are the total Cx + su, and `direct`.
template <class Own>
struct Walk : Operation {
  static constexpr int IN = 2, BASIS = 2, GRAMS = 3, PROBES = 2;
  static constexpr int basis[2][MOST_IN] = {{1, 0}, {0, 1}};
  static constexpr int grams[3][2] = {{0, 0}, {0, 1}, {1, 1}};

  template <class S>
  struct Step { S scale, cosine, share; };

  template <class S>
  [[gnu::always_inline]] static inline Step<S> step(const S *gram, const S &k) {
    const Mask sphere = value(k) > 0;
    const S half = Own::half(gram, k);
    const S z = k * (gram[2] * (half * half));
    Step<S> s{constant<S>(0), constant<S>(1), constant<S>(1)};
    if (any(sphere)) {
      const S angle = where(sphere, z, 0);
      const Turn t = turn<sloped<S>>(value(angle));
      s.scale = chain(angle, t.sine);
      s.cosine = where(sphere, chain(angle, t.cosine), 1);
    }
    if (any(~sphere)) {
      const S reach = where(~sphere, z, 0);
      const Tangent t = tangent<sloped<S>>(value(reach));
      s.scale = select(sphere, s.scale, chain(reach, t.ratio));
      s.share = where(~sphere, chain(reach, {t.rest, t.rest * t.ratio.value}), 1);
    }
    s.scale = s.scale * half;
    return s;
  }
  [[gnu::always_inline]] static inline Mask probed(const Lanes *, Lanes k) { return k == k; }  // always: the total is one
  template <class S>
  [[gnu::always_inline]] static inline void probe(const S *gram, const S &k, S (*coefficients)[2]) {
    const Step<S> s = step(gram, k);
    coefficients[0][0] = coefficients[1][0] = s.cosine;
    coefficients[0][1] = s.scale;
    coefficients[1][1] = -(k * gram[0] * s.scale);
  }
  FINISH(const Step<S> s = step(gram, k);
         const GyroSum<S> sum = gyro_sum(gram[0], gram[1] * s.scale, gram[2] * (s.scale * s.scale), square[0],
                                         square[1], k, s.cosine, s.share);
         const S inverse = 1.0 / sum.denominator;
         out[0] = where(~sum.at_pole, sum.by_x * inverse, 0);
         out[1] = where(~sum.at_pole, sum.by_point * s.scale * inverse, 0);
         out[2] = select(sum.at_pole, inverse_sqrt(sum.denominator), sum.by_total * inverse);
         out[3] = constant<S>(0);)
};

struct ExpMap : Walk<ExpMap> {
  template <class S>
  [[gnu::always_inline]] static inline S half(const S *gram, const S &k) { return 1.0 / conformal(gram[0], k); }
};

// the number is the distance
struct GeodesicUnit : Walk<GeodesicUnit> {
  static constexpr Takes TAKES = Takes::Number;
  template <class S>
  [[gnu::always_inline]] static inline S half(const S *gram, const S &) {
    const S norm = safe_sqrt(gram[2]);
    return .5 * gram[3] / where(value(norm) > 0, norm, 1);
  }
};

// a fraction, the number, of the way from x to y
struct Geodesic {
  struct First : LogMap {
    static constexpr Takes TAKES = Takes::Number;
    FINISH(LogMap::finish(gram, square, k, option, out);
           for (int i = 0; i < BASIS; ++i) out[i] = out[i] * gram[GRAMS];)
  };
  using Second = ExpMap;
};

// u turned in the plane of a and b (gyro.rotate): u + out[0] a + out[1] b.
template <class S>
[[gnu::always_inline]] inline void rotate(const S &aa, const S &ab, const S &bb, const S &au, const S &bu, const S &p,
                                          const S &denominator, const S &k, S &by_a, S &by_b) {
  const S factor = 2.0 * k / denominator;
  by_a = -(factor * (p * bu - k * (ab * bu - bb * au)));
  by_b = factor * (p * au - k * (aa * bu - ab * au));
}

// 1 - k⟨a,b⟩, in the ball as a sum of positive terms.
template <class S>
[[gnu::always_inline]] inline S half_angle_cosine(const S &aa, const S &ab, const S &bb, const S &total, const S &k) {
  return select(value(k) > 0, 1.0 - k * ab, .5 * (conformal(aa, k) + conformal(bb, k) - k * total));
}

// gyr[a, b]u
struct Gyration : Operation {
  static constexpr int IN = 3, BASIS = 4, GRAMS = 6, PROBES = 1;
  static constexpr int basis[4][MOST_IN] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}, {1, 1, 0}};
  static constexpr int grams[6][2] = {{0, 0}, {0, 1}, {1, 1}, {3, 3}, {0, 2}, {1, 2}};
  [[gnu::always_inline]] static inline Mask probed(const Lanes *gram, Lanes k) {
    return Cancelling(gram[0], gram[1], gram[2], k, lanes(1)).cancels & (k > 0);
  }
  template <class S>
  [[gnu::always_inline]] static inline void probe(const S *gram, const S &k, S (*coefficients)[4]) {
    coefficients[0][0] = constant<S>(1);
    coefficients[0][1] = -(k * gram[0]);
    coefficients[0][2] = coefficients[0][3] = constant<S>(0);
  }
  FINISH(const GyroSum<S> s = gyro_sum(gram[0], gram[1], gram[2], gram[3], square[0], k, constant<S>(1),
                                       conformal(gram[2], k));
         const S p = half_angle_cosine(gram[0], gram[1], gram[2], gram[3], k);
         rotate(gram[0], gram[1], gram[2], gram[4], gram[5], p, s.denominator, k, out[0], out[1]);
         out[2] = constant<S>(1); out[3] = out[4] = constant<S>(0);)
};

// gyr[y, -x]v λx/λy: the plane of y and -x is that of y - x and -x, and y - x does not cancel
struct Transport : Operation {
  static constexpr int IN = 3, BASIS = 4, GRAMS = 7, PROBES = 1;
  static constexpr int basis[4][MOST_IN] = {{-1, 0, 0}, {0, 1, 0}, {0, 0, 1}, {-1, 1, 0}};
  static constexpr int grams[7][2] = {{0, 0}, {0, 1}, {1, 1}, {3, 3}, {3, 0}, {3, 2}, {0, 2}};
  [[gnu::always_inline]] static inline Mask probed(const Lanes *gram, Lanes k) { return Gyration::probed(gram, k); }
  template <class S>
  [[gnu::always_inline]] static inline void probe(const S *gram, const S &k, S (*coefficients)[4]) {
    Gyration::probe(gram, k, coefficients);
  }
  FINISH(const S cy = conformal(gram[2], k);
         const GyroSum<S> s = gyro_sum(gram[0], gram[1], gram[2], gram[3], square[0], k, constant<S>(1), cy);
         const S p = half_angle_cosine(gram[0], gram[1], gram[2], gram[3], k);
         const S scale = cy / s.conformal_x;
         S by_total; S by_x;
         rotate(gram[3], gram[4], gram[0], gram[5], gram[6], p, s.denominator, k, by_total, by_x);
         out[0] = by_x * scale; out[1] = constant<S>(0); out[2] = scale; out[3] = by_total * scale;
         out[4] = constant<S>(0);)
};

}  // namespace

ROWS(mobius_add, MobiusAdd)
ROWS(dist, Dist)
ROWS(logmap, LogMap)
ROWS(expmap, ExpMap)
NARROW_ROWS(gyration, Gyration)
NARROW_ROWS(parallel_transport, Transport)
ROWS(geodesic_unit, GeodesicUnit)
ROWS(geodesic, Geodesic)
