// Weighted midpoints and their gradients, in double whatever the points' format; the mathematics is that of
// gyroformer/geometry/midpoint.py, where each form is explained. Eight results at a time, whose points come one after
// the other.

#include <omp.h>

#include "columns.hpp"
#include "dual.hpp"

namespace {

// outer results of `number` points each, `width` coordinates
struct Sizes { int64_t outer, number, width; };

// The factor of N in the midpoint, from |N|², D and k, whose signs are already those of a positive total.
template <class S>
[[gnu::always_inline]] inline S back_to_ball(const S &square, const S &d, const S &k) {
  const S squared = k * square, root = safe_sqrt(d * d + squared);
  const Mask beyond = (value(d) < 0) & (value(squared) > 0);
  const S upper = where(~beyond, d + root, 1);
  const S regular = 1.0 / where(value(upper) > 0, upper, 1);
  return select(beyond, (root - d) / where(beyond, squared, 1), regular);
}

template <class T>
class Midpoints {
  const Sizes &s;
  const T *points, *weights;  // (outer, number, width), (outer, number); the latter null where all are 1
  Scratch memory;
  Lanes *x, *n;
  Lanes k, d, total, largest, flip;
  int64_t first = 0;
  int count = 0;

 public:
  Midpoints(const Sizes &sizes, const T *points, const T *weights)
      : s(sizes), points(points), weights(weights), memory(3 * sizes.width), x(memory.begin), n(x + sizes.width) {}

  Lanes *gradient() { return n + s.width; }

  // N, D and the sum of the weights
  void add_up(int64_t row, int rows, const double *curvatures) {
    first = row, count = rows;
    k = total = d = Lanes{};
    for (int l = 0; l < count; ++l) k[l] = curvatures[first + l];
    for (int64_t j = 0; j < s.width; ++j) n[j] = Lanes{};
    measure_weights();
    for (int64_t m = 0; m < s.number; ++m) {
      const Lanes weight = take(m), share = weight / conformal(product(x, x));
      for (int64_t j = 0; j < s.width; ++j) n[j] += 2 * share * x[j];
      d += 2 * share - weight;
      total += weight;
    }
    flip = select(select(k > 0, total, d) < 0, lanes(-1), lanes(1));
    for (int64_t j = 0; j < s.width; ++j) n[j] *= flip;
    d *= flip;
  }

  void write_means(T *out) {
    const Lanes factor = back_to_ball(product(n, n), d, k);
    for (int64_t j = 0; j < s.width; ++j) n[j] *= factor;
    store_as(out + first * s.width, n, static_cast<int>(s.width), count);
  }

  // What `gradient` of the means gives to points, weights (may be null) and curvatures
  void give_back(T *by_points, T *by_weights, double *by_k) {
    using S = Dual<3>;
    const S c = back_to_ball(S::variable(product(n, n), 0), S::variable(d, 1), S::variable(k, 2));
    Lanes *g = gradient();
    const Lanes along = product(g, n), by_d = along * c.by[1] * flip;
    Lanes slope = along * c.by[2];
    for (int64_t j = 0; j < s.width; ++j) g[j] = (c.value * g[j] + 2 * along * c.by[0] * n[j]) * flip;
    for (int64_t m = 0; m < s.number; ++m) {
      const Lanes weight = take(m), square = product(x, x), inverse = 1 / conformal(square), share = weight * inverse;
      const Lanes by_share = 2 * (product(g, x) + by_d);
      // where the conformal factor is held at its floor it does not depend on the point
      const Lanes by_raw = select(1 + k * square < EPS, Lanes{}, -by_share * share * inverse);
      slope += by_raw * square;
      for (int64_t j = 0; j < s.width; ++j) x[j] = 2 * share * g[j] + 2 * k * by_raw * x[j];
      write_rows(by_points, m);
      if (by_weights)
        for (int l = 0; l < count; ++l)
          by_weights[(first + l) * s.number + m] = static_cast<T>((by_share[l] * inverse[l] - by_d[l]) / largest[l]);
    }
    for (int l = 0; l < count; ++l) by_k[first + l] = slope[l];
  }

 private:
  // the largest weight of each result is made 1: a common factor changes nothing, and no square overflows
  void measure_weights() {
    largest = Lanes{};
    if (weights)
      for (int64_t m = 0; m < s.number; ++m) {
        const Lanes size = abs(weight_of(m));
        largest = select(size > largest, size, largest);
      }
    largest = select(largest > 0, largest, lanes(1));
  }

