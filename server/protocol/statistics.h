// Statistics of a version -> inference.ModelStatistics.
#pragma once

#include "proto/grpc_service.pb.h"
#include "server/repository/repository.h"

namespace reprise {

void EncodeStatistics(const ModelVersion& version, inference::ModelStatistics& message);

}  // namespace reprise
