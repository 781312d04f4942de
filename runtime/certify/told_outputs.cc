#include "runtime/certify/told_outputs.h"

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "runtime/certify/numbers.h"
#include "runtime/certify/probe_run.h"

namespace reprise {

void ToldOutputs::Note(absl::Span<const Tensor> outputs, double tolerance) {
  outputs_.resize(outputs.size());
  for (size_t o = 0; o < outputs.size(); ++o) {
    const Tensor& output = outputs[o];
    Output& known = outputs_[o];
    if (known.told || !HasFinite(output)) continue;
    const auto first = absl::c_find_if(
        known.firsts, [&](const Tensor& one) { return one.shape() == output.shape(); });
    if (first == known.firsts.end()) {
      known.firsts.push_back(output);
      continue;
    }
    const Shape origin(output.shape().size(), 0);
    known.told = Differ(*first, output, origin, tolerance).has_value();
  }
}

std::optional<std::string> ToldOutputs::FirstUntold(absl::Span<const std::string> names,
                                                    const ProbeOptions& options) const {
  for (size_t o = 0; o < outputs_.size(); ++o) {
    const Output& output = outputs_[o];
    if (output.told || options.fixed_outputs.contains(names[o]) ||
        options.watched.contains(names[o])) {
      continue;
    }
    const bool number = !output.firsts.empty();
    // A label may well be one and the same for random inputs.
    if (number && !IsFloating(output.firsts.front().dtype())) continue;
    return absl::StrCat(OutputWords(options, names[o]), " is ",
                        number ? "the same whatever the inputs hold" : "no number in any run",
                        ", so nothing could be compared");
  }
  return std::nullopt;
}

}  // namespace reprise
