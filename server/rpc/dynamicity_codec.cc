#include "server/rpc/dynamicity_codec.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/format_text.h"
#include "runtime/bucket/dynamicity.h"
#include "runtime/bucket/dynamicity_message.h"
#include "runtime/engine/model/tail.h"
#include "server/requests/shape_columns.h"

namespace reprise {
namespace {

// Shares of requests below this are not worth an advice.
constexpr double kWorthAdvice = 0.01;
// Fewer requests than this say little.
constexpr int64_t kFewRequests = 100;

// Share of the recent requests whose size along column `column` is above `largest`.
double ShareAbove(const ShapeTable& table, size_t column, int64_t largest) {
  int64_t above = 0, all = 0;
  for (const ShapeRow& row : table.rows) {
    all += row.recent;
    if (row.sizes[column] > largest) above += row.recent;
  }
  return all > 0 ? static_cast<double>(above) / static_cast<double>(all) : 0;
}

std::string BucketsKey(const std::string& axis) {
  return axis == "sequence" || axis == "batch" ? absl::StrCat("reprise.", axis, "_buckets")
                                               : absl::StrCat("reprise.buckets.", axis);
}

// About one axis along which sizes vary.
void AdviseAxis(const Model& model, size_t i, const ShapeTable& table, const Dynamicity& judged,
                std::vector<std::string>& advice) {
  const ModelAxis& axis = model.axes()[i];
  const AxisCertificate certificate = model.CertificateOf(i);
  if (!certificate.certified) {
    if (model.packing() != nullptr) return;
    if (judged.axes[i].distinct <= 1) return;
    advice.push_back(
        FormatText("axis %s may not be padded (%s): each of its sizes is a recipe of its own. "
                   "Send a mask that "
                   "the model reads, or pad to few sizes in the client",
                   axis.label, certificate.reason));
    return;
  }
  const auto largest = model.buckets()->Largest(axis.label);
  if (axis.is_batch || !largest.has_value() || model.packing() != nullptr) return;
  // It grows by itself.
  const bool follows = model.options().bucket_mode == BucketMode::kApply &&
                       !model.options().buckets.contains(axis.label);
  if (follows) return;
  const double above = ShareAbove(table, i, *largest);
  if (above > 0) {
    advice.push_back(FormatText(
        "%.1f%% of the requests are longer than the largest bucket of axis %s, %d, and run exact: "
        "let %s end with %d",
        100 * above, axis.label, *largest, BucketsKey(axis.label), judged.axes[i].most));
  }
}

// Returns the remedies against requests that find no recipe: those that the model can have and has
// not.
std::string AdviceForOutside(const Servable& servable, double outside_share, bool keeps_recipes) {
  const Model& model = *servable.model;
  const std::string& name = model.id().name;
  std::vector<std::string> remedies;
  const WarmupSettings& warmup = servable.settings.warmup;
  const bool bucketed =
      model.packing() != nullptr || model.certified().size() == model.axes().size();
  if (model.has_shape_inputs()) {
    // No warm-up knows the values that come.
  } else if (!bucketed) {
    if (warmup.sizes.empty()) {
      remedies.push_back(
          absl::StrCat("name the sizes that come in reprise.warmup, or `reprise "
                       "warmup ",
                       name, " --all` for those that came"));
    }
  } else if (!warmup.all && !model.has_many_buckets()) {
    remedies.push_back(
        absl::StrCat("warm up the buckets (reprise.warmup, or `reprise warmup ", name, " --all`)"));
  }
  if (!keeps_recipes) remedies.push_back("keep recipes over restarts with --recipe-cache");
  remedies.push_back(absl::StrCat("`reprise explain ", name, "` lists the captures"));
  return FormatText("%.1f%% of the requests found no ready recipe that could serve them: %s",
                    100 * outside_share, absl::StrJoin(remedies, "; "));
}

std::vector<std::string> Advice(const Servable& servable, bool keeps_recipes,
                                const ShapeTable& table, const Dynamicity& judged) {
  const Model& model = *servable.model;
  std::vector<std::string> advice;
  if (table.all.requests == 0) return {"no request came yet"};
  if (table.recent.requests < kFewRequests) {
    advice.push_back(absl::StrCat("only ", table.recent.requests,
                                  " requests came so far: the verdict may change"));
  }
  for (size_t i = 0; i < model.axes().size(); ++i) AdviseAxis(model, i, table, judged, advice);
  if (model.has_shape_inputs()) {
    advice.push_back(
        "the value of an input decides shapes: every value is a recipe of its own, of which "
        "reprise.max_exact are kept; send few different values");
  }
  if (model.tail() != nullptr) {
    for (const Cut& cut : model.tail()->cuts()) {
      advice.push_back(absl::StrCat(cut.op, " '", cut.node, "': ", cut.why,
                                    "; the nodes after it run at the sizes that it finds"));
    }
  }
  if (judged.outside_share > kWorthAdvice) {
    advice.push_back(AdviceForOutside(servable, judged.outside_share, keeps_recipes));
  }
  if (judged.verdict != DynamicityVerdict::kLittle && model.packing() == nullptr &&
      !model.learner().axes().empty()) {
    const BucketReport report = model.learner().Report();
    if (report.mode == BucketMode::kOff) {
      advice.push_back(absl::StrCat(
          "the buckets are fixed: `reprise plan --from SERVER ", model.id().name,
          "` judges them against these shapes; without them in config.pbtxt they follow the "
          "traffic"));
    } else if (report.mode == BucketMode::kSuggest && report.suggestion.has_value()) {
      advice.push_back(FormatText(
          "other buckets would save %.1f%% of the computing time: set reprise.bucket_policy to "
          "apply",
          100 * report.suggestion->saving));
    } else if (report.mode == BucketMode::kApply) {
      const bool settled = report.actual_waste <= report.state.best_waste + kWorthAdvice;
      advice.push_back(
          FormatText("the buckets follow the traffic, and padding is %.1f%% of the computed "
                     "elements (%.1f%% at best): %s",
                     100 * report.actual_waste, 100 * report.state.best_waste,
                     settled ? "nothing is to be done about lengths"
                             : "better boundaries are looked for as more requests come"));
    }
  }
  if (judged.verdict != DynamicityVerdict::kLittle && model.packing() != nullptr) {
    advice.push_back(
        "requests lie end to end in a replay, and no padding is computed: nothing is to be done "
        "about lengths");
  }
  if (judged.verdict == DynamicityVerdict::kALot && model.packing() == nullptr &&
      model.options().packing == PackingMode::kOff && model.batches_requests()) {
    advice.push_back(
        "with reprise.packing: auto requests of different lengths lie end to end in a replay, and "
        "no padding is computed, where the model can be packed");
  }
  if (advice.empty()) {
    advice.push_back(model.axes().empty() ? "the model has one shape: nothing needs to be done"
                                          : "nothing: the recipes that are ready serve it");
  }
  return advice;
}

}  // namespace

void EncodeDynamicity(const Servable& servable, uint32_t most_shapes, bool keeps_recipes,
                      v1::ModelDynamicity& message) {
  const Model& model = *servable.model;
  const ShapeTable table = servable.shapes->Snapshot();
  const Dynamicity judged = JudgeShapes(table, /*recent=*/true);
  const std::vector<std::string> columns = ShapeColumns(model);
  message.set_model(model.id().name);
  message.set_version(absl::StrCat(model.id().version));
  const auto inputs_of = [&](const ShapeRow& row) {
    std::vector<std::string> inputs;
    for (const ModelIo& input : model.inputs()) {
      if (!input.optional) inputs.push_back(InputShapeText(model, input, row.sizes));
    }
    return inputs;
  };
  FillDynamicity(table, judged, /*recent=*/true, columns, most_shapes, inputs_of, message);
  for (size_t i = 0; i < model.axes().size(); ++i) {
    message.mutable_axes(static_cast<int>(i))->set_certified(model.CertificateOf(i).certified);
  }
  for (const ModelIo& input : model.inputs()) {
    if (!input.optional) message.add_inputs(input.name);
  }
  for (std::string& sentence : Advice(servable, keeps_recipes, table, judged)) {
    message.add_advice(std::move(sentence));
  }
}

}  // namespace reprise
