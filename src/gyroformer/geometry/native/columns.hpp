// Eight rows as columns: [coordinate][LANES], so that every lane is a row of its own.
#pragma once

#include <vector>

#include "arrays.hpp"

namespace {

struct Scratch {  // [coordinate][LANES], aligned
  std::vector<double> memory;
  Lanes *begin;
  explicit Scratch(int64_t width) : memory((width + 1) * LANES) {
    const auto address = reinterpret_cast<uintptr_t>(memory.data());
    begin = reinterpret_cast<Lanes *>((address + 63) / 64 * 64);
  }
};

// Eight vectors of eight become their transpose.
[[gnu::always_inline]] inline void transpose(Lanes *m) {
  Lanes t[LANES];
  for (int i = 0; i < LANES; i += 2) {
    t[i] = SHUFFLE(m[i], m[i + 1], 0, 8, 2, 10, 4, 12, 6, 14);
    t[i + 1] = SHUFFLE(m[i], m[i + 1], 1, 9, 3, 11, 5, 13, 7, 15);
  }
  Lanes u[LANES];
  for (int i = 0; i < LANES; i += 4)
    for (int j = 0; j < 2; ++j) {
      u[i + j] = SHUFFLE(t[i + j], t[i + j + 2], 0, 1, 8, 9, 4, 5, 12, 13);
      u[i + j + 2] = SHUFFLE(t[i + j], t[i + j + 2], 2, 3, 10, 11, 6, 7, 14, 15);
    }
  for (int i = 0; i < 4; ++i) {
    m[i] = SHUFFLE(u[i], u[i + 4], 0, 1, 2, 3, 8, 9, 10, 11);
    m[i + 4] = SHUFFLE(u[i], u[i + 4], 4, 5, 6, 7, 12, 13, 14, 15);
  }
}

// rows `at` of `from` into columns; missing rows are zero
template <class T>
void load_as(Lanes *to, const T *from, const int64_t *at, int width, int count) {
  double *out = reinterpret_cast<double *>(to);
  int j = 0;
  if (count < LANES) std::memset(out, 0, sizeof(double) * width * LANES);
  else
    for (; j + LANES <= width; j += LANES) {
      for (int l = 0; l < LANES; ++l) to[j + l] = read(from + at[l] * width + j);
      transpose(to + j);
    }
  for (int l = 0; l < count; ++l)
    for (int i = j; i < width; ++i) out[i * LANES + l] = static_cast<double>(from[at[l] * width + i]);
}

template <class T>
void store_as(T *to, const Lanes *from, int width, int count) {
  const double *in = reinterpret_cast<const double *>(from);
  int j = 0;
  if (count == LANES)
    for (; j + LANES <= width; j += LANES) {
      Lanes block[LANES];
      for (int l = 0; l < LANES; ++l) block[l] = from[j + l];
      transpose(block);
      for (int l = 0; l < LANES; ++l) write(to + l * width + j, block[l]);
    }
  for (int l = 0; l < count; ++l)
    for (int i = j; i < width; ++i) to[l * width + i] = static_cast<T>(in[i * LANES + l]);
}

}  // namespace
