// THE table of metrics: every name that a scrape can show, declared once.
#pragma once

#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace reprise {

enum class MetricType { kCounter, kGauge, kHistogram };

// The row of a metric is MetricTable()[static_cast<int>(id)].
enum class MetricId {
  kCompiles,
  kCompileDuration,
  kTunes,
  kProbes,
  kReplays,
  kReplayDuration,
  kCacheRequests,
  kCacheRecipes,
  kCacheBytes,
  kCacheEvictions,
  kCacheThrash,
  kMemory,
  kArenaReleases,
  kElements,
  kBucketElements,
  kWasted,
  kBucketWaste,
  kBucketDrift,
  kBucketChanges,
  kBucketSaving,
  kCapturesSaved,
  kBatchSize,
  kRequestLength,
  kQueueDepth,
  kQueueDuration,
  kRequestDuration,
  kRequests,
  kReferenceKernels,
  kWithheldAnswers,
  kEagerNodes,
  kEagerSeconds,
  kSections,
  kSectionSeconds,
  kEagerCacheRequests,
  kEagerCacheOps,
  kEagerCacheBytes,
  kEagerCacheEvictions,
  kStoreMisses,
  kModelReady,
  kAxisCertified,
  kAxisVerdict,
  kWarmupWanted,
  kWarmupDone,
  kBuildInfo,
  kServerReady,
  kNvRequestSuccess,
  kNvRequestFailure,
  kNvInferenceCount,
  kNvExecCount,
  kNvPendingRequests,
  kNvRequestDuration,
  kNvQueueDuration,
  kNvComputeInputDuration,
  kNvComputeInferDuration,
  kNvComputeOutputDuration,
  kStoreUsable,
  kStoreWritable,
  kStoreEntries,
  kStoreBytes,
  kStoreMaxBytes,
  kStoreReads,
  kStoreCorrupt,
  kStoreWrites,
  kStoreWriteFailures,
  kStoreEvictions,
  kStorePendingWrites,
  kProcessResidentMemory,
  kProcessVirtualMemory,
  kProcessCpuSeconds,
  kProcessStartTime,
  kProcessThreads,
  kProcessOpenFds,
  kCount,
};

struct MetricRow {
  MetricId id;
  absl::string_view name;
  MetricType type;
  absl::string_view help;
  std::vector<absl::string_view> labels;
  std::vector<double> buckets;  // upper bounds of a histogram, in the unit of the name
};

// In the order of MetricId.
absl::Span<const MetricRow> MetricTable();

// The values of `reason` of nv_inference_request_failure.
absl::Span<const absl::string_view> FailureReasons();

// How a request ended: the values of `code` of reprise_requests_total.
absl::Span<const absl::string_view> RequestCodes();

}  // namespace reprise
