#include "server/metrics/metric_table.h"

namespace reprise {
namespace {

using Labels = std::vector<absl::string_view>;

const Labels kModel = {"model", "version"};

Labels ModelAnd(absl::string_view label) { return {"model", "version", label}; }

// 10 us to 10 s, two or three bounds a decade: requests, queues and compiles.
const std::vector<double> kSeconds = {1e-5,   2.5e-5, 5e-5, 1e-4,   2.5e-4, 5e-4, 1e-3,
                                      2.5e-3, 5e-3,   1e-2, 2.5e-2, 5e-2,   0.1,  0.25,
                                      0.5,    1,      2.5,  5,      10};
// The same span with fewer bounds, because there is a histogram for each bucket of each model.
const std::vector<double> kReplaySeconds = {1e-5, 3e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2,
                                            3e-2, 0.1,  0.3,  1,    3,    10};
const std::vector<double> kPowersOfTwo = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096};

std::vector<MetricRow> BuildTable() {
  constexpr MetricType kCounter = MetricType::kCounter;
  constexpr MetricType kGauge = MetricType::kGauge;
  constexpr MetricType kHistogram = MetricType::kHistogram;
  return {
      {MetricId::kCompiles,
       "reprise_compiles_total",
       kCounter,
       "Recipes captured because they were absent, one for each key, by the reason of the miss",
       ModelAnd("reason"),
       {}},
      {MetricId::kCompileDuration, "reprise_compile_duration_seconds", kHistogram,
       "Time of a capture, from the miss to the recipe in the cache", kModel, kSeconds},
      {MetricId::kTunes,
       "reprise_tunes_total",
       kCounter,
       "Recipes replaced by one with measured kernels",
       kModel,
       {}},
      {MetricId::kProbes,
       "reprise_probes_total",
       kCounter,
       "Runs of the padding certificate's measurements",
       kModel,
       {}},
      {MetricId::kReplays,
       "reprise_replays_total",
       kCounter,
       "Batches of requests executed, by bucket",
       ModelAnd("bucket"),
       {}},
      {MetricId::kReplayDuration, "reprise_replay_duration_seconds", kHistogram,
       "Time of a replay, from first to last launch", ModelAnd("bucket"), kReplaySeconds},
      {MetricId::kCacheRequests,
       "reprise_cache_requests_total",
       kCounter,
       "Lookups of a recipe, by tier (memory, store) and outcome (hit, miss)",
       {"model", "version", "tier", "outcome"},
       {}},
      {MetricId::kCacheRecipes, "reprise_cache_recipes", kGauge, "Recipes in memory", kModel, {}},
      {MetricId::kCacheBytes,
       "reprise_cache_bytes",
       kGauge,
       "Bytes of the recipes in memory",
       kModel,
       {}},
      {MetricId::kCacheEvictions,
       "reprise_cache_evictions_total",
       kCounter,
       "Recipes that left the memory, by reason",
       ModelAnd("reason"),
       {}},
      {MetricId::kElements,
       "reprise_elements_total",
       kCounter,
       "Elements computed along an axis: valid ones were sent by a client, padded ones by no one",
       {"model", "version", "axis", "kind"},
       {}},
      {MetricId::kBatchSize, "reprise_batch_size", kHistogram, "Rows of a replay that clients sent",
       kModel, kPowersOfTwo},
      {MetricId::kRequestLength, "reprise_request_length", kHistogram,
       "Sizes of the requests along an axis", ModelAnd("axis"), kPowersOfTwo},
      {MetricId::kQueueDepth,
       "reprise_queue_depth",
       kGauge,
       "Requests waiting for a stream",
       kModel,
       {}},
      {MetricId::kQueueDuration, "reprise_queue_duration_seconds", kHistogram,
       "Time of a request in the queue", kModel, kSeconds},
      {MetricId::kRequestDuration, "reprise_request_duration_seconds", kHistogram,
       "Time of a request, from its last byte read to its answer handed to the transport", kModel,
       kSeconds},
      {MetricId::kRequests,
       "reprise_requests_total",
       kCounter,
       "Requests answered, by status code",
       ModelAnd("code"),
       {}},
      {MetricId::kReferenceKernels,
       "reprise_reference_kernels_total",
       kCounter,
       "Nodes compiled to their plain reference kernel because the device has none, by operator",
       ModelAnd("op"),
       {}},
      {MetricId::kModelReady,
       "reprise_model_ready",
       kGauge,
       "1 if the model answers requests, 0 while it loads or when it was refused",
       kModel,
       {}},
      {MetricId::kBuildInfo,
       "reprise_build_info",
       kGauge,
       "Always 1; the labels say what runs here",
       {"version", "compiler", "isa", "cpu"},
       {}},
      {MetricId::kServerReady,
       "reprise_server_ready",
       kGauge,
       "1 once every model is loaded or refused, until the server drains",
       {},
       {}},
      {MetricId::kNvRequestSuccess,
       "nv_inference_request_success",
       kCounter,
       "Requests answered without an error",
       kModel,
       {}},
      {MetricId::kNvRequestFailure,
       "nv_inference_request_failure",
       kCounter,
       "Requests answered with an error (REJECTED by the queue, CANCELED, BACKEND, OTHER)",
       ModelAnd("reason"),
       {}},
      {MetricId::kNvInferenceCount, "nv_inference_count", kCounter, "Rows answered", kModel, {}},
      {MetricId::kNvExecCount, "nv_inference_exec_count", kCounter, "Batches executed", kModel, {}},
      {MetricId::kNvPendingRequests,
       "nv_inference_pending_request_count",
       kGauge,
       "Requests waiting for a stream",
       kModel,
       {}},
      {MetricId::kNvRequestDuration,
       "nv_inference_request_duration_us",
       kCounter,
       "Sum of the times of successful requests, in microseconds",
       kModel,
       {}},
      {MetricId::kNvQueueDuration,
       "nv_inference_queue_duration_us",
       kCounter,
       "Sum of their times in the queue, in microseconds",
       kModel,
       {}},
      {MetricId::kNvComputeInputDuration,
       "nv_inference_compute_input_duration_us",
       kCounter,
       "Sum of their times of gathering inputs, in microseconds",
       kModel,
       {}},
      {MetricId::kNvComputeInferDuration,
       "nv_inference_compute_infer_duration_us",
       kCounter,
       "Sum of their times of capture and replay, in microseconds",
       kModel,
       {}},
      {MetricId::kNvComputeOutputDuration,
       "nv_inference_compute_output_duration_us",
       kCounter,
       "Sum of their times of scattering outputs, in microseconds",
       kModel,
       {}},
      {MetricId::kProcessResidentMemory,
       "process_resident_memory_bytes",
       kGauge,
       "Resident memory of the process",
       {},
       {}},
      {MetricId::kProcessVirtualMemory,
       "process_virtual_memory_bytes",
       kGauge,
       "Address space of the process",
       {},
       {}},
      {MetricId::kProcessCpuSeconds,
       "process_cpu_seconds_total",
       kCounter,
       "CPU time of the process, user and system",
       {},
       {}},
      {MetricId::kProcessStartTime,
       "process_start_time_seconds",
       kGauge,
       "Start of the process, in seconds since 1970",
       {},
       {}},
      {MetricId::kProcessThreads, "process_threads", kGauge, "Threads of the process", {}, {}},
      {MetricId::kProcessOpenFds, "process_open_fds", kGauge, "Open file descriptors", {}, {}},
  };
}

}  // namespace

absl::Span<const MetricRow> MetricTable() {
  static const std::vector<MetricRow> table = BuildTable();
  return table;
}

absl::Span<const absl::string_view> FailureReasons() {
  static constexpr absl::string_view kReasons[] = {"REJECTED", "CANCELED", "BACKEND", "OTHER"};
  return kReasons;
}

absl::Span<const absl::string_view> RequestCodes() {
  static constexpr absl::string_view kCodes[] = {
      "OK",        "CANCELLED",          "INVALID_ARGUMENT",    "DEADLINE_EXCEEDED",
      "NOT_FOUND", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "UNIMPLEMENTED",
      "INTERNAL",  "UNAVAILABLE"};
  return kCodes;
}

}  // namespace reprise
