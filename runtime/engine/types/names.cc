// The spelling of the engine's enumerations in metrics, logs and response parameters.
#include "runtime/engine/types/observer.h"
#include "runtime/engine/types/request.h"

namespace reprise {
namespace {

int Rank(CaptureOutcome outcome) {
  switch (outcome) {
    case CaptureOutcome::kReplayed:
      return 0;
    case CaptureOutcome::kLarger:
      return 1;
    case CaptureOutcome::kEager:
      return 2;
    case CaptureOutcome::kWaited:
      return 3;
    case CaptureOutcome::kCaptured:
      return 4;
  }
  return 0;
}

}  // namespace

CaptureOutcome Harder(CaptureOutcome a, CaptureOutcome b) { return Rank(a) > Rank(b) ? a : b; }

absl::string_view CaptureOutcomeName(CaptureOutcome outcome) {
  switch (outcome) {
    case CaptureOutcome::kReplayed:
      return "replayed";
    case CaptureOutcome::kCaptured:
      return "captured";
    case CaptureOutcome::kWaited:
      return "waited";
    case CaptureOutcome::kLarger:
      return "larger";
    case CaptureOutcome::kEager:
      return "eager";
  }
  return "";
}

absl::string_view CompileReasonName(CompileReason reason) {
  switch (reason) {
    case CompileReason::kWarmup:
      return "warmup";
    case CompileReason::kBucketChange:
      return "bucket_change";
    case CompileReason::kStoreCorrupt:
      return "store_corrupt";
    case CompileReason::kGraphChanged:
      return "graph_changed";
    case CompileReason::kDeviceChanged:
      return "device_changed";
    case CompileReason::kCompilerChanged:
      return "compiler_changed";
    case CompileReason::kPolicyChange:
      return "policy_change";
    case CompileReason::kEvicted:
      return "evicted";
    case CompileReason::kFirstRequest:
      return "first_request";
    case CompileReason::kNewShape:
      return "new_shape";
  }
  return "";
}

absl::string_view EvictionReasonName(EvictionReason reason) {
  switch (reason) {
    case EvictionReason::kMemory:
      return "memory";
    case EvictionReason::kExactLimit:
      return "exact_limit";
    case EvictionReason::kUnload:
      return "unload";
    case EvictionReason::kRetired:
      return "retired";
  }
  return "";
}

absl::string_view AuditResultName(AuditResult result) {
  switch (result) {
    case AuditResult::kEqual:
      return "equal";
    case AuditResult::kDifferent:
      return "different";
    case AuditResult::kSkipped:
      return "skipped";
  }
  return "";
}

const char* BucketModeName(BucketMode mode) {
  switch (mode) {
    case BucketMode::kOff:
      return "off";
    case BucketMode::kSuggest:
      return "suggest";
    case BucketMode::kApply:
      return "apply";
  }
  return "off";
}

}  // namespace reprise
