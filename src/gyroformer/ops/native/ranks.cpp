// How many nodes that are no neighbours come before each neighbour, from rows of distances.

#include <algorithm>
#include <vector>
#include <omp.h>

#include "scalar.hpp"

extern "C" {

// before (R, most): entry i counts those at most as far as the i-th nearest neighbour of the node; 0 beyond its degree.
// distances (R, N); rows (R); the neighbours of a node, each once and never itself, are indices[indptr[u] ...]
void gyroformer_ranks(const float *distances, const int64_t *rows, const int64_t *indptr, const int64_t *indices,
                      int64_t *before, int64_t count, int64_t nodes, int64_t most, int threads) {
#pragma omp parallel num_threads(threads)
  {
    std::vector<float> near;
#pragma omp for schedule(static)
    for (int64_t row = 0; row < count; ++row) {
      const float *away = distances + row * nodes;
      const int64_t *first = indices + indptr[rows[row]], *last = indices + indptr[rows[row] + 1];
      int64_t *counts = before + row * most;
      std::fill(counts, counts + most, 0);
      near.clear();
      for (const int64_t *v = first; v < last; ++v) near.push_back(away[*v]);
      if (near.empty()) continue;
      std::sort(near.begin(), near.end());
      const float farthest = near.back();
      const auto add = [&](float distance, int64_t one) {
        if (distance <= farthest) counts[std::lower_bound(near.begin(), near.end(), distance) - near.begin()] += one;
      };
      for (int64_t v = 0; v < nodes; ++v) add(away[v], 1);
      for (const int64_t *v = first; v < last; ++v) add(away[*v], -1);
      add(away[rows[row]], -1);
      for (size_t i = 1; i < near.size(); ++i) counts[i] += counts[i - 1];
    }
  }
}

}  // extern "C"
