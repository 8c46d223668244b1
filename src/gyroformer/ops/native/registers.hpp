// Registers of floats, and how they treat numbers near 0.
#pragma once

#include <cstring>
#if defined(__SSE2__)
#include <immintrin.h>
#endif

#include "scalar.hpp"

namespace {

// a register of floats; the loops over coordinates keep several
#if defined(__AVX512F__)
constexpr int WIDE = 16, GROUP = 4;
#elif defined(__AVX__)
constexpr int WIDE = 8, GROUP = 2;
#else
constexpr int WIDE = 4, GROUP = 2;
#endif
typedef float Register __attribute__((vector_size(4 * WIDE)));
static_assert(LANES % (WIDE * GROUP) == 0, "a tile is a whole number of groups");

// While one lives, results below float32's normal numbers count as 0 on its thread: exponentials of far pairs fall there,
// and a processor takes a hundred times as long over such a number.
class FlushToZero {
#if defined(__SSE2__)
  static constexpr unsigned FLUSH = 0x8040;  // results and operands
  const unsigned before = _mm_getcsr();

 public:
  FlushToZero() { _mm_setcsr(before | FLUSH); }
  ~FlushToZero() { _mm_setcsr(before); }
#endif
};

[[gnu::always_inline]] inline Register get(const float *from) {
  Register x;
  std::memcpy(&x, from, sizeof x);
  return x;
}

[[gnu::always_inline]] inline void put(float *to, Register x) { std::memcpy(to, &x, sizeof x); }

}  // namespace
