// The functions of gyroformer.geometry that act row by row, in double whatever the points' format. Each is the
// torch form's text (parts.py, maps.py, gyro.py, charts.py) on inner products; see there for what each form is for.

#include "chain.hpp"

namespace {

template <class S> [[gnu::always_inline]] inline S conformal(const S &square, const S &k) {
  return at_least(1.0 + k * square, EPS);
}

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

// One vector, scaled.
struct OfOne : Operation {
  static constexpr int IN = 1, BASIS = 1, GRAMS = 1;
  static constexpr int basis[1][MOST_IN] = {{1}}, grams[1][2] = {{0, 0}};
};

#define FINISH(...)                                                                                                  \
  template <class S>                                                                                                 \
  [[gnu::always_inline]] static inline void finish(const S *gram, [[maybe_unused]] const S *square, const S &k,      \
                                                   [[maybe_unused]] double option, S *out) {                         \
    __VA_ARGS__                                                                                                      \
  }

struct ExpMap0 : OfOne { FINISH(out[0] = tan_ratio(k * gram[0]);) };

struct LogMap0 : OfOne { FINISH(out[0] = artan_ratio(k * gram[0]);) };

// the option is 1 less the margin
struct Project : OfOne {
  FINISH(const Mask ball = value(k) < 0;
         const S limit = option * inverse_sqrt(where(ball, -k, 1));
         const S radius = safe_sqrt(gram[0]);
         const Mask outside = ball & (value(radius) > value(limit));
         out[0] = where(outside, limit / where(outside, radius, 1), 1);)
};

struct Dist0 : OfOne {
  static constexpr Gives GIVES = Gives::Number;
  FINISH(out[0] = 2.0 * safe_sqrt(gram[0]) * artan_ratio(k * gram[0]);)
};

struct LambdaX : OfOne {
  static constexpr Gives GIVES = Gives::Number;
  FINISH(out[0] = 2.0 / conformal(gram[0], k);)
};

// A point and a tangent vector at it, which is scaled.
struct OfPointAndVector : Operation {
  static constexpr int IN = 2, BASIS = 2, GRAMS = 1, FIRST = 1;
  static constexpr int basis[2][MOST_IN] = {{1, 0}, {0, 1}}, grams[1][2] = {{0, 0}};
};

struct Transport0 : OfPointAndVector { FINISH(out[0] = constant<S>(0); out[1] = conformal(gram[0], k);) };

struct Transport0Back : OfPointAndVector { FINISH(out[0] = constant<S>(0); out[1] = 1.0 / conformal(gram[0], k);) };

struct ToRiemannian : OfPointAndVector {
  FINISH(const S half = .5 * conformal(gram[0], k); out[0] = constant<S>(0); out[1] = half * half;)
};

struct Norm : OfPointAndVector {
  static constexpr int GRAMS = 2;
  static constexpr Gives GIVES = Gives::Number;
  static constexpr int grams[2][2] = {{0, 0}, {1, 1}};
  FINISH(out[0] = 2.0 * safe_sqrt(gram[1]) / conformal(gram[0], k);)
};

struct Inner : Operation {
  static constexpr int IN = 3, BASIS = 3, GRAMS = 2;
  static constexpr Gives GIVES = Gives::Number;
  static constexpr int basis[3][MOST_IN] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}, grams[2][2] = {{0, 0}, {1, 2}};
  FINISH(const S lambda = 2.0 / conformal(gram[0], k); out[0] = gram[1] * (lambda * lambda);)
};

struct CoAdd : OfPointAndVector {
  static constexpr int GRAMS = 2, FIRST = 0;
  static constexpr int grams[2][2] = {{0, 0}, {1, 1}};
  FINISH(const S cx = conformal(gram[0], k); const S cy = conformal(gram[1], k);
         const S sum = select(value(k) > 0, 1.0 - (1.0 - cx) * (1.0 - cy), cx + cy - cx * cy);
         const Lanes unit = select(value(sum) < 0, lanes(-EPS), lanes(EPS));
         const S denominator = select(abs(value(sum)) < EPS, S(unit), sum);
         out[0] = cy / denominator; out[1] = cx / denominator;)
};

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

