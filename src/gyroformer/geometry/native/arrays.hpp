// Arrays of float or double: the kernels compute in double, so that they are compiled once for both.
#pragma once

#include <cstdint>

namespace {

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

}  // namespace
