// Arrays of float or double: the kernels compute in double, so that they are compiled once for both.
#pragma once

#include <cstdint>
#include <cstring>

#include "lanes.hpp"

namespace {

#if defined(__clang__)
#define SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define SHUFFLE(a, b, ...) __builtin_shuffle(a, b, Mask{__VA_ARGS__})
#endif


// The sums of eight vectors, one a lane.
[[gnu::always_inline]] inline Lanes joined(const Lanes *m) {
  Lanes t[LANES / 2], u[2];
  for (int i = 0; i < LANES / 2; ++i)
    t[i] = SHUFFLE(m[2 * i], m[2 * i + 1], 0, 8, 2, 10, 4, 12, 6, 14) + SHUFFLE(m[2 * i], m[2 * i + 1], 1, 9, 3, 11, 5, 13, 7, 15);
  for (int i = 0; i < 2; ++i)
    u[i] = SHUFFLE(t[2 * i], t[2 * i + 1], 0, 1, 8, 9, 4, 5, 12, 13) + SHUFFLE(t[2 * i], t[2 * i + 1], 2, 3, 10, 11, 6, 7, 14, 15);
  return SHUFFLE(u[0], u[1], 0, 1, 2, 3, 8, 9, 10, 11) + SHUFFLE(u[0], u[1], 4, 5, 6, 7, 12, 13, 14, 15);
}

template <class T> struct Eight { typedef T type __attribute__((vector_size(LANES * sizeof(T)))); };

// float and double, eight numbers each way
[[gnu::always_inline]] inline Lanes widen(Eight<double>::type numbers) { return numbers; }
[[gnu::always_inline]] inline void narrow(Lanes numbers, Eight<double>::type &to) { to = numbers; }
#if defined(__AVX512F__)
// g++ 12 makes four instructions of the general form
[[gnu::always_inline]] inline Lanes widen(Eight<float>::type numbers) { return (Lanes)_mm512_cvtps_pd((__m256)numbers); }
[[gnu::always_inline]] inline void narrow(Lanes numbers, Eight<float>::type &to) {
  to = (Eight<float>::type)_mm512_cvtpd_ps((__m512d)numbers);
}
#else
[[gnu::always_inline]] inline Lanes widen(Eight<float>::type numbers) { return __builtin_convertvector(numbers, Lanes); }
[[gnu::always_inline]] inline void narrow(Lanes numbers, Eight<float>::type &to) {
  to = __builtin_convertvector(numbers, Eight<float>::type);
}
#endif

template <class T> [[gnu::always_inline]] inline Lanes read(const T *from) {
  typename Eight<T>::type numbers;
  std::memcpy(&numbers, from, sizeof numbers);
  return widen(numbers);
}

template <class T> [[gnu::always_inline]] inline void write(T *to, Lanes numbers) {
  typename Eight<T>::type rounded;
  narrow(numbers, rounded);
  std::memcpy(to, &rounded, sizeof rounded);
}

// Coordinates of a row that are taken at once: eight of them, or those that are left.
struct Piece { int at, count; };

// With TWICE whole pieces have a loop of their own, which saves the masks at the price of twice the code.
template <bool TWICE = false, class Body>
[[gnu::always_inline]] inline void each_piece(int width, const Body &body) {
  int j = 0;
  if constexpr (TWICE)
    for (; j + LANES <= width; j += LANES) body(Piece{j, LANES});
  for (; j < width; j += LANES) body(Piece{j, width - j < LANES ? width - j : LANES});
}

// what is missing of eight is zero, and not written
#if defined(__AVX512F__) && defined(__AVX512VL__)
[[gnu::always_inline]] inline __mmask8 present(Piece piece) { return static_cast<__mmask8>((1u << piece.count) - 1); }
[[gnu::always_inline]] inline Lanes read(const float *row, Piece piece) {
  return widen((Eight<float>::type)_mm256_maskz_loadu_ps(present(piece), row + piece.at));
}
[[gnu::always_inline]] inline Lanes read(const double *row, Piece piece) {
  return (Lanes)_mm512_maskz_loadu_pd(present(piece), row + piece.at);
}
[[gnu::always_inline]] inline void write(float *row, Piece piece, Lanes numbers) {
  Eight<float>::type rounded;
  narrow(numbers, rounded);
  _mm256_mask_storeu_ps(row + piece.at, present(piece), (__m256)rounded);
}
[[gnu::always_inline]] inline void write(double *row, Piece piece, Lanes numbers) {
  _mm512_mask_storeu_pd(row + piece.at, present(piece), (__m512d)numbers);
}
#else
template <class T> [[gnu::always_inline]] inline Lanes read(const T *row, Piece piece) {
  if (piece.count == LANES) return read(row + piece.at);
  Lanes numbers{};
  for (int i = 0; i < piece.count; ++i) numbers[i] = static_cast<double>(row[piece.at + i]);
  return numbers;
}
template <class T> [[gnu::always_inline]] inline void write(T *row, Piece piece, Lanes numbers) {
  if (piece.count == LANES) return write(row + piece.at, numbers);
  for (int i = 0; i < piece.count; ++i) row[piece.at + i] = static_cast<T>(numbers[i]);
}
#endif

[[gnu::always_inline]] inline void add(double *to, Piece piece, Lanes numbers) { write(to, piece, read(to, piece) + numbers); }

template <class T> [[gnu::always_inline]] inline void put(T *to, Lanes numbers, int count) { write(to, Piece{0, count}, numbers); }

}  // namespace
