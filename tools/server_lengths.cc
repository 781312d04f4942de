#include "tools/server_lengths.h"

#include <map>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "runtime/base/status_macros.h"

namespace reprise::cli {
namespace {

int PositionOf(const v1::ModelDynamicity& report, const std::string& axis) {
  for (int i = 0; i < report.axes_size(); ++i) {
    if (report.axes(i).axis() == axis) return i;
  }
  return -1;
}

// Returns the elements of a binding, "batch=8,sequence=128"; 0 where it names no size.
double ElementsOf(const std::string& binding) {
  double elements = 0;
  for (absl::string_view part : absl::StrSplit(binding, absl::ByAnyChar(", "), absl::SkipEmpty())) {
    const std::pair<absl::string_view, absl::string_view> sides = absl::StrSplit(part, '=');
    double size = 0;
    if (!absl::SimpleAtod(sides.second, &size) || size <= 0) continue;
    elements = elements == 0 ? size : elements * size;
  }
  return elements;
}

ReplayCost CostOf(const v1::BucketLearning& learnt) {
  std::vector<ReplayCost::Sample> samples;
  for (const v1::ReplayTimes& one : learnt.replay_times()) {
    samples.push_back({one.row_size(), one.replays(), one.rows(), one.rows_squared(), one.ns(),
                       one.rows_times_ns()});
  }
  ReplayCost cost;
  cost.Restore(samples);
  return cost;
}

}  // namespace

absl::StatusOr<ServerLengths> LengthsAlong(const v1::ModelDynamicity& report,
                                           const v1::ListRecipesResponse& recipes,
                                           const v1::BucketLearning& learnt,
                                           const std::string& axis) {
  const int position = PositionOf(report, axis);
  if (position < 0) {
    const std::string axes = absl::StrJoin(
        report.axes(), ", ",
        [](std::string* out, const v1::AxisDynamicity& one) { absl::StrAppend(out, one.axis()); });
    return absl::NotFoundError(absl::StrCat("model '", report.model(), "' has no axis '", axis,
                                            "'; it has: ", axes.empty() ? "none" : axes));
  }
  if (report.shapes().empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("no request came to model '", report.model(), "' yet"));
  }
  const int batch = axis == "batch" ? -1 : PositionOf(report, "batch");
  std::map<int64_t, double> rows;
  for (const v1::RequestShape& shape : report.shapes()) {
    if (shape.sizes(position) < 1) continue;
    const auto requests = static_cast<double>(shape.requests());
    rows[shape.sizes(position)] +=
        requests * (batch < 0 ? 1 : static_cast<double>(shape.sizes(batch)));
  }
  ServerLengths result = {.model = report.model(), .version = report.version()};
  for (const auto& [size, weight] : rows) result.lengths.push_back({size, weight});
  double bytes = 0, elements = 0, ms = 0;
  for (const v1::RecipeInfo& recipe : recipes.recipes()) {
    bytes += static_cast<double>(recipe.arena_bytes());
    elements += ElementsOf(recipe.binding());
    ms += recipe.capture_ms();
  }
  if (elements > 0) result.bytes_per_element = bytes / elements;
  if (!recipes.recipes().empty()) result.capture_ms = ms / recipes.recipes_size();
  // Costs are known for one axis besides the batch: with more a size does not tell the cost of a
  // row.
  if (learnt.in_force_size() == 1 && learnt.in_force(0).axis() == axis) {
    result.cost = CostOf(learnt);
  }
  return result;
}

absl::StatusOr<ServerLengths> FindServerLengths(client::Client& client, const std::string& model,
                                                const std::string& version,
                                                const std::string& axis) {
  v1::GetDynamicityRequest request;
  request.set_model(model);
  request.set_version(version);
  request.set_most_shapes(model.empty() ? 1 : 0);
  ASSIGN_OR_RETURN(v1::GetDynamicityResponse response, client.GetDynamicity(request));
  if (model.empty()) {
    std::vector<std::string> names;
    for (const v1::ModelDynamicity& one : response.models()) {
      if (one.requests() > 0) names.push_back(one.model());
    }
    if (names.empty()) return absl::FailedPreconditionError("no request came to any model yet");
    if (names.size() > 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("several models had requests, name one with "
                       "--model: ",
                       absl::StrJoin(names, ", ")));
    }
    return FindServerLengths(client, names[0], version, axis);
  }
  ASSIGN_OR_RETURN(const v1::ListRecipesResponse recipes,
                   client.ListRecipes(model, response.models(0).version()));
  ASSIGN_OR_RETURN(const v1::ExplainModelResponse explained,
                   client.ExplainModel(model, response.models(0).version()));
  return LengthsAlong(response.models(0), recipes, explained.buckets(), axis);
}

}  // namespace reprise::cli