  Lanes weight_of(int64_t m) const {
    Lanes found{};
    for (int l = 0; l < count; ++l) found[l] = static_cast<double>(weights[(first + l) * s.number + m]);
    return found;
  }

  // point m of each result into x; its weight
  Lanes take(int64_t m) {
    int64_t at[LANES];
    for (int l = 0; l < LANES; ++l) at[l] = (first + l) * s.number + m;
    load_as(x, points, at, static_cast<int>(s.width), count);
    return weights ? weight_of(m) / largest : lanes(1);
  }

  Lanes product(const Lanes *a, const Lanes *b) const {
    Lanes sum{};
    for (int64_t j = 0; j < s.width; ++j) sum += a[j] * b[j];
    return sum;
  }

  Lanes conformal(Lanes square) const {
    const Lanes raw = 1 + k * square;
    return select(raw < EPS, lanes(EPS), raw);
  }

  void write_rows(T *to, int64_t m) {
    const double *in = reinterpret_cast<const double *>(x);
    const int64_t whole = count == LANES ? s.width - s.width % LANES : 0;
    for (int64_t j = 0; j < whole; j += LANES) {
      transpose(x + j);
      for (int l = 0; l < LANES; ++l) write(to + ((first + l) * s.number + m) * s.width + j, x[j + l]);
    }
    for (int l = 0; l < count; ++l)
      for (int64_t j = whole; j < s.width; ++j)
        to[((first + l) * s.number + m) * s.width + j] = static_cast<T>(in[j * LANES + l]);
  }
};

template <class T, class Body>
void each_result(const Sizes &s, const T *points, const T *weights, const double *k, int threads, const Body &body) {
  const int used = s.outer * s.number * s.width < 32768 ? 1 : threads;
#pragma omp parallel num_threads(used) if (used > 1)
  {
    Midpoints<T> midpoints(s, points, weights);
#pragma omp for schedule(static)
    for (int64_t row = 0; row < s.outer; row += LANES) {
      midpoints.add_up(row, static_cast<int>(s.outer - row < LANES ? s.outer - row : LANES), k);
      body(midpoints, row);
    }
  }
}

template <class T>
void forward(const Sizes &s, const T *points, const T *weights, const double *k, T *out, int threads) {
  each_result(s, points, weights, k, threads, [&](Midpoints<T> &midpoints, int64_t) { midpoints.write_means(out); });
}

template <class T>
void backward(const Sizes &s, const T *points, const T *weights, const double *k, const T *grad, T *by_points,
              T *by_weights, double *by_k, int threads) {
  each_result(s, points, weights, k, threads, [&](Midpoints<T> &midpoints, int64_t row) {
    int64_t at[LANES];
    for (int l = 0; l < LANES; ++l) at[l] = row + l;
    load_as(midpoints.gradient(), grad, at, static_cast<int>(s.width),
            static_cast<int>(s.outer - row < LANES ? s.outer - row : LANES));
    midpoints.give_back(by_points, by_weights, by_k);
  });
}

}  // namespace

extern "C" {

// `wide` says that all but k (outer) are double, not float
void gyroformer_midpoint(int wide, const void *points, const void *weights, const double *k, void *out, int64_t outer,
                         int64_t number, int64_t width, int threads) {
  const Sizes s{outer, number, width};
  const auto run = [&](auto one) {
    using T = decltype(one);
    forward<T>(s, static_cast<const T *>(points), static_cast<const T *>(weights), k, static_cast<T *>(out), threads);
  };
  wide ? run(0.0) : run(0.f);
}

void gyroformer_midpoint_backward(int wide, const void *points, const void *weights, const double *k, const void *grad,
                                  void *by_points, void *by_weights, double *by_k, int64_t outer, int64_t number,
                                  int64_t width, int threads) {
  const Sizes s{outer, number, width};
  const auto run = [&](auto one) {
    using T = decltype(one);
    backward<T>(s, static_cast<const T *>(points), static_cast<const T *>(weights), k, static_cast<const T *>(grad),
                static_cast<T *>(by_points), static_cast<T *>(by_weights), by_k, threads);
  };
  wide ? run(0.0) : run(0.f);
}

}  // extern "C"
