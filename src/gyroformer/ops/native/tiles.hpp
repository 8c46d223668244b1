// Products of matrices in tiles of registers: every number of the left factor is read as one number for all lanes.
#pragma once

#include "registers.hpp"

namespace {

// a matrix to be read number by number: entry (r, t) is at r * row + t * step
struct Numbers {
  const float *at;
  int64_t row, step;

  Numbers from(int64_t r) const { return {at + r * row, row, step}; }
};

// a matrix of rows of lanes
template <class Float>
struct Lanes {
  Float *at;
  int64_t stride;
};

// ROWS by REGISTERS of the product below, which the processor's registers hold while it is summed
template <int ROWS, int REGISTERS, bool ADD>
[[gnu::always_inline]] inline void tile(Lanes<float> out, Numbers a, Lanes<const float> b, int steps) {
  Register sum[ROWS][REGISTERS];
  for (int r = 0; r < ROWS; ++r)
    for (int i = 0; i < REGISTERS; ++i) sum[r][i] = ADD ? get(out.at + r * out.stride + i * WIDE) : Register{};
  for (int t = 0; t < steps; ++t) {
    Register other[REGISTERS];
    for (int i = 0; i < REGISTERS; ++i) other[i] = get(b.at + t * b.stride + i * WIDE);
    for (int r = 0; r < ROWS; ++r)
      for (int i = 0; i < REGISTERS; ++i) sum[r][i] += a.at[r * a.row + t * a.step] * other[i];
  }
  for (int r = 0; r < ROWS; ++r)
    for (int i = 0; i < REGISTERS; ++i) put(out.at + r * out.stride + i * WIDE, sum[r][i]);
}

// the last rows of a product, fewer than fill a tile
template <int ROWS, int REGISTERS, bool ADD>
[[gnu::always_inline]] inline void last_rows(Lanes<float> out, Numbers a, Lanes<const float> b, int rows, int steps) {
  if constexpr (ROWS > 0) {
    if (rows == ROWS)
      tile<ROWS, REGISTERS, ADD>(out, a, b, steps);
    else
      last_rows<ROWS - 1, REGISTERS, ADD>(out, a, b, rows, steps);
  }
}

template <int REGISTERS, bool ADD>
inline void column_of_tiles(Lanes<float> out, Numbers a, Lanes<const float> b, int rows, int steps) {
  constexpr int ROWS = REGISTERS == 1 ? 12 : 6;  // as many sums as registers hold beside the factors
  int r = 0;
  for (; r + ROWS <= rows; r += ROWS)
    tile<ROWS, REGISTERS, ADD>({out.at + r * out.stride, out.stride}, a.from(r), b, steps);
  last_rows<ROWS - 1, REGISTERS, ADD>({out.at + r * out.stride, out.stride}, a.from(r), b, rows - r, steps);
}

// out[r][lane] = Σ_t a(r, t) b[t][lane], or added to it, for a number of lanes that fills registers
template <bool ADD>
inline void multiply(Lanes<float> out, Numbers a, Lanes<const float> b, int rows, int steps, int lanes) {
  int l = 0;
  for (; l + GROUP * WIDE <= lanes; l += GROUP * WIDE)
    column_of_tiles<GROUP, ADD>({out.at + l, out.stride}, a, {b.at + l, b.stride}, rows, steps);
  for (; l < lanes; l += WIDE) column_of_tiles<1, ADD>({out.at + l, out.stride}, a, {b.at + l, b.stride}, rows, steps);
}

}  // namespace
