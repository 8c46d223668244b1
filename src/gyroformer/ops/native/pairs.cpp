// Sums of exp(-d²) over all pairs of nodes that are not adjacent, float32, forward and backward.
//
// Where the graph is directed or nodes have a bias (TILTED) a pair has two terms, exp(a_u + b_v - d²) for the row and
// exp(a_v + b_u - d²) for the column, and each may be left out by itself; else it has one, which counts for both.
//
// The mathematics is that of gyroformer/ops/pairs.py. One row (node) at a time meets a tile of LANES columns, whose
// coordinates are transposed. Where the columns are all the nodes, each pair is met once, with the column behind the
// row, and counts for both. No more than sums over the pairs is kept.
//
// A thread takes every n-th block of rows and adds to columns in a buffer of its own; the buffers are joined in the
// threads' order. So the same number of threads gives the same bits.
//
// A caller may ask for the pairs of every n-th block of rows only, its share: sums and gradients of all shares add up
// to those of all pairs.

#include <omp.h>

#include "pair_graph.hpp"

namespace {

template <bool PLAIN, bool TILTED>
void forward(const Graph &g, float scale, float *out, int threads) {
  const bool symmetric = !g.columns;
  std::vector<double> rows(g.nodes, 0.0);
  // whole from the start: the system may grant fewer threads than asked for
  std::vector<std::vector<double>> parts(threads, std::vector<double>(symmetric ? g.tiles * LANES : 0, 0.0));
#pragma omp parallel num_threads(threads)
  {
    const FlushToZero flush;
    std::vector<double> &part = parts[omp_get_thread_num()];
    Cursor left, right;
    alignas(64) float q[LANES], square[LANES], e[LANES], back[LANES], mask[LANES], column[LANES];
#pragma omp for schedule(static, 1)
    for (int64_t block = g.share.index; block < g.blocks(); block += g.share.count) {
      const int64_t first = block * ROWS, last = std::min<int64_t>(first + ROWS, g.nodes);
      left.start(g, g.left, first, last);
      if (TILTED && symmetric) right.start(g, g.back, first, last);
      for (int64_t t = symmetric ? first / LANES : 0; t < g.tiles; ++t) {
        const float *tile = g.tile.data() + t * g.size * LANES;
        FOR_LANES column[l] = 0.f;
        for (int64_t u = first; u < last; ++u) {
          FOR_LANES square[l] = 0.f;
          for (int h = 0; h < g.heads; ++h) {
            quotients_of(g, u, h, tile, q);
            distances<false>(q, g.k[h], square, nullptr, nullptr);
          }
          if (TILTED) {
            both_terms<PLAIN>(g, u, first, t, left, right, square, mask, e, back);
          } else {
            left.mask(g, u, first, t, mask);
            fall_off<PLAIN, false>(e, square, mask, nullptr);
          }
          float sum = 0.f;
#pragma omp simd reduction(+ : sum)
          for (int l = 0; l < LANES; ++l) sum += e[l];
          rows[u] += sum;
          if (symmetric) FOR_LANES column[l] += TILTED ? back[l] : e[l];
        }
        if (symmetric)
          for (int l = 0; l < LANES; ++l) part[t * LANES + l] += column[l];
      }
    }
  }
  for (int64_t u = 0; u < g.nodes; ++u) {
    double sum = rows[u];
    if (symmetric)
      for (const auto &part : parts) sum += part[u];
    // a part of a sum has no logarithm that would be of use
    out[u] = static_cast<float>(g.share.count == 1 ? std::log1p(scale * sum) : scale * sum) + g.poison;
  }
}

// Adds up the gradients of heads in charts from the `count` rows that a tile is felt by; `twice` [ROWS][H][LANES] is
// 2 dL/dq, sums go to `row` [ROWS][size][WIDE] and `column` [size][LANES]
void spread_charts(const Graph &g, const float *tile, int64_t first, const int64_t *felt, int count, const float *twice,
                   float *row, float *column) {
  const int d = g.width;
  for (int h = 0; h < g.heads; ++h) {
    if (!g.chart[h]) continue;
    const float *points = tile + h * d * LANES, *cosines = tile + (g.heads * d + h) * LANES;
    float *to = column + h * d * LANES;
    ChartRow rows[ROWS];
    for (int i = 0; i < count; ++i) {
      const int64_t u = felt[i], at = u - first;
      rows[i] = {g.point(u, h), g.cosine[u * g.heads + h], twice + (at * g.heads + h) * LANES,
                 row + (at * g.size + h * d) * WIDE};
    }
    int i = 0;
    for (; i + TOGETHER <= count; i += TOGETHER) chart_spread<TOGETHER>(rows + i, points, cosines, d, to);
    for (; i < count; ++i) chart_spread<1>(rows + i, points, cosines, d, to);
  }
}

struct Gradients {  // in the sines, cosines, curvatures, and the biases, which may be null
  float *sine, *cosine, *k, *rise, *pull;
};

template <bool PLAIN, bool TILTED>
void backward(const Graph &g, float scale, const float *logs, const float *grad, const Gradients &out, int threads) {
  const int all = g.heads * g.width, d = g.width, size = g.size;
  const bool symmetric = !g.columns;
  // what a pair's term is worth to its row; among all nodes also to its column
  std::vector<float> worth(g.nodes), other(g.tiles * LANES, 0.f);
  for (int64_t u = 0; u < g.nodes; ++u)
    worth[u] = static_cast<float>(scale * grad[u] * std::exp(-static_cast<double>(logs[u]))) + g.poison;
  if (symmetric) std::copy(worth.begin(), worth.end(), other.begin());
  std::fill(out.sine, out.sine + g.nodes * all, 0.f), std::fill(out.cosine, out.cosine + g.nodes * g.heads, 0.f);
  std::vector<Block> parts(threads, Block(g.tile.size(), 0.f));
  std::vector<double> slopes(static_cast<size_t>(threads) * g.heads, 0.0);
  // the biases' gradients: sums of a node's terms as a row's (rise) and as a column's (pull)
  const size_t places = TILTED ? g.tiles * LANES : 0;
  std::vector<double> row_terms(TILTED ? g.nodes : 0, 0.0), row_back(row_terms);
  std::vector<std::vector<double>> term_parts(threads, std::vector<double>(places, 0.0)), back_parts(term_parts);
#pragma omp parallel num_threads(threads)
  {
    const FlushToZero flush;
    const int me = omp_get_thread_num();
    Block &part = parts[me];
    double *slope = slopes.data() + static_cast<size_t>(me) * g.heads;
    Cursor left, right;
    alignas(64) float square[LANES], e[LANES], back[LANES] = {}, mask[LANES], factor[LANES];
    Block q(g.heads * LANES), by_q(q), by_k(q), column(size * LANES), row(ROWS * size * WIDE);
    Block twice(ROWS * g.heads * LANES);  // 2 dL/dq
    std::vector<double> sums(size);
#pragma omp for schedule(static, 1)
    for (int64_t block = g.share.index; block < g.blocks(); block += g.share.count) {
      const int64_t first = block * ROWS, last = std::min<int64_t>(first + ROWS, g.nodes);
      left.start(g, g.left, first, last);
      if (TILTED && symmetric) right.start(g, g.back, first, last);
      std::fill(row.begin(), row.end(), 0.f);
      for (int64_t t = symmetric ? first / LANES : 0; t < g.tiles; ++t) {
        const float *tile = g.tile.data() + t * size * LANES, *tile_worth = other.data() + t * LANES;
        std::fill(column.begin(), column.end(), 0.f);
        int64_t felt[ROWS];  // rows that some pair of this tile counts for
        int count = 0;
        for (int64_t u = first; u < last; ++u) {
          FOR_LANES square[l] = 0.f;
          for (int h = 0; h < g.heads; ++h) {
            quotients_of(g, u, h, tile, q.data() + h * LANES);
            distances<true>(q.data() + h * LANES, g.k[h], square, by_q.data() + h * LANES, by_k.data() + h * LANES);
          }
          const float mine = worth[u];
          int any = 0;
          if (TILTED) {
            both_terms<PLAIN>(g, u, first, t, left, right, square, factor, e, back);
            float row_sum = 0.f, back_sum = 0.f;
            double *to_terms = term_parts[me].data() + t * LANES, *to_back = back_parts[me].data() + t * LANES;
#pragma omp simd reduction(+ : row_sum, back_sum) reduction(| : any)
            for (int l = 0; l < LANES; ++l) {
              const float a = e[l] * mine, b = back[l] * tile_worth[l], x = factor[l];
              row_sum += a, back_sum += b;
              to_terms[l] += a, to_back[l] += b;
              e[l] = (a + b) * (PLAIN ? (x > 0.f ? -.5f / (x > 0.f ? x : 1.f) : 0.f) : -1.f);
              any |= e[l] != 0.f;
            }
            row_terms[u] += row_sum, row_back[u] += back_sum;
          } else {
            left.mask(g, u, first, t, mask);
            fall_off<PLAIN, true>(e, square, mask, factor);
#pragma omp simd reduction(| : any)
            for (int l = 0; l < LANES; ++l) {
              e[l] *= (mine + tile_worth[l]) * factor[l];
              any |= e[l] != 0.f;
            }
          }
          if (!any) continue;
          felt[count++] = u;
          float *mine_back = row.data() + (u - first) * size * WIDE;
          for (int h = 0; h < g.heads; ++h) {
            const float *to_q = by_q.data() + h * LANES, *to_k = by_k.data() + h * LANES;
            float *weight = twice.data() + ((u - first) * g.heads + h) * LANES, sum = 0.f;
#pragma omp simd reduction(+ : sum)
            for (int l = 0; l < LANES; ++l) {
              weight[l] = 2.f * e[l] * to_q[l];
              sum += e[l] * to_k[l];
            }
            slope[h] += sum;
            float *mine_cosine = mine_back + (all + h) * WIDE, *column_cosine = column.data() + (all + h) * LANES;
            if (g.chart[h])
              add_products(weight, q.data() + h * LANES, mine_cosine, column_cosine);
            else
              spread(weight, g.point(u, h), g.cosine[u * g.heads + h], tile + h * d * LANES, tile + (all + h) * LANES, d,
                     mine_back + h * d * WIDE, mine_cosine, column.data() + h * d * LANES, column_cosine);
          }
        }
        spread_charts(g, tile, first, felt, count, twice.data(), row.data(), column.data());
        float *to = part.data() + t * size * LANES;
        for (int i = 0; i < size * LANES; ++i) to[i] += column[i];
      }
      for (int64_t u = first; u < last; ++u) {
        for (int i = 0; i < size; ++i) {
          sums[i] = 0;
          for (int w = 0; w < WIDE; ++w) sums[i] += row[((u - first) * size + i) * WIDE + w];
        }
        add_gradient(g, u, sums.data(), out.sine, out.cosine);
      }
    }
  }
  std::vector<double> sums(size);
  for (int64_t i = 0; i < g.count; ++i) {
    std::fill(sums.begin(), sums.end(), 0.0);
    for (int j = 0; j < size; ++j)
      for (const auto &part : parts) sums[j] += part[((i / LANES) * size + j) * LANES + i % LANES];
    add_gradient(g, g.columns ? g.columns[i] : i, sums.data(), out.sine, out.cosine);
  }
  for (int h = 0; h < g.heads; ++h) {
    double sum = 0;
    for (int thread = 0; thread < threads; ++thread) sum += slopes[static_cast<size_t>(thread) * g.heads + h];
    out.k[h] = static_cast<float>(sum);
  }
  if (!TILTED || !out.rise) return;
  for (int64_t i = 0; i < g.count; ++i) {
    const int64_t v = g.columns ? g.columns[i] : i;
    for (int thread = 0; thread < threads; ++thread)
      row_back[v] += term_parts[thread][i], row_terms[v] += back_parts[thread][i];
  }
  for (int64_t u = 0; u < g.nodes; ++u)
    out.rise[u] = static_cast<float>(row_terms[u]), out.pull[u] = static_cast<float>(row_back[u]);
}

}  // namespace

