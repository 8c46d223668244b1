// What all operations on rows are made of, and how they become functions of the library. The mathematics is that of the
// torch forms (parts.py, maps.py, gyro.py, charts.py) on inner products; see there for what each form is for.
#pragma once

#include <type_traits>

#include "chain.hpp"

namespace {

template <class S> [[gnu::always_inline]] inline S conformal(const S &square, const S &k) {
  return at_least(1.0 + k * square, EPS);
}

#define FINISH(...)                                                                                                  \
  template <class S>                                                                                                 \
  [[gnu::always_inline]] static inline void finish(const S *gram, [[maybe_unused]] const S *square, const S &k,      \
                                                   [[maybe_unused]] double option, S *out) {                         \
    __VA_ARGS__                                                                                                      \
  }

// One vector, scaled.
struct OfOne : Operation {
  static constexpr int IN = 1, BASIS = 1, GRAMS = 1;
  static constexpr int basis[1][MOST_IN] = {{1}}, grams[1][2] = {{0, 0}};
};

// A point and a tangent vector at it, which is scaled.
struct OfPointAndVector : Operation {
  static constexpr int IN = 2, BASIS = 2, GRAMS = 1, FIRST = 1;
  static constexpr int basis[2][MOST_IN] = {{1, 0}, {0, 1}}, grams[1][2] = {{0, 0}};
};

template <class Op, class T>
int run(const Layout &layout, double option, const double *k, const double *number, const void *const *in, void *out) {
  const auto at = [&](int v) { return static_cast<const T *>(in[v]); };
  const Call<T> call{layout, option, k, number, {at(0), at(1), at(2)}};
  if constexpr (std::is_base_of_v<Operation, Op>) return forward<Op, T>(call, static_cast<T *>(out));
  else return forward_chain<Op, T>(call, static_cast<T *>(out));
}

template <class Op, class T>
int run_back(const Layout &layout, double option, const double *k, const double *number, const void *const *in,
             const void *grad, void *const *grads, double *by_k, double *by_number) {
  const auto at = [&](int v) { return static_cast<const T *>(in[v]); };
  const auto to = [&](int v) { return static_cast<T *>(grads[v]); };
  const Call<T> call{layout, option, k, number, {at(0), at(1), at(2)}};
  const Wanted<T> wanted{{to(0), to(1), to(2)}, by_k, by_number};
  if constexpr (std::is_base_of_v<Operation, Op>) return backward<Op, T>(call, static_cast<const T *>(grad), wanted);
  else return backward_chain<Op, T>(call, static_cast<const T *>(grad), wanted);
}

}  // namespace

// name(layout, wide, option, k, number, three vectors, out), and name_backward(layout, wide, option, k, number, three
// vectors, gradient, gradients of the vectors, of k and of the number), null where there is none or none is wanted;
// `wide` says that vectors and results are double, not float. Both return whether a result is NaN
#define ROWS(name, Op) KERNELS(name, Op, double)
#define NARROW_ROWS(name, Op) KERNELS(name, Op, float)  // takes no double
#define KERNELS(name, Op, Wide)                                                                                             \
  extern "C" int gyroformer_##name(const Layout *layout, int wide, double option, const double *k,                    \
                                   const double *number, const void *x, const void *y, const void *z, void *out) {    \
    const void *const in[] = {x, y, z};                                                                               \
    return (wide ? run<Op, Wide> : run<Op, float>)(*layout, option, k, number, in, out);                            \
  }                                                                                                                   \
  extern "C" int gyroformer_##name##_backward(const Layout *layout, int wide, double option, const double *k,         \
                                              const double *number, const void *x, const void *y, const void *z,      \
                                              const void *grad, void *grad_x, void *grad_y, void *grad_z,             \
                                              double *grad_k, double *grad_number) {                                  \
    const void *const in[] = {x, y, z};                                                                               \
    void *const grads[] = {grad_x, grad_y, grad_z};                                                                   \
    return (wide ? run_back<Op, Wide> : run_back<Op, float>)(*layout, option, k, number, in, grad, grads, grad_k,   \
                                                              grad_number);                                           \
  }
