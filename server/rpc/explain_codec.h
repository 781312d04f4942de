// Misses and certificates -> messages, for people and tools.
#pragma once

#include "proto/admin.pb.h"
#include "runtime/engine/model/model.h"
#include "runtime/engine/types/miss_report.h"
#include "server/repository/slow_requests.h"

namespace reprise {

void EncodeMiss(const MissRecord& record, v1::MissRecord& message);

void EncodeSlowRequest(const SlowRequest& request, v1::SlowRequest& message);

// Says which axes may be padded and why, in words that do not ask for the code.
void EncodeExplanation(const Model& model, v1::ExplainModelResponse& message);

}  // namespace reprise