extern "C" {

// out (N) = log(1 + scale Σ exp(rise_u + pull_v - d²)) over the columns v (ascending nodes; null: all) that are neither
// u nor in its list; sine (N, H, d); cosine (N, H); k (H); rise and pull (N), or null for none; indptr (N + 1) and
// indices: ascending lists of what each node leaves out; back_indptr and back_indices: of the nodes that leave it out,
// the same pointers if the graph is undirected; plain: d instead of d²; share of shares: the pairs of some blocks of
// rows only, and of several shares not the logarithm but scale Σ exp(…) over these
void gyroformer_log_partition(const float *sine, const float *cosine, const float *k, const float *rise,
                              const float *pull, const int64_t *indptr, const int64_t *indices,
                              const int64_t *back_indptr, const int64_t *back_indices, const int64_t *columns,
                              float *out, int64_t nodes, int64_t count, int heads, int width, int plain, int share,
                              int shares, float scale, int threads) {
  Graph g = prepare(sine, cosine, k, rise, pull, {indptr, indices}, {back_indptr, back_indices}, columns, nodes,
                          count, heads, width);
  g.share = {share, shares};
  if (g.tilted())
    (plain ? forward<true, true> : forward<false, true>)(g, scale, out, threads);
  else
    (plain ? forward<true, false> : forward<false, false>)(g, scale, out, threads);
}

// logs and grad (N): the result above and the gradient in it; grad_rise and grad_pull are null with the biases; of
// several shares logs are 0, grad is that in the whole sums, and the gradients, 0 before, are parts of sums
void gyroformer_log_partition_backward(const float *sine, const float *cosine, const float *k, const float *rise,
                                       const float *pull, const int64_t *indptr, const int64_t *indices,
                                       const int64_t *back_indptr, const int64_t *back_indices, const int64_t *columns,
                                       const float *logs, const float *grad, float *grad_sine, float *grad_cosine,
                                       float *grad_k, float *grad_rise, float *grad_pull, int64_t nodes, int64_t count,
                                       int heads, int width, int plain, int share, int shares, float scale,
                                       int threads) {
  Graph g = prepare(sine, cosine, k, rise, pull, {indptr, indices}, {back_indptr, back_indices}, columns, nodes,
                          count, heads, width);
  g.share = {share, shares};
  const Gradients to{grad_sine, grad_cosine, grad_k, grad_rise, grad_pull};
  if (g.tilted())
    (plain ? backward<true, true> : backward<false, true>)(g, scale, logs, grad, to, threads);
  else
    (plain ? backward<true, false> : backward<false, false>)(g, scale, logs, grad, to, threads);
}

}  // extern "C"
