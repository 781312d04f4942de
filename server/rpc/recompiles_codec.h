// EncodeRecompilations: which request brought which new shape to which module of a model.
//
// Threads: pure, for a model that is served meanwhile.
#pragma once

#include <vector>

#include "proto/admin.pb.h"
#include "runtime/engine/model/model.h"
#include "runtime/engine/types/miss_report.h"

namespace reprise {

// `misses`: of all models, the oldest first. Specialises the model's graph at each kept shape.
void EncodeRecompilations(const Model& model, const std::vector<MissRecord>& misses,
                          v1::ModelRecompilations& message);

}  // namespace reprise
