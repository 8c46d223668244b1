// exp0(M log0 x) for one matrix and many rows, in double whatever their format: P = Mx times a number that depends on
// |x|², |P|² and the curvature. Rows come in panels that stay in the cache; their ends are filled with zeros to whole
// vectors, so that the products have none.

#include <algorithm>

#include "dual.hpp"
#include "layout.hpp"

namespace {

constexpr int PANEL = 64;

template <class S>
[[gnu::always_inline]] inline S scale(const S &xx, const S &pp, const S &k) {
  const S ratio = artan_ratio(k * xx);
  return ratio * tan_ratio(k * (ratio * ratio * pp));
}

// c[a, b] += Σ_i x[a * row + i * inner] y[i, b] for ROWS of a and VECTORS of b; rows of c and y are `step` apart
template <int ROWS, int VECTORS>
[[gnu::always_inline]] inline void tile(double *c, const double *x, int64_t row, int64_t inner, const double *y,
                                        int64_t step, int number) {
  Lanes sums[ROWS][VECTORS] = {};
  for (int i = 0; i < number; ++i) {
    Lanes vectors[VECTORS];
    for (int v = 0; v < VECTORS; ++v) vectors[v] = read(y + i * step + v * LANES);
    for (int a = 0; a < ROWS; ++a)
      for (int v = 0; v < VECTORS; ++v) sums[a][v] += x[a * row + i * inner] * vectors[v];
  }
  for (int a = 0; a < ROWS; ++a)
    for (int v = 0; v < VECTORS; ++v) write(c + a * step + v * LANES, read(c + a * step + v * LANES) + sums[a][v]);
}

[[gnu::noinline]] void product(double *c, int rows, const double *x, int64_t row, int64_t inner, const double *y,
                               int64_t step, int number) {
  for (int64_t b = 0; b < step; b += 2 * LANES) {
    const bool two = b + 2 * LANES <= step;
    const auto rows_from = [&](int a, auto height) __attribute__((always_inline)) {
      constexpr int ROWS = decltype(height)::value;
      double *to = c + a * step + b;
      if (two) tile<ROWS, 2>(to, x + a * row, row, inner, y + b, step, number);
      else tile<ROWS, 1>(to, x + a * row, row, inner, y + b, step, number);
    };
    int a = 0;
    for (; a + 4 <= rows; a += 4) rows_from(a, std::integral_constant<int, 4>());
    for (; a < rows; ++a) rows_from(a, std::integral_constant<int, 1>());
  }
}

// x (rows, from) and m (to, from); `own` says that every row has a curvature of its own
struct Task {
  int64_t rows, from, to, threads;
  bool own;
  const double *k, *m;
};

struct Matrices {  // m and its transpose, rows filled up
  int64_t from, to;
  std::vector<double> m, turned;
  explicit Matrices(const Task &task)
      : from((task.from + LANES - 1) / LANES * LANES), to((task.to + LANES - 1) / LANES * LANES), m(task.to * from),
        turned(task.from * to) {
    for (int64_t i = 0; i < task.to; ++i)
      for (int64_t j = 0; j < task.from; ++j) m[i * from + j] = turned[j * to + i] = task.m[i * task.from + j];
  }
};

template <class T>
struct Panel {
  const Task &task;
  const Matrices &matrices;
  std::vector<double> x, image, grad, by_x;
  int64_t first = 0;
  int count = 0;

  Panel(const Task &task, const Matrices &matrices)
      : task(task), matrices(matrices), x(PANEL * matrices.from), image(PANEL * matrices.to), grad(image.size()),
        by_x(x.size()) {}

  void copy(std::vector<double> &to, int64_t step, const T *from, int64_t width) const {
    for (int l = 0; l < count; ++l)
      each_piece(static_cast<int>(width), [&](Piece piece) {
        write(to.data() + l * step + piece.at, read(from + (first + l) * width, piece));
      });
  }

  void load(const T *from, int64_t row) {
    first = row, count = static_cast<int>(task.rows - row < PANEL ? task.rows - row : PANEL);
    copy(x, matrices.from, from, task.from);
    std::fill(image.begin(), image.end(), 0.0);
    product(image.data(), count, x.data(), matrices.from, 1, matrices.turned.data(), matrices.to, static_cast<int>(task.from));
  }

  // inner products of eight rows from l on
  Lanes products(const std::vector<double> &a, const std::vector<double> &b, int64_t step, int l) const {
    Lanes sums[LANES] = {};
    for (int i = 0; i < LANES; ++i)
      for (int64_t j = 0; j < step; j += LANES) sums[i] += read(a.data() + (l + i) * step + j) * read(b.data() + (l + i) * step + j);
    return joined(sums);
  }
  Lanes curvatures(int l) const {
    Lanes found = lanes(task.k[0]);
    if (task.own)
      for (int i = 0; i < LANES; ++i) found[i] = task.k[l + i < count ? first + l + i : first];
    return found;
  }

  Mask write_results(T *out) const {
    Mask bad{};
    for (int l = 0; l < count; l += LANES) {
      const Lanes xx = products(x, x, matrices.from, l), pp = products(image, image, matrices.to, l);
      const Lanes s = scale(xx, pp, curvatures(l));
      bad |= too_large(xx) | too_large(pp) | too_large(s);
      for (int i = 0; i < LANES && l + i < count; ++i)
        each_piece(static_cast<int>(task.to), [&](Piece piece) {
          write(out + (first + l + i) * task.to, piece, s[i] * read(image.data() + (l + i) * matrices.to + piece.at));
        });
    }
    return bad;
  }

