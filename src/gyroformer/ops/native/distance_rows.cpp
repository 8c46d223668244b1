// Squared distances from nodes to all columns, or each to a list of its own, float32; the mathematics is that of
// gyroformer/ops/pairs.py.
//
// Products of two coordinates are exact in double, so nothing cancels: this is what results are computed with, where the
// sums of the loss make do with float32. A pair has the same bits whatever the other columns are.

#include <algorithm>
#include <cmath>
#include <vector>
#include <omp.h>

#include "pair_distance.hpp"
#include "scalar.hpp"

namespace {

constexpr int ROWS = 64;  // that meet a tile once it is gathered

struct Nodes {
  const float *sine, *cosine;  // (N, H, d) and (N, H)
  int heads, width;

  // copies LANES nodes, coordinate by coordinate: all sines, then all cosines; the last node fills what is left
  void gather(float *tile, const int64_t *at, int lanes) const {
    for (int l = 0; l < LANES; ++l) {
      const int64_t node = at[std::min(l, lanes - 1)];
      for (int j = 0; j < heads * width; ++j) tile[j * LANES + l] = sine[node * heads * width + j];
      for (int h = 0; h < heads; ++h) tile[(heads * width + h) * LANES + l] = cosine[node * heads + h];
    }
  }
};

// q = |C_v P_u - C_u P_v|² of one node and LANES others
void quotients(float *q, const float *p, float c, const float *sines, const float *cosines, int width) {
  double sum[LANES];
  FOR_LANES sum[l] = 0;
  for (int j = 0; j < width; ++j) {
    const double mine = p[j], cosine = c;
    FOR_LANES {
      const double delta = cosines[l] * mine - cosine * sines[j * LANES + l];
      sum[l] += delta * delta;
    }
  }
  FOR_LANES q[l] = static_cast<float>(sum[l]);
}

// d² in a space from q, added; unlike distances() this chooses no form by what the other lanes are
void add_distances(float *square, const float *q, float k) {
  if (k > 0.f) spherical_distances<false>(q, k, square, nullptr, nullptr);
  else if (-k * largest(q) >= FAR) far_distances<false>(q, k, square, nullptr, nullptr);
  else if (k < 0.f) hyperbolic_distances<false, true>(q, k, square, nullptr, nullptr);
  else near_distances<false>(q, k, square, nullptr, nullptr);
  FOR_LANES square[l] = std::isfinite(q[l]) ? square[l] : q[l];  // series of bits would hide it
}

void meet(float *out, int64_t node, const Nodes &nodes, const float *tile, const float *k, int lanes) {
  alignas(64) float q[LANES], square[LANES];
  FOR_LANES square[l] = 0.f;
  const int all = nodes.heads * nodes.width;
  for (int h = 0; h < nodes.heads; ++h) {
    const float *p = nodes.sine + node * all + h * nodes.width;
    quotients(q, p, nodes.cosine[node * nodes.heads + h], tile + h * nodes.width * LANES, tile + (all + h) * LANES,
              nodes.width);
    add_distances(square, q, k[h]);
  }
  std::copy(square, square + lanes, out);
}

}  // namespace

extern "C" {

// out (R, K): from the nodes rows (R) to the nodes columns, (K) or with `listed` (R, K)
void gyroformer_distance_rows(const float *sine, const float *cosine, const float *k, const int64_t *rows,
                              const int64_t *columns, float *out, int64_t count, int64_t width_out, int listed, int heads,
                              int width, int threads) {
  const Nodes nodes{sine, cosine, heads, width};
  const int together = listed ? 1 : ROWS;
#pragma omp parallel num_threads(threads)
  {
    std::vector<float> tile(static_cast<size_t>(LANES) * heads * (width + 1));
#pragma omp for schedule(dynamic)
    for (int64_t first = 0; first < count; first += together)
      for (int64_t column = 0; column < width_out; column += LANES) {
        const int lanes = static_cast<int>(std::min<int64_t>(LANES, width_out - column));
        nodes.gather(tile.data(), columns + (listed ? first * width_out : 0) + column, lanes);
        for (int64_t row = first; row < std::min(count, first + together); ++row)
          meet(out + row * width_out + column, rows[row], nodes, tile.data(), k, lanes);
      }
  }
}

}  // extern "C"
