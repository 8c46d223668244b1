// Sums of exp(-d²) over all pairs of points of a pseudo-hyperboloid that are not adjacent, forward and backward.
//
// The mathematics is that of gyroformer/ops/pseudo_pairs.py: products and what is added up of them in double, the way
// from a product in float. Each pair is met once, with the column behind the row, and counts for both. A thread takes
// every n-th block of rows and adds to columns in a buffer of its own; the buffers are joined in the threads' order, so
// that the same number of threads gives the same bits.

#include <algorithm>
#include <vector>
#include <omp.h>

#include "lanes.hpp"
#include "pair_terms.hpp"

namespace {

constexpr int ROWS = 16;           // rows that meet a tile while it is in the nearest cache
constexpr double FARTHEST = 1e19;  // as in gyroformer/ops/pseudo_pairs.py
constexpr int DOUBLES = 8, GROUPS = LANES / DOUBLES;
typedef double Doubles __attribute__((vector_size(8 * DOUBLES)));

[[gnu::always_inline]] inline Doubles get(const double *from) {
  Doubles x;
  std::memcpy(&x, from, sizeof x);
  return x;
}

[[gnu::always_inline]] inline void put(double *to, Doubles x) { std::memcpy(to, &x, sizeof x); }

struct Points {  // the points as rows and, transposed, as tiles of LANES columns; the neighbours
  int64_t nodes, tiles;
  int width;
  Lists left;
  float radius, poison;               // radius: squared, the factor of ω² in d²
  std::vector<double, Aligned<double>> mirrored, tile;  // Σ X [nodes][width], X [tiles][width][LANES]
  std::vector<float> noise, size;     // how large a product's rounding is, as a row's and a column's factor
};

Points prepare(const double *x, const double *radius, Lists left, int64_t nodes, int width, int time, float unit) {
  Points g{nodes, (nodes + LANES - 1) / LANES, width, left, static_cast<float>(*radius), 0.f, {}, {}, {}, {}};
  g.mirrored.resize(nodes * width), g.tile.assign(static_cast<size_t>(g.tiles) * width * LANES, 0.0);
  g.noise.resize(nodes), g.size.assign(g.tiles * LANES, 0.f);
  double poison = 0.0 * *radius;
  for (int64_t u = 0; u < nodes; ++u) {
    double square = 0;
    for (int j = 0; j < width; ++j) {
      const double one = x[u * width + j];
      g.mirrored[u * width + j] = j < time ? one : -one;
      g.tile[((u / LANES) * width + j) * LANES + u % LANES] = one;
      square += one * one, poison += 0.0 * one;
    }
    g.size[u] = static_cast<float>(std::sqrt(square)), g.noise[u] = static_cast<float>(unit * std::sqrt(square));
  }
  g.poison = static_cast<float>(poison);
  return g;
}

// q/2 of a row and a tile's LANES columns
[[gnu::always_inline]] inline void products(double *half, const double *row, const double *tile, int width) {
  Doubles sum[GROUPS] = {};
  for (int j = 0; j < width; ++j)
    for (int i = 0; i < GROUPS; ++i) sum[i] += get(tile + j * LANES + i * DOUBLES) * row[j];
  for (int i = 0; i < GROUPS; ++i) put(half + i * DOUBLES, .5 * sum[i]);
}

// arsinh(√w)/√w for 0 <= w < NEAR
[[gnu::always_inline]] inline float arsinh_near(float w) {
  return 1.f - w * (1.f / 6 - w * (3.f / 40 - w * (5.f / 112 - w * (35.f / 1152 - w * (63.f / 2816 - w * (231.f / 13312 -
                    w * (143.f / 10240)))))));
}

// ω² times the radius; with BACK also the derivative of ω² in q and ω² itself
template <bool BACK>
void squares(const double *half, float noise, const float *size, float radius, float *square, float *slope,
             float *bare) {
  alignas(64) float w[LANES], product[LANES], inverse[LANES];
  FOR_LANES {
    const double away = std::fabs(half[l]) - .5;
    const float excess = static_cast<float>(away < FARTHEST ? away : FARTHEST);
    w[l] = std::fabs(excess) > noise * size[l] ? excess : 0.f;
    product[l] = w[l] != 0.f ? std::fabs(w[l]) * (1.f + w[l]) : 1.f;
  }
  inverse_roots(inverse, product);
  FOR_LANES {
    const float above = positive(w[l]), below = positive(-w[l]), root = std::sqrt(std::fabs(w[l]));
    const bool near = above < NEAR, small = below < .25f, far = half[l] < -noise * size[l];
    // the whole angle 2 arsinh √w = log(1 + 2w + 2√(w(1 + w))) needs one root
    const float open = logarithm(1.f + 2.f * ((near ? 1.f : above) + (near ? 1.f : product[l] * inverse[l])));
    const float hyperbolic = near ? 2.f * root * arsinh_near(near ? above : 0.f) : open;
    // asin s = π/2 - 2 asin √((1 - s)/2) for a large sine
    const float rest = small ? below : .5f * (1.f - root), part = small ? root : std::sqrt(rest);
    const float angle = part * asin_quarter(rest), circular = small ? 2.f * angle : 2.f * HALF_PI - 4.f * angle;
    const float way = (w[l] < 0.f ? -circular : hyperbolic) + (far ? 2.f * HALF_PI : 0.f);
    square[l] = radius * way * way;
    if (BACK) {
      bare[l] = way * way;
      slope[l] = w[l] != 0.f ? (far ? -way : way) * inverse[l] : 0.f;
    }
  }
}

// 1 for the lanes of tile t that count for row u: columns behind it that it is not joined to
void mask_tile(const Points &g, int64_t u, int64_t t, const int64_t *&next, float *mask) {
  const int64_t first = t * LANES, *end = g.left.indices + g.left.indptr[u + 1];
  FOR_LANES mask[l] = first + l > u && first + l < g.nodes ? 1.f : 0.f;
  for (; next < end && *next < first + LANES; ++next) mask[*next - first] = 0.f;
}

// Where each row's neighbours behind it begin
void start(const Points &g, int64_t first, int64_t last, const int64_t **next) {
  for (int64_t u = first; u < last; ++u)
    next[u - first] = std::upper_bound(g.left.indices + g.left.indptr[u], g.left.indices + g.left.indptr[u + 1], u);
}

template <bool PLAIN>
void forward(const Points &g, float *out, int threads) {
  std::vector<double> rows(g.nodes, 0.0);
  // whole from the start: the system may grant fewer threads than asked for
  std::vector<std::vector<double>> parts(threads, std::vector<double>(g.tiles * LANES, 0.0));
#pragma omp parallel num_threads(threads)
  {
    const FlushToZero flush;
    std::vector<double> &part = parts[omp_get_thread_num()];
    const int64_t *next[ROWS];
    alignas(64) double half[LANES];
    alignas(64) float square[LANES], e[LANES], mask[LANES], column[LANES];
#pragma omp for schedule(static, 1)
    for (int64_t first = 0; first < g.nodes; first += ROWS) {
      const int64_t last = std::min<int64_t>(first + ROWS, g.nodes);
      start(g, first, last, next);
      for (int64_t t = first / LANES; t < g.tiles; ++t) {
        FOR_LANES column[l] = 0.f;
        for (int64_t u = first; u < last; ++u) {
          products(half, g.mirrored.data() + u * g.width, g.tile.data() + t * g.width * LANES, g.width);
          squares<false>(half, g.noise[u], g.size.data() + t * LANES, g.radius, square, nullptr, nullptr);
          mask_tile(g, u, t, next[u - first], mask);
          fall_off<PLAIN, false>(e, square, mask, nullptr);
          float sum = 0.f;
#pragma omp simd reduction(+ : sum)
          for (int l = 0; l < LANES; ++l) sum += e[l];
          rows[u] += sum;
          FOR_LANES column[l] += e[l];
        }
        for (int l = 0; l < LANES; ++l) part[t * LANES + l] += column[l];
      }
    }
  }
  for (int64_t u = 0; u < g.nodes; ++u) {
    for (const auto &part : parts) rows[u] += part[u];
    out[u] = static_cast<float>(rows[u]) + g.poison;
  }
}

// Adds dL/dq of a row and a tile to what both draw: to `row` [width][DOUBLES] and to `column` [width][LANES]
[[gnu::always_inline]] inline void spread(const float *by_q, const double *mirrored, const double *tile, int width,
                                          double *row, double *column) {
  alignas(64) double wide[LANES];
  FOR_LANES wide[l] = by_q[l];
  Doubles weight[GROUPS];
  for (int i = 0; i < GROUPS; ++i) weight[i] = get(wide + i * DOUBLES);
  for (int j = 0; j < width; ++j) {
    Doubles sum = get(row + j * DOUBLES);
    for (int i = 0; i < GROUPS; ++i) {
      double *back = column + j * LANES + i * DOUBLES;
      sum += weight[i] * get(tile + j * LANES + i * DOUBLES);
      put(back, get(back) + weight[i] * mirrored[j]);
    }
    put(row + j * DOUBLES, sum);
  }
}

template <bool PLAIN>
void backward(const Points &g, const float *grad, int time, double *by_points, double *by_radius, int threads) {
  const int width = g.width;
  std::vector<float> worth(g.tiles * LANES, 0.f);
  for (int64_t u = 0; u < g.nodes; ++u) worth[u] = grad[u] + g.poison;
  std::vector<std::vector<double>> parts(threads, std::vector<double>(g.tile.size(), 0.0));
  std::vector<double> slopes(threads, 0.0);
#pragma omp parallel num_threads(threads)
  {
    const FlushToZero flush;
    const int me = omp_get_thread_num();
    const int64_t *next[ROWS];
    alignas(64) double half[LANES];
    alignas(64) float square[LANES], e[LANES], mask[LANES], factor[LANES], slope[LANES], bare[LANES];
    std::vector<double, Aligned<double>> row(ROWS * width * DOUBLES);
#pragma omp for schedule(static, 1)
    for (int64_t first = 0; first < g.nodes; first += ROWS) {
      const int64_t last = std::min<int64_t>(first + ROWS, g.nodes);
      start(g, first, last, next);
      std::fill(row.begin(), row.end(), 0.0);
      for (int64_t t = first / LANES; t < g.tiles; ++t) {
        const double *tile = g.tile.data() + t * width * LANES;
        const float *other = worth.data() + t * LANES;
        for (int64_t u = first; u < last; ++u) {
          const double *mirrored = g.mirrored.data() + u * width;
          products(half, mirrored, tile, width);
          squares<true>(half, g.noise[u], g.size.data() + t * LANES, g.radius, square, slope, bare);
          mask_tile(g, u, t, next[u - first], mask);
          fall_off<PLAIN, true>(e, square, mask, factor);
          float sum = 0.f;
          int any = 0;
#pragma omp simd reduction(+ : sum) reduction(| : any)
          for (int l = 0; l < LANES; ++l) {
            const float by_square = e[l] * (worth[u] + other[l]) * factor[l];
            sum += by_square * bare[l];
            e[l] = by_square * g.radius * slope[l];
            any |= by_square != 0.f;
          }
          if (!any) continue;
          slopes[me] += sum;
          spread(e, mirrored, tile, width, row.data() + (u - first) * width * DOUBLES,
                 parts[me].data() + t * width * LANES);
        }
      }
      for (int64_t u = first; u < last; ++u)
        for (int j = 0; j < width; ++j) {
          double sum = 0;
          for (int v = 0; v < DOUBLES; ++v) sum += row[((u - first) * width + j) * DOUBLES + v];
          by_points[u * width + j] = j < time ? sum : -sum;
        }
    }
  }
  *by_radius = 0;
  for (int thread = 0; thread < threads; ++thread) {
    *by_radius += slopes[thread];
    for (int64_t u = 0; u < g.nodes; ++u)
      for (int j = 0; j < width; ++j)
        by_points[u * width + j] += parts[thread][((u / LANES) * width + j) * LANES + u % LANES];
  }
}

}  // namespace

extern "C" {

// out (N) = Σ exp(-radius ω²) over the nodes that are neither u nor in its list; points (N, width), the time coordinates
// first; radius: squared, one number; indptr (N + 1) and indices: ascending lists, of an undirected graph; plain: d
// instead of d²; unit: rounding of a product of two points of length 1
void gyroformer_pseudo_sums(const double *points, const double *radius, const int64_t *indptr, const int64_t *indices,
                            float *out, int64_t nodes, int width, int time, int plain, float unit, int threads) {
  const Points g = prepare(points, radius, {indptr, indices}, nodes, width, time, unit);
  (plain ? forward<true> : forward<false>)(g, out, threads);
}

void gyroformer_pseudo_sums_backward(const double *points, const double *radius, const int64_t *indptr,
                                     const int64_t *indices, const float *grad, double *by_points, double *by_radius,
                                     int64_t nodes, int width, int time, int plain, float unit, int threads) {
  const Points g = prepare(points, radius, {indptr, indices}, nodes, width, time, unit);
  (plain ? backward<true> : backward<false>)(g, grad, time, by_points, by_radius, threads);
}

}  // extern "C"
