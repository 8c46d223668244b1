// The analytic functions of trig.py element by element, in double whatever the numbers' format, with their slopes.

#include <omp.h>

#include "arrays.hpp"
#include "lanes.hpp"

namespace {

// Writes f(z), its slope, and what else it says of `count` numbers; `f` takes Lanes and returns an Answer.
struct Answer { Lanes value, slope, other; };

template <class T, class Function>
void each(const T *z, T *value, T *slope, T *other, int64_t count, int threads, const Function &f) {
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1)
  for (int64_t i = 0; i < count; i += LANES) {
    if (count - i >= LANES) {
      const Answer y = f(read(z + i));
      write(value + i, y.value);
      write(slope + i, y.slope);
      if (other) write(other + i, y.other);
      continue;
    }
    Lanes x{};
    for (int64_t l = i; l < count; ++l) x[l - i] = static_cast<double>(z[l]);
    const Answer y = f(x);
    for (int64_t l = i; l < count; ++l) {
      value[l] = static_cast<T>(y.value[l - i]);
      slope[l] = static_cast<T>(y.slope[l - i]);
      if (other) other[l] = static_cast<T>(y.other[l - i]);
    }
  }
}

template <class Function>
void run(int wide, int64_t count, int threads, const void *z, void *value, void *slope, void *other, const Function &f) {
  if (count < 32768) threads = 1;
  const auto as = [&](auto kind) {
    using T = decltype(kind);
    each(static_cast<const T *>(z), static_cast<T *>(value), static_cast<T *>(slope), static_cast<T *>(other), count,
         threads, f);
  };
  if (wide) as(double{});
  else as(float{});
}

[[gnu::always_inline]] inline Answer answer(const Sloped &f) { return {f.value, f.slope, Lanes{}}; }
[[gnu::always_inline]] inline Answer answer(const Turn &t) { return {t.sine.value, t.sine.slope, t.cosine.value}; }

}  // namespace

// name(wide, count, threads, z, value, slope, other); only the last, the cosine beside a sine, may be null
#define RATIO(name, expression)                                                                                       \
  extern "C" void gyroformer_##name(int wide, int64_t count, int threads, const void *z, void *value, void *slope,    \
                                    void *other) {                                                                    \
    run(wide, count, threads, z, value, slope, other, [](Lanes x) { return answer(expression); });                    \
  }

RATIO(tan_ratio, tangent<true>(x).ratio)
RATIO(artan_ratio, arctangent_ratio<true>(x))
RATIO(arsin_ratio, arcsine_ratio<true>(x))
RATIO(sin_ratio_and_cos, turn<true>(x))
