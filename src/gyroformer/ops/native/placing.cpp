// The slope of the loss of gyroformer/ops/placing.py in new points, float32: each new node against the nodes that it
// looks at, in tiles of LANES columns. Rows do not depend on each other: any number of threads gives the same bits.

#include <algorithm>
#include <cmath>
#include <vector>
#include <omp.h>

#include "pair_terms.hpp"

namespace {

struct Loss {
  const float *points, *k, *crowd;  // rows of H d sines and H cosines; curvatures; how crowded each node is
  int widest, heads, width, size;
  float temperature, seen;
};

float sigmoid(float x) { return 1.f / (1.f + std::exp(-x)); }

class Row {  // a new node with the columns that it looks at
  const Loss &loss;
  int wide, tiles;  // of the node at hand
  std::vector<float> tile, square, by_q, by_k, weight, row, column;
  alignas(64) float q[LANES], twice[LANES];

  float *of_tile(std::vector<float> &values, int t, int count) { return values.data() + t * count * LANES; }

  // the columns of each tile, their squared distances, and the derivatives of these in q
  void measure(const float *own, const int32_t *columns) {
    const int d = loss.width, all = loss.heads * d;
    std::fill(square.begin(), square.end(), 0.f);
    for (int t = 0; t < tiles; ++t) {
      float *here = of_tile(tile, t, loss.size);
      const int count = std::min(LANES, wide - t * LANES);
      for (int l = 0; l < count; ++l) {
        const float *from = loss.points + std::max(columns[t * LANES + l], 0) * static_cast<int64_t>(loss.size);
        for (int j = 0; j < loss.size; ++j) here[j * LANES + l] = from[j];
      }
      for (int h = 0; h < loss.heads; ++h) {
        quotients(q, own + h * d, own[all + h], here + h * d * LANES, here + (all + h) * LANES, d);
        distances<true>(q, loss.k[h], of_tile(square, t, 1), of_tile(by_q, t, loss.heads) + h * LANES, by_k.data());
      }
    }
  }

  // the derivative of the loss in each squared distance; the first `degree` columns are neighbours, -1 is no node
  void weigh(const int32_t *columns, int degree) {
    float least = INFINITY, sum = 0.f, pulled = 0.f;
    for (int i = degree; i < wide; ++i)
      if (columns[i] >= 0) least = std::min(least, square[i] / loss.temperature);
    for (int i = degree; i < wide; ++i)
      sum += weight[i] = columns[i] < 0 ? 0.f : std::exp(least - square[i] / loss.temperature);
    const float others = std::log(sum) - least;  // -inf where there are none: nothing pulls, nothing is pushed
    for (int i = 0; i < degree; ++i) {
      const float pull = sum > 0.f ? sigmoid(others + square[i] / loss.temperature) : 0.f;
      pulled += pull;
      weight[i] = pull + loss.seen * sigmoid(square[i] + loss.crowd[columns[i]]);
    }
    for (int i = degree; i < wide; ++i) weight[i] *= sum > 0.f ? -pulled / sum : 0.f;
    for (int i = 0; i < wide; ++i) weight[i] /= std::max(degree, 1);
  }

 public:
  explicit Row(const Loss &of)
      : loss(of), wide(0), tiles((of.widest + LANES - 1) / LANES), tile(tiles * of.size * LANES, 0.f),
        square(tiles * LANES), by_q(tiles * of.heads * LANES), by_k(LANES), weight(tiles * LANES), row(of.size * WIDE),
        column(of.size * LANES) {}

  void slope(const float *own, const int32_t *columns, int count, int degree, float *out) {
    const int d = loss.width, all = loss.heads * d;
    wide = count, tiles = (count + LANES - 1) / LANES;
    std::fill(weight.begin(), weight.end(), 0.f);
    measure(own, columns);
    weigh(columns, degree);
    std::fill(row.begin(), row.end(), 0.f);
    for (int t = 0; t < tiles; ++t)
      for (int h = 0; h < loss.heads; ++h) {
        const float *here = of_tile(tile, t, loss.size), *slopes = of_tile(by_q, t, loss.heads) + h * LANES;
        const float *weights = of_tile(weight, t, 1);
        FOR_LANES twice[l] = 2.f * weights[l] * slopes[l];
        spread(twice, own + h * d, own[all + h], here + h * d * LANES, here + (all + h) * LANES, d,
               row.data() + h * d * WIDE, row.data() + (all + h) * WIDE, column.data() + h * d * LANES,
               column.data() + (all + h) * LANES);
      }
    for (int j = 0; j < loss.size; ++j) {
      out[j] = 0.f;
      for (int i = 0; i < WIDE; ++i) out[j] += row[j * WIDE + i];
    }
  }
};

}  // namespace

extern "C" {

// out (R, H (d + 1)): the slope in the sines and cosines of each of nodes (R), which looks at the columns from its start
// (R + 1) on, at most `widest`, -1 for none, of which the first degree (R) are its neighbours; points (N, H (d + 1)),
// k (H), crowd (N)
void gyroformer_placing_slopes(const float *points, const float *k, const float *crowd, const int64_t *nodes,
                               const int64_t *start, const int32_t *columns, const int32_t *degree, float *out,
                               int64_t count, int widest, int heads, int width, float temperature, float seen,
                               int threads) {
  const Loss loss{points, k, crowd, widest, heads, width, heads * (width + 1), temperature, seen};
#pragma omp parallel num_threads(threads)
  {
    const FlushToZero flush;
    Row row(loss);
#pragma omp for schedule(static)
    for (int64_t r = 0; r < count; ++r)
      row.slope(points + nodes[r] * loss.size, columns + start[r], static_cast<int>(start[r + 1] - start[r]), degree[r],
                out + r * loss.size);
  }
}

}  // extern "C"
