// Pairs of a row and a tile in the chart x = P/C of a head whose cosines are all well above 0, as they are for k <= 0.
//
// There q = |C_v P_u - C_u P_v|² is C_u² C_v² |x_u - x_v|², as accurate and with half the arithmetic, its gradient with
// a third: with w = 2 dL/dq, G_u = Σ_v w C_v² (x_u - x_v) and S_u = Σ_v w q it is C_u G_u in P_u and
// S_u/C_u - <x_u, C_u G_u> in C_u. Tiles hold x in the place of P.
#pragma once

#include "registers.hpp"
#include "scalar.hpp"

namespace {

constexpr float LEAST_COSINE = .25f;  // below, x is long and its rounding felt
constexpr int TOGETHER = 2;           // rows that meet a tile together when gradients are added up
// coordinates at a time: as many sums of TOGETHER rows as registers hold beside the factors
constexpr int CHUNK = WIDE == 16 ? 8 : 4;

// q of a row (x, c) and a tile's LANES columns, 0 where the points are the same
[[gnu::always_inline]] inline void chart_quotients(float *q, const float *x, float c, const float *tile,
                                                   const float *cosines, int d) {
  for (int g = 0; g < LANES; g += GROUP * WIDE) {
    Register sum[GROUP] = {};
    for (int j = 0; j < d; ++j)
      for (int i = 0; i < GROUP; ++i) {
        const Register delta = x[j] - get(tile + j * LANES + g + i * WIDE);
        sum[i] += delta * delta;
      }
    for (int i = 0; i < GROUP; ++i) {
      const Register both = get(cosines + g + i * WIDE) * c;
      put(q + g + i * WIDE, both * sum[i] * both);
    }
  }
}

// Adds w q of a row and a tile to the row's S, [WIDE], and to the columns', [LANES]
[[gnu::always_inline]] inline void add_products(const float *weight, const float *q, float *row, float *column) {
  Register sum = get(row);
  for (int g = 0; g < LANES; g += WIDE) {
    const Register product = get(weight + g) * get(q + g);
    sum += product;
    put(column + g, get(column + g) + product);
  }
  put(row, sum);
}

// A row that meets a tile: its point and cosine, w for each lane, and where G_u is added up, [d][WIDE]
struct ChartRow {
  const float *x;
  float c;
  const float *weight;
  float *sum;
};

// COUNT rows' G from DEPTH coordinates to `row.sum`, and the columns' to `column` [DEPTH][LANES]
template <int COUNT, int DEPTH>
[[gnu::always_inline]] inline void chart_chunk(const ChartRow *given, int j, const float *tile, const float *cosines,
                                               float *column) {
  Register sum[COUNT][DEPTH] = {};
  ChartRow rows[COUNT];  // a copy: no store below can change it
  for (int r = 0; r < COUNT; ++r) rows[r] = given[r];
  for (int g = 0; g < LANES; g += WIDE) {
    Register to_row[COUNT], to_column[COUNT];
    const Register cosine = get(cosines + g);
    for (int r = 0; r < COUNT; ++r) {
      const Register weight = get(rows[r].weight + g);
      to_row[r] = weight * (cosine * cosine);
      to_column[r] = weight * (rows[r].c * rows[r].c);
    }
    for (int i = 0; i < DEPTH; ++i) {
      const Register other = get(tile + (j + i) * LANES + g);
      Register back = get(column + (j + i) * LANES + g);
      for (int r = 0; r < COUNT; ++r) {
        const Register delta = rows[r].x[j + i] - other;
        sum[r][i] += to_row[r] * delta;
        back -= to_column[r] * delta;
      }
      put(column + (j + i) * LANES + g, back);
    }
  }
  for (int r = 0; r < COUNT; ++r)
    for (int i = 0; i < DEPTH; ++i) {
      float *to = rows[r].sum + (j + i) * WIDE;
      put(to, get(to) + sum[r][i]);
    }
}

template <int COUNT>
inline void chart_spread(const ChartRow *rows, const float *tile, const float *cosines, int d, float *column) {
  int j = 0;
  for (; j + CHUNK <= d; j += CHUNK) chart_chunk<COUNT, CHUNK>(rows, j, tile, cosines, column);
  for (; j + 2 <= d; j += 2) chart_chunk<COUNT, 2>(rows, j, tile, cosines, column);
  for (; j < d; ++j) chart_chunk<COUNT, 1>(rows, j, tile, cosines, column);
}

// The gradient in a node's sines and cosine from G [d] and S, both of which it takes the place of
inline void chart_gradient(double *g, double &s, const float *x, float c, int d) {
  double along = 0;
  for (int j = 0; j < d; ++j) g[j] *= c, along += x[j] * g[j];
  s = s / c - along;
}

}  // namespace
