// ModelCounts: the activity of one version of a model since it was loaded first, as numbers.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace reprise {

struct ModelCounts {
  std::string model;
  std::string version;
  std::map<std::string, uint64_t> compiles_by_reason;
  double compile_seconds = 0;
  std::map<std::string, uint64_t> replays_by_bucket;
  // Batches whose recipe was in memory, or was not; lookups in the recipe store.
  uint64_t hits = 0, misses = 0;
  uint64_t store_hits = 0, store_misses = 0;
  // Elements of replays by axis: the ones that requests sent, and the padding beyond them.
  struct Padding {
    uint64_t valid = 0, padded = 0;
  };
  std::map<std::string, Padding> padding;
  uint64_t recipes = 0, recipe_bytes = 0;  // recipes in memory now
};

}  // namespace reprise
