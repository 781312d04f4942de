// Series of the catalogue -> reprise.v1.ModelStats: the same numbers that /metrics shows.
#pragma once

#include "proto/admin.pb.h"
#include "server/metrics/catalogue.h"
#include "server/repository/repository.h"

namespace reprise {

// `counted`: null where the model has not been asked for.
void EncodeModelStats(const Repository::Listed& listed, const ModelMetrics* counted,
                      v1::ModelStats& message);

// Adds the cache of one version to the cache of the process.
void AddCacheStats(const v1::CacheStats& version, v1::CacheStats& total);

}  // namespace reprise
