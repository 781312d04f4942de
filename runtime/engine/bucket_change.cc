#include "runtime/engine/bucket_change.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/format_text.h"

namespace reprise {
namespace {

// Returns "sequence 16,40,70,512".
std::string BoundariesText(const BucketLearner& learner, const BoundarySets& sets) {
  std::vector<std::string> axes;
  for (size_t i = 0; i < sets.size(); ++i) {
    axes.push_back(absl::StrCat(learner.axes()[i], " ", absl::StrJoin(sets[i], ",")));
  }
  return absl::StrJoin(axes, "; ");
}

}  // namespace

void BucketChange::Look(Engine& engine, std::shared_ptr<const Model> model) {
  BucketLearner& learner = model->learner();
  std::optional<BucketLearner::Found> found = learner.Look(engine.options().clock->NowNs());
  model->ReportBuckets();
  if (!found.has_value()) return learner.EndLook();
  if (!found->apply || model->IsFrozen(engine.options())) {
    if (found->news) {
      model->Note(FormatText(
          "other buckets would save %.1f%% of the computing time: %s (reprise.bucket_policy "
          "suggest: nothing changes)",
          100 * found->advice.saving, BoundariesText(learner, found->advice.boundaries)));
    }
    return learner.EndLook();
  }
  const std::shared_ptr<BucketChange> change(
      new BucketChange(engine, std::move(model), *std::move(found)));
  change->wanted_ = change->Wanted();
  change->Next();
}

BucketChange::BucketChange(Engine& engine, std::shared_ptr<const Model> model,
                           BucketLearner::Found found)
    : engine_(engine),
      model_(std::move(model)),
      found_(std::move(found)),
      policy_(std::make_shared<const BucketPolicy>(found_.policy)) {}

std::deque<AxisSizes> BucketChange::Wanted() const {
  const std::vector<std::string>& labels = model_->learner().axes();
  std::deque<AxisSizes> wanted;
  std::set<AxisSizes> known;
  const auto add = [&](AxisSizes sizes) {
    // Sizes of axes that are never padded are not known before they come.
    for (const ModelAxis& axis : model_->axes()) {
      if (sizes.count(axis.label) == 0) return;
    }
    if (known.insert(sizes).second) wanted.push_back(std::move(sizes));
  };
  for (const WantedRecipe& recipe : found_.advice.captures) {
    AxisSizes sizes;
    for (size_t i = 0; i < labels.size(); ++i) sizes[labels[i]] = recipe.sizes[i];
    if (model_->batch_axis() < 0) {
      add(std::move(sizes));
      continue;
    }
    const std::string& batch = model_->axes()[model_->batch_axis()].label;
    const bool any_rows = recipe.batch == WantedRecipe::kMostRows;
    if (!model_->batches_requests()) {
      if (any_rows) continue;  // none serves other rows than its own
      sizes[batch] = recipe.batch;
      add(std::move(sizes));
      continue;
    }
    const int64_t most = std::min(policy_->LargestBatch(sizes), model_->max_batch());
    for (const int64_t rows : {any_rows ? most : std::min(recipe.batch, most), most}) {
      AxisSizes whole = sizes;
      whole[batch] = policy_->Fit(batch, rows).value_or(rows);
      add(std::move(whole));
    }
  }
  return wanted;
}

void BucketChange::Next() {
  if (wanted_.empty()) return Finish();
  const AxisSizes sizes = std::move(wanted_.front());
  wanted_.pop_front();
  // No request waits for it, but a nice thread next to saturated ones would take a thousand
  // requests over a set: one capture at a time at the process's own priority is over in some tenths
  // of a second.
  engine_.CaptureAhead(
      *model_, sizes, CompileReason::kBucketChange, CaptureUrgency::kUrgent,
      [self = shared_from_this(), sizes](const absl::Status& status) {
        if (!status.ok()) return self->GiveUp(sizes, status);
        ++self->captured_;
        self->Next();
      },
      policy_);
}

void BucketChange::GiveUp(const AxisSizes& sizes, const absl::Status& why) {
  // Unavailable: the server is stopping.
  if (!absl::IsUnavailable(why))
    model_->Note(absl::StrCat("buckets stay as they are: ", BucketLabel(sizes, policy_->batch_axis),
                              " could not be captured: ", std::string(why.message())));
  model_->learner().EndLook(/*failed=*/true);
}

void BucketChange::Finish() {
  BucketLearner& learner = model_->learner();
  learner.Adopt(found_);
  if (model_->slices() != nullptr) model_->slices()->Forget();
  engine_.RetireRecipes(*model_);
  std::string text = FormatText("buckets in force: %s; %d recipes ready",
                                BoundariesText(learner, found_.advice.boundaries), captured_);
  // Buckets for sizes that none held before are not there to save time.
  if (found_.advice.saving > 0) {
    AppendText(&text,
               ", expected to save %.1f%% of the computing time and to pay for the "
               "captures in %.0f s",
               100 * found_.advice.saving, found_.advice.payback_s);
  }
  model_->Note(text);
  model_->ReportBuckets();
  learner.EndLook();
}

}  // namespace reprise