// The distance of x from the plane through p with normal a; the option is 1 for a signed one, plus 2 for one times |a|
struct ToPlane : Operation {
  static constexpr int IN = 3, BASIS = 4, GRAMS = 8;
  static constexpr Gives GIVES = Gives::Number;
  static constexpr int basis[4][MOST_IN] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}, {1, -1, 0}};
  static constexpr int grams[8][2] = {{0, 0}, {0, 1}, {1, 1}, {2, 2}, {3, 3}, {0, 2}, {1, 2}, {3, 2}};
  FINISH(const S &xx = gram[0]; const S &xp = gram[1]; const S &pp = gram[2]; const S &between = gram[4];
         const S size = safe_sqrt(gram[3]);
         const S inverse = 1.0 / where(value(size) > 0, size, 1);
         const S along = gram[6] * inverse / conformal(pp, k);
         const Mask apart = (value(k) > 0) & (value(between) > .5 * (value(xx) + value(pp)));
         const S far = gram[5] * inverse - (1.0 - k * xx + 2.0 * k * xp) * along;
         S sine = 2.0 * select(apart, far, gram[7] * inverse + k * between * along) / conformal(xx, k);
         const S z = k * sine * sine;
         // rounding may carry the sine past its end at the plane's pole (k > 0)
         const Mask past = value(z) > 1;
         if (any(past)) sine = select(past, sine * inverse_sqrt(where(past, z, 1)), sine);
         S distance = sine * arsin_ratio(z);
         const int kind = static_cast<int>(option);
         if (!(kind & 1)) distance = absolute(distance);
         out[0] = kind & 2 ? distance * size : distance;)
};

// exp0(r log0 x); the number is r
struct ScalarMul : OfOne {
  static constexpr Takes TAKES = Takes::Number;
  FINISH(const S scale = gram[1] * artan_ratio(k * gram[0]);
         out[0] = scale * tan_ratio(k * (scale * scale * gram[0]));)
};

// exp0(w log0 x), coordinate by coordinate
struct PointwiseMul : Operation {
  static constexpr int IN = 2, BASIS = 3, GRAMS = 2, FIRST = 2;
  static constexpr bool PRODUCT = true;
  static constexpr int basis[3][MOST_IN] = {{1, 0}, {0, 1}}, grams[2][2] = {{1, 1}, {2, 2}};
  FINISH(const S scale = artan_ratio(k * gram[0]);
         out[0] = out[1] = constant<S>(0);
         out[2] = scale * tan_ratio(k * (scale * scale * gram[1]));)
};

// the antipode of the origin is the torch form's: a division by 0 says so
struct Antipode : OfOne {
  FINISH(const Mask sphere = value(k) > 0; out[0] = -1.0 / where(sphere, k * gram[0], 1);)
};

// √|k|; the flat space has a radius as well, FLATTEST of charts.py
template <class S> [[gnu::always_inline]] inline S inverse_radius(const S &k) {
  return safe_sqrt(at_least(absolute(k), std::numeric_limits<float>::min()));
}

struct InverseProjection : OfOne {
  static constexpr Gives GIVES = Gives::Last;
  FINISH(const S conform = conformal(gram[0], k);
         out[0] = 2.0 / conform;
         out[1] = (2.0 - conform) / (conform * inverse_radius(k));)
};

// the pole is the torch form's
struct Projection : OfOne {
  static constexpr int GRAMS = 0;
  static constexpr Takes TAKES = Takes::Last;
  FINISH(const S height = 1.0 + inverse_radius(k) * gram[0];
         out[0] = 1.0 / where(~(abs(value(height)) < EPS), height, 0);)
};

}  // namespace

