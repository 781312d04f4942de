// The spelling of the engine's enumerations in metrics, logs and response parameters. Each list is
// in the order of its enumeration.
#include "runtime/engine/types/observer.h"
#include "runtime/engine/types/request.h"

namespace reprise {
namespace {

struct CaptureOutcomeRow {
  absl::string_view name;
  int cost;  // more for what took longer
};

constexpr CaptureOutcomeRow kCaptureOutcomes[] = {
    {"replayed", 0}, {"captured", 4}, {"waited", 3}, {"larger", 1}, {"eager", 2}};

constexpr absl::string_view kCompileReasons[kNumCompileReasons] = {
    "warmup",           "bucket_change", "store_corrupt", "graph_changed", "device_changed",
    "compiler_changed", "policy_change", "evicted",       "first_request", "new_shape"};

constexpr absl::string_view kEvictionReasons[kNumEvictionReasons] = {"memory", "exact_limit",
                                                                     "unload", "retired"};

constexpr absl::string_view kAuditResults[kNumAuditResults] = {"equal", "different", "skipped"};

constexpr const char* kBucketModes[] = {"off", "suggest", "apply"};

const CaptureOutcomeRow& RowOf(CaptureOutcome outcome) {
  return kCaptureOutcomes[static_cast<size_t>(outcome)];
}

}  // namespace

CaptureOutcome Harder(CaptureOutcome a, CaptureOutcome b) {
  return RowOf(a).cost > RowOf(b).cost ? a : b;
}

absl::string_view CaptureOutcomeName(CaptureOutcome outcome) { return RowOf(outcome).name; }

absl::string_view CompileReasonName(CompileReason reason) {
  return kCompileReasons[static_cast<size_t>(reason)];
}

absl::string_view EvictionReasonName(EvictionReason reason) {
  return kEvictionReasons[static_cast<size_t>(reason)];
}

absl::string_view AuditResultName(AuditResult result) {
  return kAuditResults[static_cast<size_t>(result)];
}

const char* BucketModeName(BucketMode mode) { return kBucketModes[static_cast<size_t>(mode)]; }

}  // namespace reprise
