// Requests of given lengths, and their answers by an engine without a server.
#pragma once

#include <cstdint>
#include <memory>
#include <random>
#include <vector>

#include "runtime/engine/engine.h"

namespace reprise {

// A request of one row of tokens for every input of the model: ones for masks, zeros for types, ids
// drawn from `random`.
struct OneRow {
  OneRow(const Model& model, int64_t length, std::mt19937& random);
  OneRow(const OneRow&) = delete;
  std::vector<std::vector<int64_t>> columns;
  Request request;
};

// Nanoseconds for all of `requests`. Requests within a window of `window` may share a replay,
// unless `alone`. Failures are printed to standard error.
int64_t RunTrace(Engine& engine, const Model& model, Stream& stream,
                 const std::vector<std::unique_ptr<OneRow>>& requests, size_t window, bool alone);

}  // namespace reprise
