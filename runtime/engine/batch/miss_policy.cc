#include "runtime/engine/batch/miss_policy.h"

#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/engine/capture/exact_limit.h"
#include "runtime/engine/model/split_axes.h"
#include "runtime/engine/types/miss_report.h"

namespace reprise {
namespace {

// A batch that stays small loses this share of its replay again for each request left out.
constexpr double kLossPerRequestLeftOut = 0.25;
// Where there are many shapes, exact ones or buckets: one that was seen once is not captured in the
// background.
constexpr int64_t kMinTimesOfMany = 2;

// Returns whether a request may get a larger recipe than its bucket's.
bool TakesLarger(OnMiss on_miss, const ModelOptions& options, bool frozen) {
  if (on_miss == OnMiss::kPad || on_miss == OnMiss::kFrozen) return true;
  if (on_miss != OnMiss::kDefault) return false;
  return frozen ||
         (options.capture != CapturePolicy::kInline && options.capture != CapturePolicy::kOff);
}

bool RunsEagerly(OnMiss on_miss, const Model& model, bool frozen) {
  // A front without nodes is worth no recipe.
  if (on_miss == OnMiss::kEager || model.has_empty_front()) return true;
  const ModelOptions& options = model.options();
  const bool as_configured = on_miss == OnMiss::kDefault || on_miss == OnMiss::kFrozen;
  if (as_configured && options.capture == CapturePolicy::kOff) return true;
  return on_miss == OnMiss::kDefault && !frozen && options.capture == CapturePolicy::kBackground;
}

bool MayCapture(OnMiss on_miss, bool frozen) {
  return !frozen && (on_miss == OnMiss::kDefault || on_miss == OnMiss::kWait);
}

std::string RecipeName(const Recipe& recipe) {
  return recipe.note.bucket == "exact" ? recipe.note.binding : recipe.note.bucket;
}

}  // namespace

BatchPlan::Resolution MissPolicy::Resolve(const BatchPlan& plan) {
  const Model& model = plan.model();
  const bool frozen = model.IsFrozen(options_);
  const RequestShape& shape = plan.shapes()[0];
  BatchPlan::Resolution result{.decided = true};
  if (!shape.overrides.empty()) {
    absl::StatusOr<std::shared_ptr<const ModelVariant>> variant =
        model.program().variants->Get(shape.overrides);
    if (!variant.ok()) {
      result.status = variant.status();
      return result;
    }
    result.variant = *std::move(variant);
  } else if (shape.splits_axes()) {
    absl::StatusOr<std::shared_ptr<const ModelVariant>> variant =
        model.program().split_axes->Variant();
    if (!variant.ok()) {
      result.status = variant.status();
      return result;
    }
    result.variant = *std::move(variant);
  }
  const RecipeKey key = plan.Key(result.variant.get());
  result.recipe = cache_.Find(key);
  model.owner()->observer().On(CacheLookup{result.recipe != nullptr});
  if (Wants(options_.debug, LogModule::kLookup)) {
    options_.debug->Say(
        LogModule::kLookup,
        absl::StrCat("recipe ", key.hex(), ", ", plan.target().bucket, " (",
                     model.BindingText(key.binding), "), of model ", model.id().name, ": ",
                     result.recipe != nullptr ? "in memory" : "not in memory"));
  }
  if (result.recipe != nullptr) return result;
  if (!shape.exact && TakesLarger(shape.on_miss, model.options(), frozen)) {
    result.recipe = SmallestThatServes(*plan.ready_index().Snapshot(), key, plan.paddable(),
                                       plan.cheap_symbol());
    if (result.recipe != nullptr && MayCaptureFor(plan) && model.has_many_buckets() &&
        plan.SoonerOnItsOwn(plan.TargetOf(*result.recipe))) {
      result.recipe = nullptr;
    }
    if (result.recipe != nullptr) {
      result.outcome = CaptureOutcome::kLarger;
      cache_.Find(result.recipe->key);  // it was used
      return result;
    }
  }
  if (RunsEagerly(shape.on_miss, model, frozen) ||
      (plan.target().exact && MayCaptureFor(plan) &&
       IsOneTooMany(model, shape.on_miss, key, cache_))) {
    result.outcome = CaptureOutcome::kEager;
    return result;
  }
  // A plan that may not begin a capture may still wait for one that is under way: see Prepare.
  result.decided = false;
  return result;
}

bool MissPolicy::MayCaptureFor(const BatchPlan& plan) const {
  return MayCapture(plan.shapes()[0].on_miss, plan.model().IsFrozen(options_));
}

absl::Status MissPolicy::Refusal(const BatchPlan& plan) const {
  const Model& model = plan.model();
  const RequestShape& shape = plan.shapes()[0];
  const RecipeKey key = plan.Key();
  const auto nearest = NearestRecipe(*plan.ready_index().Snapshot(), key);
  const std::string why = model.IsFrozen(options_)
                              ? (options_.frozen ? "the server is frozen" : "the model is frozen")
                          : shape.on_miss == OnMiss::kFrozen ? "reprise.on_miss is frozen"
                          : shape.on_miss == OnMiss::kPad
                              ? "reprise.on_miss is pad, and no ready recipe is large enough"
                              : "reprise.on_miss is reject";
  return absl::FailedPreconditionError(absl::StrCat(
      "model '", model.id().name, "' has no recipe for ", plan.target().bucket, " (",
      model.BindingText(key.binding), "), and ", why, "; ",
      nearest == nullptr ? "no recipe is ready"
                         : absl::StrCat("the nearest that is ready is ", RecipeName(*nearest))));
}

std::shared_ptr<CaptureTicket> MissPolicy::Prepare(BatchPlan& plan,
                                                   std::function<void(absl::Status)> ready) {
  // Where a request overrides initialisers, the model variant is built, and its exact recipe
  // captured, on the stream that runs it.
  if (!plan.shapes()[0].overrides.empty()) return nullptr;
  const Model& model = plan.model();
  const RequestShape& shape = plan.shapes()[0];
  const bool frozen = model.IsFrozen(options_);
  const bool waits_for_slice = shape.in_new_slice && !shape.splits_axes() &&
                               options_.captures != nullptr &&
                               !RunsEagerly(shape.on_miss, model, frozen);
  if (waits_for_slice) {
    if (auto ticket = slices_.Await(model, shape, CaptureUrgency::kUrgent, ready)) return ticket;
  }
  BatchPlan::Resolution resolution = Resolve(plan);
  if (resolution.decided) {
    plan.Resolve(std::move(resolution));
    return nullptr;
  }
  const std::shared_ptr<const ModelVariant> variant = resolution.variant;
  if (shape.splits_axes()) {
    ready = [ready = std::move(ready), misfit = shape.misfit](absl::Status status) {
      ready(WithMisfit(std::move(status), misfit));
    };
  }
  const bool larger_will_do = !shape.exact && TakesLarger(shape.on_miss, model.options(), frozen);
  const RecipeKey key = plan.Key(variant.get());
  const bool roomier_may_do = larger_will_do && model.has_many_buckets();
  Captures::Waiter waiter{.done = ready};
  for (const RequestShape& one : plan.shapes()) waiter.request_ids.push_back(one.id);
  // A capture that is under way anyway (for a warm-up, say) is waited for, also by plans that may
  // not begin a capture.
  std::shared_ptr<CaptureTicket> ticket;
  if (shape.on_miss != OnMiss::kReject) {
    const std::set<std::string> none;
    Captures::Waiter joining = waiter;
    // A recipe that is captured for others as well may be refused where the plan's own recipe is
    // not: waiters resolve again.
    if (roomier_may_do) joining.done = [ready](absl::Status) { ready(absl::OkStatus()); };
    ticket = captures_.Join(key, larger_will_do ? plan.paddable() : none, std::move(joining));
  }
  if (ticket != nullptr) return ticket;
  if (!MayCaptureFor(plan)) {
    plan.Resolve({.status = Refusal(plan), .decided = true});
    return nullptr;
  }
  CaptureTarget target = plan.CaptureTargetOf(plan.target(), variant);
  if (roomier_may_do) {
    const auto roomier = plan.RoomierTarget(*plan.ready_index().Snapshot());
    if (roomier.has_value()) {
      CaptureTarget other = plan.CaptureTargetOf(*roomier);
      if (!cache_.Contains(other.key) && !refused_roomier_.Contains(other.key.hash)) {
        waiter.done = [this, ready, key = other.key.hash](absl::Status status) {
          if (!status.ok()) refused_roomier_.Add(key);
          ready(absl::OkStatus());
        };
        target = std::move(other);
      }
    }
  }
  ticket = captures_.Begin(model.shared_from_this(), std::move(target), CaptureUrgency::kUrgent,
                           std::move(waiter));
  // No capture thread makes it: the stream that runs the plan does.
  if (ticket == nullptr) plan.Resolve(std::move(resolution));
  return ticket;
}

void MissPolicy::CaptureAhead(const Model& model, const AxisSizes& sizes, CompileReason reason,
                              CaptureUrgency urgency, std::function<void(absl::Status)> done,
                              std::shared_ptr<const BucketPolicy> buckets) {
  const auto tokens = sizes.find(kTokensAxis);
  if (model.packing() != nullptr && tokens != sizes.end()) {
    const std::optional<PackedSizes> fitted = model.packing()->Fit({.tokens = tokens->second});
    if (!fitted.has_value()) {
      return done(absl::InvalidArgumentError(
          absl::StrCat("no bucket of model '", model.id().name, "' has these sizes")));
    }
    const BatchTarget target = {.sizes = {fitted->tokens, fitted->segments}, .packed = true};
    return CaptureAhead(model,
                        {.key = model.KeyAt(target, {}, nullptr),
                         .bucket = PackedLabel(fitted->tokens),
                         .bucketed = true,
                         .reason = reason},
                        urgency, std::move(done));
  }
  RequestShape shape;
  for (const ModelAxis& axis : model.axes()) {
    const auto it = sizes.find(axis.label);
    if (it == sizes.end()) {
      return done(absl::InvalidArgumentError(
          absl::StrCat("no size for axis '", axis.label, "' of model '", model.id().name, "'")));
    }
    shape.sizes.push_back(it->second);
    if (axis.is_batch) shape.rows = it->second;
  }
  BatchPlan plan(model, buckets == nullptr ? model.buckets() : std::move(buckets));
  if (!plan.TryAdd(shape)) {
    return done(absl::InvalidArgumentError(
        absl::StrCat("no bucket of model '", model.id().name, "' has these sizes")));
  }
  CaptureTarget target = plan.CaptureTargetOf(plan.target());
  target.reason = reason;
  CaptureAhead(model, std::move(target), urgency, std::move(done));
}

void MissPolicy::CaptureAhead(const Model& model, CaptureTarget target, CaptureUrgency urgency,
                              std::function<void(absl::Status)> done) {
  // A model that runs op by op has nothing to capture, nor has a front without nodes.
  if (model.options().capture == CapturePolicy::kOff || model.has_empty_front()) {
    return done(absl::OkStatus());
  }
  if (cache_.Contains(target.key)) return done(absl::OkStatus());
  const auto ticket =
      captures_.Begin(model.shared_from_this(), std::move(target), urgency, {.done = done});
  if (ticket == nullptr) done(absl::UnavailableError("no capture thread takes it"));
}

void MissPolicy::NoteLosses(const BatchPlan& plan, const BatchTarget& used, bool eager,
                            int64_t replay_ns) {
  const Model& model = plan.model();
  if (model.IsFrozen(options_) || options_.captures == nullptr) return;
  if (model.options().capture == CapturePolicy::kOff || model.has_empty_front()) return;
  if (plan.shapes()[0].on_miss != OnMiss::kDefault || plan.shapes()[0].needs_variant()) return;
  const auto note = [&](const BatchTarget& wanted, double lost_ns) {
    CaptureTarget target = plan.CaptureTargetOf(wanted);
    if (!missed_costs_.Note(target.key, static_cast<int64_t>(lost_ns), model.owner()->capture_ns(),
                            wanted.exact || model.has_many_buckets() ? kMinTimesOfMany : 1)) {
      return;
    }
    const RecipeKey key = target.key;
    const auto done = [this, key](absl::Status) { missed_costs_.Forget(key); };
    if (captures_.Begin(model.shared_from_this(), std::move(target), CaptureUrgency::kBehind,
                        {.done = done}) == nullptr) {
      missed_costs_.Forget(key);
    }
  };
  const bool too_many = plan.target().exact && model.options().capture == CapturePolicy::kQuick &&
                        cache_.NumExact(*model.owner()) >= model.owner()->max_exact();
  if (eager && too_many) return;  // IsOneTooMany decides whether it gets a recipe.
  // An eager run compiles as a capture does. Its result is not timed, nor there after a restart.
  if (eager) return note(plan.target(), static_cast<double>(model.owner()->capture_ns()));
  const auto total_ns = static_cast<double>(replay_ns);
  if (used.sizes != plan.target().sizes && used.tokens > plan.target().tokens) {
    note(plan.target(), total_ns * (1 - static_cast<double>(plan.target().tokens) / used.tokens));
  }
  if (const auto wished = plan.wished()) {
    note(wished->target, total_ns * kLossPerRequestLeftOut * (wished->rows - plan.rows()));
  }
}

}  // namespace reprise
