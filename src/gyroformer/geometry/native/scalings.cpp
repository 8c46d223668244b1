// Functions that act row by row without a Möbius sum: a vector scaled, or a number made of inner products.

#include "operations.hpp"

namespace {

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
ROWS(mobius_scalar_mul, ScalarMul)
ROWS(dist2plane, ToPlane)
ROWS(antipode, Antipode)
ROWS(sproj, Projection)
ROWS(inv_sproj, InverseProjection)
ROWS(mobius_pointwise_mul, PointwiseMul)
