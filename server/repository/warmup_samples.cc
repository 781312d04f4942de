#include "server/repository/warmup_samples.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/status_macros.h"

namespace reprise {
namespace {

using Sample = inference::ModelWarmup;

absl::Status Misfit(const Sample& sample, const std::string& input, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("config.pbtxt: model_warmup \"", sample.name(),
                                                 "\": input \"", input, "\" ", why));
}

// Takes the sizes of one input's axes.
absl::Status TakeInput(const Sample& sample, const std::string& name, const Sample::Input& input,
                       const Model& model, const Signature& signature, AxisSizes& sizes) {
  const auto io = std::find_if(signature.inputs.begin(), signature.inputs.end(),
                               [&](const ModelIo& one) { return one.name == name; });
  if (io == signature.inputs.end()) return Misfit(sample, name, "is none of the model's");
  std::vector<int64_t> dims(input.dims().begin(), input.dims().end());
  // Triton leaves the batch out of them.
  if (signature.config.max_batch_size() > 0) {
    dims.insert(dims.begin(), std::max<int64_t>(1, sample.batch_size()));
  }
  if (dims.size() != io->dims.size()) {
    return Misfit(sample, name,
                  absl::StrCat("has dims [", absl::StrJoin(input.dims(), ", "),
                               "], the model expects rank ", io->dims.size()));
  }
  for (size_t i = 0; i < dims.size(); ++i) {
    const Dim& dim = io->dims[i];
    if (dims[i] < 1 || (dim.is_constant() && dim.size != dims[i])) {
      return Misfit(sample, name,
                    absl::StrCat("has ", dims[i], " as dim ", i, ", the model expects ",
                                 dim.is_constant() ? absl::StrCat(dim.size) : "at least 1"));
    }
    for (const ModelAxis& axis : model.axes()) {
      if (axis.symbol == dim.symbol) sizes[axis.label] = dims[i];
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<WarmupSettings> WarmupOfSamples(const ModelSettings& settings, const Model& model,
                                               const Signature& signature) {
  WarmupSettings warmup = settings.warmup;
  for (const Sample& sample : settings.config.model_warmup()) {
    AxisSizes sizes;
    const std::map<std::string, Sample::Input> inputs(sample.inputs().begin(),
                                                      sample.inputs().end());
    for (const auto& [name, input] : inputs) {
      RETURN_IF_ERROR(TakeInput(sample, name, input, model, signature, sizes));
    }
    if (!sizes.empty()) warmup.sizes.push_back(std::move(sizes));
    warmup.ready_when_all = true;
  }
  return warmup;
}

}  // namespace reprise
