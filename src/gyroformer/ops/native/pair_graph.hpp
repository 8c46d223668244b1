// A graph as the sums over all pairs take it: rows of points, columns in tiles, and what is left out of each meeting.
#pragma once

#include <algorithm>
#include <vector>

#include "lanes.hpp"
#include "pair_chart.hpp"
#include "pair_terms.hpp"

namespace {

constexpr int ROWS = 16;      // rows that meet a tile while it is in the nearest cache

struct Share {  // the blocks of rows whose number leaves the rest `index` when divided by `count`
  int index, count;
};

struct Graph {  // the points, the columns in tiles, the neighbours
  const float *sine, *cosine, *k;
  std::vector<char> chart;     // of each head: whether its points are x = P/C, not P
  std::vector<float> points;   // [nodes][heads][width]
  const float *rise, *pull;    // biases of nodes as rows and as columns; null for none
  Lists left, back;            // what a row leaves out, and the rows that leave it out; the same if undirected
  const int64_t *columns;      // ascending nodes, or null for all
  int64_t nodes, count;        // count of columns
  int heads, width, size;      // size: floats a node, H (d + 1)
  int64_t tiles;
  Block tile;                  // [tiles][size][LANES]: points, then cosines
  std::vector<float> tile_rise, tile_pull;  // of the columns; empty for none
  std::vector<int64_t> place;  // of each node among the columns, -1 if it is none; empty for all
  float poison;                // 0, or NaN if any input is not finite: series of bits would hide it
  Share share{0, 1};

  int64_t blocks() const { return (nodes + ROWS - 1) / ROWS; }

  bool tilted() const { return rise || left.indices != back.indices; }

  const float *point(int64_t node, int head) const { return points.data() + (node * heads + head) * width; }
};

Graph prepare(const float *sine, const float *cosine, const float *k, const float *rise, const float *pull, Lists left,
              Lists back, const int64_t *columns, int64_t nodes, int64_t count, int heads, int width) {
  Graph g{sine, cosine, k, {}, {}, rise, pull, left, back, columns, nodes, count, heads, width, heads * (width + 1), 0,
          {}, {}, {}, {}, 0.f};
  const int all = heads * width;
  g.chart.assign(heads, true);
  for (int64_t i = 0; i < nodes * heads; ++i)
    if (!(cosine[i] >= LEAST_COSINE)) g.chart[i % heads] = false;
  g.points.assign(sine, sine + nodes * all);
  for (int64_t i = 0; i < nodes * heads; ++i)
    if (g.chart[i % heads])
      for (int j = 0; j < width; ++j) g.points[i * width + j] /= cosine[i];
  g.tiles = (count + LANES - 1) / LANES;
  g.tile.assign(static_cast<size_t>(g.tiles) * g.size * LANES, 0.f);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t v = columns ? columns[i] : i;
    float *to = g.tile.data() + (i / LANES) * g.size * LANES + i % LANES;
    for (int j = 0; j < all; ++j) to[j * LANES] = g.points[v * all + j];
    for (int h = 0; h < heads; ++h) to[(all + h) * LANES] = cosine[v * heads + h];
  }
  if (g.tilted()) {
    g.tile_rise.assign(g.tiles * LANES, 0.f), g.tile_pull.assign(g.tiles * LANES, 0.f);
    for (int64_t i = 0; rise && i < count; ++i) {
      const int64_t v = columns ? columns[i] : i;
      g.tile_rise[i] = rise[v], g.tile_pull[i] = pull[v];
    }
    if (rise) g.poison += nothing(rise, nodes) + nothing(pull, nodes);
  }
  if (columns) {
    g.place.assign(nodes, -1);
    for (int64_t i = count - 1; i >= 0; --i) g.place[columns[i]] = i;
  }
  g.poison += nothing(sine, nodes * all) + nothing(cosine, nodes * heads) + nothing(k, heads);
  return g;
}

