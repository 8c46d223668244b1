// Arrays of float or double: the kernels compute in double, so that they are compiled once for both.
#pragma once

#include <cstdint>
#include <cstring>

#include "lanes.hpp"

namespace {

template <class T> struct Eight { typedef T type __attribute__((vector_size(LANES * sizeof(T)))); };

template <class T> [[gnu::always_inline]] inline Lanes read(const T *from) {
  typename Eight<T>::type numbers;
  std::memcpy(&numbers, from, sizeof numbers);
  return __builtin_convertvector(numbers, Lanes);
}

template <class T> [[gnu::always_inline]] inline void write(T *to, Lanes numbers) {
  const auto narrow = __builtin_convertvector(numbers, typename Eight<T>::type);
  std::memcpy(to, &narrow, sizeof narrow);
}

template <class Void>
struct Array {
  Void *data;
  bool wide;
  explicit operator bool() const { return data; }
};
using Input = Array<const void>;
using Output = Array<void>;

inline double get(Input from, int64_t at) {
  return from.wide ? static_cast<const double *>(from.data)[at] : static_cast<const float *>(from.data)[at];
}

inline void put(Output to, int64_t at, double value) {
  if (to.wide) static_cast<double *>(to.data)[at] = value;
  else static_cast<float *>(to.data)[at] = static_cast<float>(value);
}

// the first `count` of eight numbers from `at` on
[[gnu::always_inline]] inline void put(Output to, int64_t at, Lanes values, int count) {
  if (count < LANES)
    for (int l = 0; l < count; ++l) put(to, at + l, values[l]);
  else if (to.wide) write(static_cast<double *>(to.data) + at, values);
  else write(static_cast<float *>(to.data) + at, values);
}

}  // namespace
