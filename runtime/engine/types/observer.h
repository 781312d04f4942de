// Observer: how the engine reports its work. The server implements it with metrics.
//
// Threads: all methods from any thread; they must not block. Strings are only valid in the call.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "runtime/engine/types/bucket_report.h"
#include "runtime/recipe/record_file.h"

namespace reprise {

struct ModelId {
  std::string name;
  int64_t version = 1;
};

// Why a recipe had to be compiled; the first that holds, in this order.
enum class CompileReason {
  kWarmup,
  kBucketChange,
  kStoreCorrupt,
  kGraphChanged,
  kDeviceChanged,
  kCompilerChanged,
  kPolicyChange,
  kEvicted,       // it was in the cache before, and was evicted
  kFirstRequest,  // the model had captured nothing yet
  kNewShape,      // a bucket or an exact shape that no request had before
};
inline constexpr int kNumCompileReasons = 10;
absl::string_view CompileReasonName(CompileReason reason);  // "first_request"

// Why a recipe left the cache.
enum class EvictionReason {
  kMemory,
  kExactLimit,
  kUnload,
  kRetired,  // its bucket left the set in force
};
inline constexpr int kNumEvictionReasons = 4;
absl::string_view EvictionReasonName(EvictionReason reason);  // "memory", "exact_limit", ...

struct CapturePhases {
  int64_t specialize_ns = 0;
  int64_t passes_ns = 0;
  int64_t plan_ns = 0;  // kernel choice, lifetimes, offsets
  int64_t bind_ns = 0;
  int64_t prepare_ns = 0;  // prepare program, the part not already shared
  int64_t prime_ns = 0;
  int64_t total_ns() const {
    return specialize_ns + passes_ns + plan_ns + bind_ns + prepare_ns + prime_ns;
  }
};

struct CompileRecord {
  CompileReason reason = CompileReason::kNewShape;
  absl::string_view bucket;
  absl::string_view recipe;  // hex key
  CapturePhases phases;
};

// Elements along one axis of a replay: client-sent and computed beyond them. Along the batch axis
// an element is a row; along any other axis it is a position of a live row.
struct AxisElements {
  int64_t valid = 0;
  int64_t padded = 0;
  // The padded share of the replay's time. 0 along the batch axis: kernels skip rows that no
  // request fills.
  int64_t wasted_ns = 0;
};

struct ReplayRecord {
  absl::string_view bucket;  // label; not of ModelObserverSpec::buckets where those have changed
  int64_t duration_ns = 0;
  int64_t rows = 0;  // rows of requests
  int64_t requests = 0;
  // The first replay of its exact sizes, for which no recipe was captured.
  bool saved_capture = false;
  absl::Span<const AxisElements> axes;  // indexed like ModelObserverSpec::axes
};

// Whether an axis may be padded: the ops prove it, or measurements alone show it; it was refused,
// or padding is switched off in the model's configuration.
enum class AxisPadding { kProved, kRefused, kOff };

// The facts about a model that are known when it is ready.
struct ModelObserverSpec {
  ModelId id;
  std::vector<std::string> axes;       // labels: "batch", "sequence", ...
  std::vector<AxisPadding> padding;    // indexed like `axes`
  std::vector<std::string> mixing;     // and AxisCertificate::mixing
  std::vector<std::string> buckets;    // Model::BucketLabels() at first, then "exact"
  std::vector<std::string> eager_ops;  // ops of nodes at which the model is cut
};

// The outcome of computing an answer again: see engine/audit/auditor.h.
enum class AuditResult {
  kEqual,
  kDifferent,
  kSkipped,  // no time, or no room, was left for it
};
inline constexpr int kNumAuditResults = 3;
absl::string_view AuditResultName(AuditResult result);  // "equal", "different", "skipped"

// A request of a batch: its sizes by axis, before bucketing.
struct RequestLengths {
  absl::Span<const int64_t> sizes;
};
// A lookup of a recipe in memory.
struct CacheLookup {
  bool hit = false;
};
// A lookup of the certificate of the model, or of a recipe, in the recipe store.
struct StoreRequest {
  std::optional<StoreMiss> miss;  // nullopt: it was there
};
// The cache holds `recipes` recipes of `bytes` that the model captured.
struct CacheSize {
  int64_t recipes = 0;
  int64_t bytes = 0;
};
struct RecipeEviction {
  EvictionReason reason = EvictionReason::kMemory;
};
// A recipe of this bucket has given way to one whose kernels were chosen by timing.
struct TunedRecipe {
  absl::string_view bucket;
};
// A recipe of this bucket is made again within a minute of its eviction.
struct Thrash {
  absl::string_view bucket;
};
// A node at a cut ran, of a model that is cut where data decides shapes, or a section after one.
struct EagerNodeRun {
  absl::string_view op;
  int64_t duration_ns = 0;
};
struct SectionRun {
  int64_t duration_ns = 0;
};
// An eager run looked for preparations of an earlier one; `ops` of them are kept; one of them was
// evicted. See EagerCache.
struct EagerCacheLookup {
  bool hit = false;
};
struct EagerCacheSize {
  int64_t ops = 0;
  int64_t bytes = 0;
};
struct EagerEviction {};
// A node of a captured recipe runs by its reference kernel.
struct ReferenceLaunch {
  absl::string_view op;
  absl::string_view node;
};
// An answer was not sent, since it did not have the form that the request's sizes promise: a bug.
struct WithheldAnswer {};
// An answer was computed again, or should have been.
struct AuditOutcome {
  AuditResult result = AuditResult::kSkipped;
};
// Padding along an axis (index in ModelObserverSpec::axes) ends, since an answer was another one
// than without.
struct Quarantine {
  size_t axis = 0;
};
// The traffic was looked at, or another set of buckets is in force. `labels`:
// Model::BucketLabels() now.
struct BucketsInForce {
  const BucketReport& report;
  const std::vector<std::string>& labels;
};

using ModelEvent =
    std::variant<CompileRecord, ReplayRecord, RequestLengths, CacheLookup, StoreRequest, CacheSize,
                 RecipeEviction, TunedRecipe, Thrash, EagerNodeRun, SectionRun, EagerCacheLookup,
                 EagerCacheSize, EagerEviction, ReferenceLaunch, WithheldAnswer, AuditOutcome,
                 Quarantine, BucketsInForce>;

// Joins functions of single events for std::visit; `[](const auto&) {}` takes all others.
template <typename... Functions>
struct OfEvent : Functions... {
  using Functions::operator()...;
};
template <typename... Functions>
OfEvent(Functions...) -> OfEvent<Functions...>;

// Receives one model version's events.
class ModelObserver {
 public:
  virtual ~ModelObserver() = default;
  virtual void On(const ModelEvent& event) = 0;
};

class Observer {
 public:
  virtual ~Observer() = default;
  // Called once when the model is ready to serve, before its first replay. Never null.
  virtual std::unique_ptr<ModelObserver> ForModel(const ModelObserverSpec& spec) = 0;
};

}  // namespace reprise
