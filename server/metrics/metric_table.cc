#include "server/metrics/metric_table.h"

#include <utility>

#include "runtime/engine/types/observer.h"

namespace reprise {
namespace {

template <typename Enum, typename Name>
std::vector<absl::string_view> NamesOf(int count, Name name) {
  std::vector<absl::string_view> names;
  for (int i = 0; i < count; ++i) names.push_back(name(static_cast<Enum>(i)));
  return names;
}

}  // namespace

std::vector<absl::string_view> CompileReasons() {
  return NamesOf<CompileReason>(kNumCompileReasons, CompileReasonName);
}

std::vector<absl::string_view> EvictionReasons() {
  return NamesOf<EvictionReason>(kNumEvictionReasons, EvictionReasonName);
}

std::vector<absl::string_view> StoreMisses() {
  return NamesOf<StoreMiss>(kNumStoreMisses, StoreMissName);
}

std::vector<absl::string_view> RequestCodes() {
  return {"OK",        "CANCELLED",          "INVALID_ARGUMENT",    "DEADLINE_EXCEEDED",
          "NOT_FOUND", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "UNIMPLEMENTED",
          "INTERNAL",  "UNAVAILABLE"};
}

std::vector<absl::string_view> FailureReasons() {
  return {"REJECTED", "CANCELED", "BACKEND", "OTHER"};
}

ModelMetrics::ModelMetrics(MetricScope of) : scope(std::move(of)) {}
ModelMetrics::~ModelMetrics() = default;

AxisMetrics::AxisMetrics(const MetricScope& of_model, const std::string& axis, size_t most)
    : scope(of_model.With({{"axis", axis}})), most_buckets(most) {}
AxisMetrics::~AxisMetrics() = default;

ServerMetrics::ServerMetrics(MetricScope of, const LabelValues& build)
    : scope(std::move(of)), scope_of_build(scope.With(build)) {}
ServerMetrics::~ServerMetrics() = default;

}  // namespace reprise