namespace {

template <class Op, class T>
int run(const Layout &layout, double option, const double *k, const double *number, const void *const *in, void *out) {
  const auto at = [&](int v) { return static_cast<const T *>(in[v]); };
  const Call<T> call{layout, option, k, number, {at(0), at(1), at(2)}};
  if constexpr (std::is_base_of_v<Operation, Op>) return forward<Op, T>(call, static_cast<T *>(out));
  else return forward_chain<Op, T>(call, static_cast<T *>(out));
}

template <class Op, class T>
int run_back(const Layout &layout, double option, const double *k, const double *number, const void *const *in,
             const void *grad, void *const *grads, double *by_k, double *by_number) {
  const auto at = [&](int v) { return static_cast<const T *>(in[v]); };
  const auto to = [&](int v) { return static_cast<T *>(grads[v]); };
  const Call<T> call{layout, option, k, number, {at(0), at(1), at(2)}};
  const Wanted<T> wanted{{to(0), to(1), to(2)}, by_k, by_number};
  if constexpr (std::is_base_of_v<Operation, Op>) return backward<Op, T>(call, static_cast<const T *>(grad), wanted);
  else return backward_chain<Op, T>(call, static_cast<const T *>(grad), wanted);
}

}  // namespace

// name(layout, wide, option, k, number, three vectors, out), and name_backward(layout, wide, option, k, number, three
// vectors, gradient, gradients of the vectors, of k and of the number), null where there is none or none is wanted;
// `wide` says that vectors and results are double, not float. Both return whether a result is NaN
#define ROWS(name, Op) KERNELS(name, Op, double)
#define NARROW_ROWS(name, Op) KERNELS(name, Op, float)  // takes no double
#define KERNELS(name, Op, Wide)                                                                                             \
  extern "C" int gyroformer_##name(const Layout *layout, int wide, double option, const double *k,                    \
                                   const double *number, const void *x, const void *y, const void *z, void *out) {    \
    const void *const in[] = {x, y, z};                                                                               \
    return (wide ? run<Op, Wide> : run<Op, float>)(*layout, option, k, number, in, out);                            \
  }                                                                                                                   \
  extern "C" int gyroformer_##name##_backward(const Layout *layout, int wide, double option, const double *k,         \
                                              const double *number, const void *x, const void *y, const void *z,      \
                                              const void *grad, void *grad_x, void *grad_y, void *grad_z,             \
                                              double *grad_k, double *grad_number) {                                  \
    const void *const in[] = {x, y, z};                                                                               \
    void *const grads[] = {grad_x, grad_y, grad_z};                                                                   \
    return (wide ? run_back<Op, Wide> : run_back<Op, float>)(*layout, option, k, number, in, grad, grads, grad_k,   \
                                                              grad_number);                                           \
  }

ROWS(expmap0, ExpMap0)
ROWS(logmap0, LogMap0)
ROWS(project, Project)
ROWS(dist0, Dist0)
ROWS(lambda_x, LambdaX)
ROWS(parallel_transport0, Transport0)
ROWS(parallel_transport0back, Transport0Back)
ROWS(egrad2rgrad, ToRiemannian)
ROWS(norm, Norm)
ROWS(inner, Inner)
ROWS(mobius_coadd, CoAdd)
ROWS(mobius_add, MobiusAdd)
ROWS(dist, Dist)
ROWS(logmap, LogMap)
ROWS(expmap, ExpMap)
NARROW_ROWS(gyration, Gyration)
NARROW_ROWS(parallel_transport, Transport)
ROWS(geodesic_unit, GeodesicUnit)
ROWS(mobius_scalar_mul, ScalarMul)
ROWS(dist2plane, ToPlane)
ROWS(antipode, Antipode)
ROWS(sproj, Projection)
ROWS(inv_sproj, InverseProjection)
ROWS(mobius_pointwise_mul, PointwiseMul)
ROWS(geodesic, Geodesic)
