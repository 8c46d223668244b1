// Dropout of a block of features by random bits that were drawn for it.

#include <cstdint>

extern "C" {

// out[i] = scale x[i] where the bits of entry i, read as a signed number, are below a bound, else 0
void gyroformer_dropout(const float *x, const int16_t *bits, float *out, int64_t count, int below, float scale, int) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) out[i] = bits[i] < below ? scale * x[i] : 0.f;
}

}  // extern "C"