// The places among the columns that row u leaves out, ascending: its neighbours, and itself among sampled columns
void left_out(const Graph &g, const Lists &lists, int64_t u, std::vector<int64_t> &places) {
  places.clear();
  const int64_t *begin = lists.indices + lists.indptr[u], *end = lists.indices + lists.indptr[u + 1];
  if (!g.columns) {
    places.assign(std::upper_bound(begin, end, u), end);
    return;
  }
  const auto leave = [&](int64_t v) {
    for (int64_t i = g.place[v]; i >= 0 && i < g.count && g.columns[i] == v; ++i) places.push_back(i);
  };
  const int64_t *v = begin;
  for (; v < end && *v < u; ++v) leave(*v);
  leave(u);
  for (; v < end; ++v) leave(*v);
}

// 1 for the lanes of a tile that count for row u, else 0; `next` moves through the places left out
void mask_tile(const Graph &g, int64_t u, int64_t t, const std::vector<int64_t> &places, size_t &next, float *mask) {
  const int64_t first = t * LANES;
  FOR_LANES mask[l] = 1.f;
  for (int64_t l = g.count - first; l < LANES; ++l) mask[l] = 0.f;
  if (!g.columns)  // each pair once
    for (int64_t l = 0; l < LANES && first + l <= u; ++l) mask[l] = 0.f;
  for (; next < places.size() && places[next] < first + LANES; ++next) mask[places[next] - first] = 0.f;
}

// What a block of rows leaves out, and how far each row has come in it
struct Cursor {
  std::vector<int64_t> places[ROWS];
  size_t next[ROWS];

  void start(const Graph &g, const Lists &lists, int64_t first, int64_t last) {
    for (int64_t u = first; u < last; ++u) left_out(g, lists, u, places[u - first]), next[u - first] = 0;
  }
  void mask(const Graph &g, int64_t u, int64_t first, int64_t t, float *to) {
    mask_tile(g, u, t, places[u - first], next[u - first], to);
  }
};

// Both terms of the pairs of row u and tile t, with the biases: `e` for the row, `back` for the columns. `x` is d² or d.
template <bool PLAIN>
void both_terms(const Graph &g, int64_t u, int64_t first, int64_t t, Cursor &left, Cursor &right, const float *square,
                float *x, float *e, float *back) {
  alignas(64) float mask[LANES], mine[LANES];
  const float rise = g.rise ? g.rise[u] : 0.f, pull = g.pull ? g.pull[u] : 0.f;
  FOR_LANES x[l] = PLAIN ? std::sqrt(square[l]) : square[l];
  left.mask(g, u, first, t, mask);
  FOR_LANES mine[l] = rise;
  tilted(e, x, mask, mine, g.tile_pull.data() + t * LANES);
  if (g.columns) return;
  right.mask(g, u, first, t, mask);
  FOR_LANES mine[l] = pull;
  tilted(back, x, mask, mine, g.tile_rise.data() + t * LANES);
}

// q of row u and a tile in head h
[[gnu::always_inline]] inline void quotients_of(const Graph &g, int64_t u, int h, const float *tile, float *q) {
  const int all = g.heads * g.width;
  const float *point = g.point(u, h), *others = tile + h * g.width * LANES, *cosines = tile + (all + h) * LANES;
  if (g.chart[h])
    chart_quotients(q, point, g.cosine[u * g.heads + h], others, cosines, g.width);
  else
    quotients(q, point, g.cosine[u * g.heads + h], others, cosines, g.width);
}

// A node's gradient in sines and cosines, added to what is there, from the sums over its pairs
void add_gradient(const Graph &g, int64_t v, double *sums, float *sine, float *cosine) {
  const int all = g.heads * g.width;
  for (int h = 0; h < g.heads; ++h)
    if (g.chart[h])
      chart_gradient(sums + h * g.width, sums[all + h], g.point(v, h), g.cosine[v * g.heads + h], g.width);
  for (int j = 0; j < all; ++j) sine[v * all + j] += static_cast<float>(sums[j]);
  for (int h = 0; h < g.heads; ++h) cosine[v * g.heads + h] += static_cast<float>(sums[all + h]);
}

}  // namespace
