#include "server/rpc/explain_codec.h"

#include <algorithm>
#include <chrono>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/shown_text.h"
#include "runtime/engine/model/tail.h"
#include "server/rpc/recipe_codec.h"

namespace reprise {
namespace {

constexpr double kMsPerNs = 1e-6;

bool Contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Returns what becomes of requests beyond the largest bucket of `axis`.
std::string BeyondBuckets(const BucketPolicy& policy, const std::string& axis) {
  const auto buckets =
      absl::c_find_if(policy.axes, [&](const AxisBuckets& one) { return one.axis == axis; });
  if (buckets == policy.axes.end()) return "";
  const int64_t last = buckets->sizes.back();
  if (policy.overflow == BucketPolicy::Overflow::kReject) {
    return absl::StrCat("; longer than ", last, " is refused");
  }
  std::string exact = absl::StrCat("; longer than ", buckets->Largest(), " runs exact");
  if (buckets->opens_to <= last) return exact;
  return absl::StrCat("; longer than ", last, " opens buckets by itself: ", buckets->OpeningText(),
                      exact);
}

std::string Consequence(const Model& model, const ModelAxis& axis, bool certified) {
  if (!certified && model.packing() != nullptr) {
    const Packing& packing = *model.packing();
    return axis.is_batch
               ? absl::StrCat("requests share replays, each as a whole: ", model.packing_reason())
               : absl::StrCat("never padded, but packed: requests lie one after another, up to ",
                              packing.buckets().back(), " tokens a replay; longer than ",
                              packing.longest(), " runs exact");
  }
  if (axis.is_batch) {
    return certified ? "requests share replays"
                     : "every request runs alone, on a recipe of exactly its number of rows";
  }
  if (!certified) return "never padded: every size gets a recipe of its own, or runs eagerly";
  const std::shared_ptr<const BucketPolicy> policy = model.buckets();
  const std::string padding =
      model.packing_refusal().empty()
          ? "padded to the next bucket"
          : absl::StrCat("padded to the next bucket, not packed: ", model.packing_refusal());
  const auto range = model.options().ranges.find(axis.label);
  const bool bounded = range != model.options().ranges.end();
  return absl::StrCat(model.packing() != nullptr
                          ? absl::StrCat("packed: requests lie one after another, up to ",
                                         model.packing()->buckets().back(), " tokens a replay")
                          : padding,
                      bounded ? absl::StrCat("; sizes are ", range->second.Text()) : "",
                      bounded ? "" : BeyondBuckets(*policy, axis.label));
}

void EncodeBoundaries(const std::vector<std::string>& axes, const BoundarySets& sets,
                      google::protobuf::RepeatedPtrField<v1::AxisBoundaries>& message) {
  for (size_t i = 0; i < sets.size(); ++i) {
    v1::AxisBoundaries& one = *message.Add();
    one.set_axis(axes[i]);
    one.mutable_sizes()->Add(sets[i].begin(), sets[i].end());
  }
}

void EncodeBuckets(const BucketReport& report, v1::BucketLearning& message) {
  message.set_policy(BucketModeName(report.mode));
  EncodeBoundaries(report.axes, report.state.boundaries, *message.mutable_in_force());
  message.set_requests(static_cast<uint64_t>(report.state.requests));
  message.set_changes(static_cast<uint64_t>(report.state.changes));
  message.set_expected_waste(report.state.expected_waste);
  message.set_actual_waste(report.actual_waste);
  message.set_best_waste(report.state.best_waste);
  message.set_drift(report.state.drift);
  message.set_changing(report.changing);
  if (!report.suggestion.has_value()) return;
  EncodeBoundaries(report.axes, report.suggestion->boundaries, *message.mutable_suggestion());
  message.set_suggested_saving(report.suggestion->saving);
  message.set_suggested_payback_seconds(report.suggestion->payback_s);
}

void EncodeReplayTimes(const ReplayCost& cost, v1::BucketLearning& message) {
  for (const ReplayCost::Sample& sample : cost.Samples()) {
    v1::ReplayTimes& times = *message.add_replay_times();
    times.set_row_size(sample.row_size);
    times.set_replays(sample.weight);
    times.set_rows(sample.rows);
    times.set_rows_squared(sample.rows2);
    times.set_ns(sample.ns);
    times.set_rows_times_ns(sample.rows_ns);
  }
}

}  // namespace

void EncodeMiss(const MissRecord& record, v1::MissRecord& message) {
  message.set_sequence(static_cast<uint64_t>(record.sequence));
  *message.mutable_time() = EncodeTime(record.time);
  message.set_model(record.model.name);
  message.set_version(absl::StrCat(record.model.version));
  message.set_bucket(record.bucket);
  message.set_binding(record.binding);
  message.set_recipe(record.recipe);
  message.set_reason(std::string(CompileReasonName(record.reason)));
  message.set_behind(record.behind);
  message.set_nearest(record.nearest);
  for (const KeyDifference& difference : record.differences) {
    v1::KeyDifference& one = *message.add_differences();
    one.set_field(difference.field);
    one.set_wanted(difference.wanted);
    one.set_had(difference.had);
  }
  const auto phase = [&](const char* name, int64_t ns) {
    v1::CapturePhase& one = *message.add_phases();
    one.set_name(name);
    one.set_ms(static_cast<double>(ns) * kMsPerNs);
  };
  phase("specialise", record.phases.specialize_ns);
  phase("passes", record.phases.passes_ns);
  phase("plan", record.phases.plan_ns);
  phase("bind", record.phases.bind_ns);
  phase("prepare", record.phases.prepare_ns);
  phase("prime", record.phases.prime_ns);
  // The resident memory is read where compiling ends, and after each of the two steps after it.
  message.mutable_phases(3)->set_rss_bytes(record.compile_rss_bytes);
  message.mutable_phases(4)->set_rss_bytes(record.prepare_rss_bytes);
  message.mutable_phases(5)->set_rss_bytes(record.prime_rss_bytes);
  message.set_total_ms(static_cast<double>(record.phases.total_ns()) * kMsPerNs);
  message.set_recipe_bytes(static_cast<uint64_t>(record.recipe_bytes));
  message.set_frame_bytes(static_cast<uint64_t>(record.frame_bytes));
  for (const CaptureWaiter& waiter : record.waiters) {
    v1::CaptureWaiter& one = *message.add_waiters();
    one.set_request_id(waiter.request_id);
    one.set_waited_ms(static_cast<double>(waiter.waited_ns) * kMsPerNs);
  }
  message.set_num_waiters(static_cast<uint64_t>(record.num_waiters));
  message.set_longest_wait_ms(static_cast<double>(record.longest_wait_ns) * kMsPerNs);
  message.set_suggestion(record.suggestion);
  message.set_section(record.section);
  message.set_cause(record.cause);
  for (const std::string& input : record.inputs) message.add_inputs(input);
  for (const std::string& output : record.outputs) message.add_outputs(output);
}

void EncodeSlowRequest(const SlowRequest& request, v1::SlowRequest& message) {
  constexpr double kMsPerNs = 1e-6;
  message.set_id(ShownText(request.id, kShownIdBytes));
  const auto since = request.time.time_since_epoch();
  const auto ns = std::chrono::duration_cast<std::chrono::nanoseconds>(since).count();
  message.mutable_time()->set_seconds(ns / 1'000'000'000);
  message.mutable_time()->set_nanos(static_cast<int32_t>(ns % 1'000'000'000));
  message.set_total_ms(static_cast<double>(request.total_ns) * kMsPerNs);
  message.set_stage(request.slow_stage());
  for (const auto& [name, stage_ns] : request.stages) {
    v1::StageTime& stage = *message.add_stages();
    stage.set_name(name);
    stage.set_ms(static_cast<double>(stage_ns) * kMsPerNs);
  }
  message.set_bucket(request.bucket);
  message.set_capture(request.capture);
  message.set_rows(static_cast<uint64_t>(request.rows));
}

void EncodeExplanation(const Model& model, v1::ExplainModelResponse& message) {
  message.set_model(model.id().name);
  message.set_version(absl::StrCat(model.id().version));
  message.set_precision(PrecisionWords(model.options()));
  const std::shared_ptr<const BucketPolicy> policy = model.buckets();
  for (size_t i = 0; i < model.axes().size(); ++i) {
    const ModelAxis& axis = model.axes()[i];
    v1::AxisExplanation& one = *message.add_axes();
    const AxisCertificate certificate = model.CertificateOf(i);
    one.set_axis(axis.label);
    one.set_symbol(axis.symbol);
    one.set_certified(certificate.certified);
    one.set_reason(certificate.reason);
    one.set_consequence(Consequence(model, axis, certificate.certified));
    one.set_mixing(certificate.mixing);
    for (const ModelIo& input : model.inputs()) {
      const bool has_axis = std::any_of(input.dims.begin(), input.dims.end(),
                                        [&](const Dim& dim) { return dim.symbol == axis.symbol; });
      if (!has_axis || !certificate.certified) continue;
      if (Contains(certificate.guards, input.name)) {
        const auto fill = model.options().fills.find(input.name);
        v1::GuardInput& guard = *one.add_guards();
        guard.set_input(input.name);
        guard.set_fill(fill == model.options().fills.end() ? 0 : fill->second);
      } else {
        one.add_free_inputs(input.name);
      }
    }
    for (const AxisBuckets& buckets : policy->axes) {
      if (buckets.axis != axis.label || model.packing() != nullptr) continue;
      for (const int64_t size : buckets.sizes) one.add_buckets(size);
    }
  }
  if (model.tail() != nullptr) {
    for (const Cut& cut : model.tail()->cuts()) {
      v1::CutExplanation& one = *message.add_cuts();
      one.set_op(cut.op);
      one.set_node(cut.node);
      one.set_reason(cut.why);
      one.set_depth(static_cast<uint32_t>(cut.level));
    }
    for (const Tail::SectionWords& section : model.tail()->Sections()) {
      v1::SectionExplanation& one = *message.add_sections();
      one.set_section(section.section);
      for (const std::string& size : section.sizes) one.add_sizes(size);
    }
  }
  if (const EagerUse use = model.eager_share()->use(); use.hits + use.misses > 0) {
    v1::EagerCacheUse& eager = *message.mutable_eager_cache();
    eager.set_ops(static_cast<uint64_t>(use.ops));
    eager.set_bytes(static_cast<uint64_t>(use.bytes));
    eager.set_hits(static_cast<uint64_t>(use.hits));
    eager.set_misses(static_cast<uint64_t>(use.misses));
    eager.set_evictions(static_cast<uint64_t>(use.evictions));
  }
  EncodeBuckets(model.learner().Report(), *message.mutable_buckets());
  EncodeReplayTimes(*model.learner().Cost(), *message.mutable_buckets());
}

}  // namespace reprise
