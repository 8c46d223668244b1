// A number with its derivatives in N variables: what a kernel computes on Dual is its value and its gradient.
// Everything below is also defined on Lanes, so that one text serves both.
#pragma once

#include "lanes.hpp"

namespace {

template <int N>
struct Dual {
  Lanes value;
  Lanes by[N];
  Dual() = default;
  [[gnu::always_inline]] Dual(double constant) : value(lanes(constant)) {
    for (int n = 0; n < N; ++n) by[n] = Lanes{};
  }
  [[gnu::always_inline]] Dual(Lanes constant) : value(constant) {
    for (int n = 0; n < N; ++n) by[n] = Lanes{};
  }
  [[gnu::always_inline]] static Dual variable(Lanes value, int which) {
    Dual x(value);
    x.by[which] = lanes(1);
    return x;
  }
};

#define DUAL template <int N> [[gnu::always_inline]] inline Dual<N>
#define EACH for (int n = 0; n < N; ++n)

DUAL operator+(const Dual<N> &a, const Dual<N> &b) { Dual<N> c; c.value = a.value + b.value; EACH c.by[n] = a.by[n] + b.by[n]; return c; }
DUAL operator-(const Dual<N> &a, const Dual<N> &b) { Dual<N> c; c.value = a.value - b.value; EACH c.by[n] = a.by[n] - b.by[n]; return c; }
DUAL operator*(const Dual<N> &a, const Dual<N> &b) { Dual<N> c; c.value = a.value * b.value; EACH c.by[n] = a.by[n] * b.value + a.value * b.by[n]; return c; }
DUAL operator/(const Dual<N> &a, const Dual<N> &b) {
  Dual<N> c;
  const Lanes inverse = 1 / b.value;
  c.value = a.value / b.value;
  EACH c.by[n] = (a.by[n] - c.value * b.by[n]) * inverse;
  return c;
}
DUAL operator+(double a, const Dual<N> &b) { Dual<N> c = b; c.value = a + b.value; return c; }
DUAL operator+(const Dual<N> &a, double b) { return b + a; }
DUAL operator-(const Dual<N> &a) { Dual<N> c; c.value = -a.value; EACH c.by[n] = -a.by[n]; return c; }
DUAL operator-(double a, const Dual<N> &b) { Dual<N> c = -b; c.value = a - b.value; return c; }
DUAL operator-(const Dual<N> &a, double b) { return a + -b; }
DUAL operator*(double a, const Dual<N> &b) { Dual<N> c; c.value = a * b.value; EACH c.by[n] = a * b.by[n]; return c; }
DUAL operator/(double a, const Dual<N> &b) {
  Dual<N> c;
  c.value = a / b.value;
  const Lanes slope = -c.value / b.value;
  EACH c.by[n] = slope * b.by[n];
  return c;
}
DUAL select(Mask m, const Dual<N> &a, const Dual<N> &b) {
  Dual<N> c;
  c.value = select(m, a.value, b.value);
  EACH c.by[n] = select(m, a.by[n], b.by[n]);
  return c;
}
DUAL chain(const Dual<N> &z, const Sloped &f) { Dual<N> c; c.value = f.value; EACH c.by[n] = f.slope * z.by[n]; return c; }

#undef DUAL
#undef EACH

[[gnu::always_inline]] inline Lanes value(Lanes x) { return x; }
template <int N> [[gnu::always_inline]] inline Lanes value(const Dual<N> &x) { return x.value; }

[[gnu::always_inline]] inline Lanes chain(Lanes, const Sloped &f) { return f.value; }

template <class S> constexpr bool sloped = true;
template <> inline constexpr bool sloped<Lanes> = false;

template <class S> [[gnu::always_inline]] inline S constant(double x) {
  if constexpr (sloped<S>) return S(x); else return lanes(x);
}
// a where m, a constant elsewhere
template <class S> [[gnu::always_inline]] inline S where(Mask m, const S &a, double other) {
  return select(m, a, constant<S>(other));
}

// √x, 0 with slope 0 for x <= 0.
template <class S> [[gnu::always_inline]] inline S safe_sqrt(const S &x) {
  const Mask empty = value(x) <= 0;
  const Lanes root = sqrt(select(empty, lanes(1), value(x)));
  return chain(x, {select(empty, Lanes{}, root), select(empty, Lanes{}, .5 / root)});
}
// 1/√x for x > 0.
template <class S> [[gnu::always_inline]] inline S inverse_sqrt(const S &x) {
  const Lanes inverse = 1 / sqrt(value(x));
  return chain(x, {inverse, -.5 * inverse / value(x)});
}
template <class S> [[gnu::always_inline]] inline S absolute(const S &x) {
  return select(value(x) < 0, -x, x);
}
template <class S> [[gnu::always_inline]] inline S at_least(const S &x, double least) {
  return where(~(value(x) < least), x, least);  // NaN passes
}
template <class S> [[gnu::always_inline]] inline S tan_ratio(const S &z) { return chain(z, tangent<sloped<S>>(value(z)).ratio); }
template <class S> [[gnu::always_inline]] inline S artan_ratio(const S &z) { return chain(z, arctangent_ratio<sloped<S>>(value(z))); }
template <class S> [[gnu::always_inline]] inline S arsin_ratio(const S &z) { return chain(z, arcsine_ratio<sloped<S>>(value(z))); }

}  // namespace
