#include "runtime/engine/load/axis_names.h"

#include <map>
#include <set>
#include <string>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/status_macros.h"

namespace reprise {
namespace {

// Returns the label of the axis that goes by `name`; `what`: what is configured for it.
absl::StatusOr<std::string> LabelOf(const ModelDraft& model, const std::string& name,
                                    absl::string_view what) {
  const auto& axes = model.proof->axes;
  for (const bool by_label : {true, false}) {
    // These two words have a meaning of their own, also where the file gives them to another axis.
    if (!by_label && (name == "batch" || name == "sequence")) break;
    const auto axis = absl::c_find_if(
        axes, [&](const ModelAxis& one) { return (by_label ? one.label : one.symbol) == name; });
    if (axis != axes.end()) return axis->label;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      what, " configured for axis '", name, "', which the model does not have (it has: ",
      absl::StrJoin(
          axes, ", ",
          [](std::string* out, const ModelAxis& axis) { absl::StrAppend(out, axis.label); }),
      ")"));
}

template <typename Value>
absl::Status NameKeys(const ModelDraft& model, absl::string_view what,
                      std::map<std::string, Value>& options) {
  std::map<std::string, Value> labelled;
  for (auto& [name, value] : options) {
    ASSIGN_OR_RETURN(const std::string label, LabelOf(model, name, what));
    if (!labelled.emplace(label, std::move(value)).second) {
      return absl::InvalidArgumentError(absl::StrCat(what, " configured twice for axis '", label,
                                                     "', once under its name in the file"));
    }
  }
  options = std::move(labelled);
  return absl::OkStatus();
}

}  // namespace

absl::Status NameAxes(ModelDraft& model) {
  ModelOptions& options = model.options;
  RETURN_IF_ERROR(NameKeys(model, "buckets are", options.buckets));
  RETURN_IF_ERROR(NameKeys(model, "buckets are", options.learnt_buckets));
  RETURN_IF_ERROR(NameKeys(model, "a range is", options.ranges));
  std::set<std::string> no_padding;
  for (const std::string& name : options.no_padding) {
    absl::StatusOr<std::string> label = LabelOf(model, name, "padding is");
    // A server forbids to share replays before it knows whether there is a batch axis.
    no_padding.insert(label.ok() ? *std::move(label) : name);
  }
  options.no_padding = std::move(no_padding);
  for (const auto& [label, range] : options.ranges) {
    const auto buckets = options.buckets.find(label);
    if (buckets == options.buckets.end() || label == "batch") continue;
    for (const int64_t size : buckets->second) {
      if (range.Allows(size)) continue;
      return absl::InvalidArgumentError(absl::StrCat("bucket ", size, " is configured for axis '",
                                                     label, "', whose range (reprise.range.", label,
                                                     ") is ", range.Text()));
    }
  }
  return absl::OkStatus();
}

}  // namespace reprise