  // what the gradient of the results gives to x and, added, to m (rows filled up) and k; the latter may be null
  Mask give_back(const T *from, T *by_in, double *by_m, double *by_k) {
    using S = Dual<3>;
    copy(grad, matrices.to, from, task.to);
    Mask bad{};
    for (int l = 0; l < count; l += LANES) {
      const Lanes along = products(grad, image, matrices.to, l);
      const S s = scale(S::variable(products(x, x, matrices.from, l), 0), S::variable(products(image, image, matrices.to, l), 1),
                        S::variable(curvatures(l), 2));
      const Lanes by_xx = 2 * along * s.by[0], by_pp = 2 * along * s.by[1], slope = along * s.by[2];
      bad |= too_large(s.value) | too_large(by_xx) | too_large(by_pp) | too_large(slope);
      for (int i = 0; i < LANES && l + i < count; ++i) {
        double *g = grad.data() + (l + i) * matrices.to, *to = by_x.data() + (l + i) * matrices.from;
        const double *p = image.data() + (l + i) * matrices.to, *point = x.data() + (l + i) * matrices.from;
        const double by_g = s.value[i], by_p = by_pp[i], by_point = by_xx[i];
        for (int64_t j = 0; j < matrices.to; j += LANES) write(g + j, by_g * read(g + j) + by_p * read(p + j));
        for (int64_t j = 0; j < matrices.from; j += LANES) write(to + j, by_point * read(point + j));
        if (by_k) by_k[task.own ? first + l + i : 0] += slope[i];
      }
    }
    const int wide = static_cast<int>(task.to);
    product(by_x.data(), count, grad.data(), matrices.to, 1, matrices.m.data(), matrices.from, wide);
    if (by_m) product(by_m, wide, grad.data(), 1, matrices.to, x.data(), matrices.from, count);
    if (by_in)
      for (int l = 0; l < count; ++l)
        each_piece(static_cast<int>(task.from), [&](Piece piece) {
          write(by_in + (first + l) * task.from, piece, read(by_x.data() + l * matrices.from + piece.at));
        });
    return bad;
  }
};

template <class T, class Body>
int each_panel(const Task &task, const Matrices &matrices, const T *x, const Body &body) {
  const int used = task.rows * task.from < 32768 ? 1 : static_cast<int>(task.threads);
  bool found = false;
#pragma omp parallel num_threads(used) if (used > 1) reduction(|| : found)
  {
    Panel<T> panel(task, matrices);
    Mask seen{};
#pragma omp for schedule(static)
    for (int64_t row = 0; row < task.rows; row += PANEL) {
      panel.load(x, row);
      seen |= body(panel, omp_get_thread_num());
    }
    found = any(seen);
  }
  return found;
}

template <class T>
int backward(const Task &task, const T *x, const T *grad, T *by_x, double *by_m, double *by_k) {
  const Matrices matrices(task);
  std::vector<std::vector<double>> sums(task.threads, std::vector<double>(by_m ? task.to * matrices.from : 0));
  std::vector<std::vector<double>> slopes(task.threads, std::vector<double>(by_k ? 1 : 0));
  if (by_k && task.own) std::fill(by_k, by_k + task.rows, 0.0);
  const int found = each_panel(task, matrices, x, [&](Panel<T> &panel, int thread) {
    return panel.give_back(grad, by_x, by_m ? sums[thread].data() : nullptr,
                           by_k ? (task.own ? by_k : slopes[thread].data()) : nullptr);
  });
  if (by_k && !task.own) {
    by_k[0] = 0;
    for (const auto &part : slopes) by_k[0] += part[0];
  }
  for (int64_t i = 0; by_m && i < task.to; ++i)
    for (int64_t j = 0; j < task.from; ++j) {
      by_m[i * task.from + j] = 0;
      for (const auto &part : sums) by_m[i * task.from + j] += part[i * matrices.from + j];
    }
  return found;
}

}  // namespace

extern "C" {

// `wide` says that x, its gradients and results are double, not float; m, k and theirs always are. Both return whether
// a result may be NaN
int gyroformer_matvec(int wide, int own, int64_t rows, int64_t from, int64_t to, int64_t threads, const double *k,
                      const double *m, const void *x, void *out) {
  const Task task{rows, from, to, threads, own != 0, k, m};
  const Matrices matrices(task);
  const auto run = [&](auto one) {
    using T = decltype(one);
    return each_panel(task, matrices, static_cast<const T *>(x),
                      [&](Panel<T> &panel, int) { return panel.write_results(static_cast<T *>(out)); });
  };
  return wide ? run(0.0) : run(0.f);
}

// gradients that are null are not wanted
int gyroformer_matvec_backward(int wide, int own, int64_t rows, int64_t from, int64_t to, int64_t threads,
                               const double *k, const double *m, const void *x, const void *grad, void *by_x,
                               double *by_m, double *by_k) {
  const Task task{rows, from, to, threads, own != 0, k, m};
  const auto run = [&](auto one) {
    using T = decltype(one);
    return backward<T>(task, static_cast<const T *>(x), static_cast<const T *>(grad), static_cast<T *>(by_x), by_m, by_k);
  };
  return wide ? run(0.0) : run(0.f);
}

}  // extern "C"
