#include "server/repository/signature.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/status_macros.h"
#include "server/wire/datatype.h"

namespace reprise {
namespace {

absl::Status Mismatch(absl::string_view what, absl::string_view config, absl::string_view model) {
  return absl::InvalidArgumentError(
      absl::StrCat("config.pbtxt: ", what, " is ", config, ", the model has ", model));
}

std::string Names(const std::vector<ModelIo>& ios) {
  return absl::StrJoin(ios, ", ",
                       [](std::string* out, const ModelIo& io) { absl::StrAppend(out, io.name); });
}

std::string TypeName(inference::DataType type) { return inference::DataType_Name(type); }

// Returns the dim that config.pbtxt leaves out where max_batch_size is above 0.
size_t FirstConfigDim(const ModelIo& io, bool batched) {
  return batched && !io.dims.empty() && !io.dims[0].is_constant() ? 1 : 0;
}

std::vector<int64_t> ConfigDims(const ModelIo& io, bool batched) {
  std::vector<int64_t> dims = MetadataShape(io);
  dims.erase(dims.begin(), dims.begin() + FirstConfigDim(io, batched));
  return dims;
}

std::string DimsText(absl::Span<const int64_t> dims) {
  return absl::StrCat("[", absl::StrJoin(dims, ", "), "]");
}

// Checks one input or output of the config and fixes the dims that it fixes. `Declared` is
// inference::ModelInput or ModelOutput.
template <typename Declared>
absl::Status ApplyDeclared(const Declared& declared, const char* kind, bool batched,
                           std::vector<ModelIo>& ios) {
  auto io = std::find_if(ios.begin(), ios.end(),
                         [&](const ModelIo& each) { return each.name == declared.name(); });
  const std::string what = absl::StrCat(kind, " \"", declared.name(), "\"");
  if (io == ios.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("config.pbtxt: the model has no ", what, "; it has ", Names(ios)));
  }
  const inference::DataType type = ConfigType(*io);
  if (declared.data_type() != inference::TYPE_INVALID && declared.data_type() != type) {
    return Mismatch(what + ".data_type", TypeName(declared.data_type()), TypeName(type));
  }
  if (declared.dims().empty()) return absl::OkStatus();
  const std::vector<int64_t> dims(declared.dims().begin(), declared.dims().end());
  const std::vector<int64_t> model_dims = ConfigDims(*io, batched);
  const absl::Status mismatch =
      Mismatch(what + ".dims", DimsText(dims),
               absl::StrCat(DimsText(model_dims), batched ? " after the batch" : ""));
  if (dims.size() != model_dims.size()) return mismatch;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] == model_dims[i]) continue;
    if (model_dims[i] != -1 || dims[i] < 0) return mismatch;
    io->dims[FirstConfigDim(*io, batched) + i] = Dim{.size = dims[i]};
  }
  return absl::OkStatus();
}

// Checks that a config's list of inputs or outputs is whole: half of one would serve half a model.
template <typename List>
absl::Status CheckWhole(const List& declared, const char* kind, const std::vector<ModelIo>& ios,
                        const std::vector<bool>& hidden) {
  if (declared.empty()) return absl::OkStatus();
  for (size_t i = 0; i < ios.size(); ++i) {
    const ModelIo& io = ios[i];
    const auto names = std::count_if(declared.begin(), declared.end(),
                                     [&](const auto& each) { return each.name() == io.name; });
    if (names == 1 || (names == 0 && (io.optional || (!hidden.empty() && hidden[i])))) {
      continue;
    }
    return absl::InvalidArgumentError(absl::StrCat("config.pbtxt: ", kind, " \"", io.name,
                                                   names == 0 ? "\" is left out" : "\" is twice"));
  }
  return absl::OkStatus();
}

absl::Status CheckAxes(const ModelSettings& settings, const ModelFacts& facts) {
  auto check = [&facts](const std::string& axis, const char* what) {
    if (std::find(facts.axes.begin(), facts.axes.end(), axis) != facts.axes.end()) {
      return absl::OkStatus();
    }
    return absl::InvalidArgumentError(absl::StrCat(
        "config.pbtxt: ", what, " for the axis \"", axis, "\", but the model's axes are ",
        facts.axes.empty() ? "none" : absl::StrJoin(facts.axes, ", ")));
  };
  for (const auto& [axis, sizes] : settings.buckets) {
    // Made from max_batch_size, which has a check of its own.
    if (axis == "batch" && settings.config.max_batch_size() > 0) continue;
    RETURN_IF_ERROR(check(axis, "buckets"));
  }
  for (const std::string& axis : settings.padding_off) {
    if (axis == "batch" && settings.max_batch_size_given) continue;
    RETURN_IF_ERROR(check(axis, "reprise.padding"));
  }
  for (const auto& [input, value] : settings.fills) {
    if (std::none_of(facts.inputs.begin(), facts.inputs.end(),
                     [&input = input](const ModelIo& io) { return io.name == input; })) {
      return absl::InvalidArgumentError(absl::StrCat("config.pbtxt: reprise.fill for the input \"",
                                                     input, "\", but the model's inputs are ",
                                                     Names(facts.inputs)));
    }
    for (const ModelIo& io : facts.inputs) {
      if (io.name != input || !io.text) continue;
      return absl::InvalidArgumentError(absl::StrCat("config.pbtxt: reprise.fill for the input \"",
                                                     input, "\", which is text: it has no number"));
    }
  }
  return absl::OkStatus();
}

// Marks `name`, which config.pbtxt calls a part of the state.
absl::Status Hide(const char* kind, const std::string& name, const std::vector<ModelIo>& ios,
                  std::vector<bool>& hidden) {
  for (size_t i = 0; i < ios.size(); ++i) {
    if (ios[i].name != name) continue;
    if (hidden[i]) {
      return absl::InvalidArgumentError(
          absl::StrCat("config.pbtxt: sequence_batching names ", kind, " \"", name, "\" twice"));
    }
    hidden[i] = true;
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat("config.pbtxt: sequence_batching names ", kind,
                                                 " \"", name, "\", the model has ", Names(ios)));
}

absl::StatusOr<HiddenTensors> HideState(const inference::ModelConfig& config,
                                        const ModelFacts& facts) {
  HiddenTensors hidden;
  if (!config.has_sequence_batching()) return hidden;
  hidden.inputs.resize(facts.inputs.size());
  hidden.outputs.resize(facts.outputs.size());
  for (const auto& control : config.sequence_batching().control_input()) {
    RETURN_IF_ERROR(Hide("input", control.name(), facts.inputs, hidden.inputs));
  }
  for (const auto& state : config.sequence_batching().state()) {
    RETURN_IF_ERROR(Hide("input", state.input_name(), facts.inputs, hidden.inputs));
    RETURN_IF_ERROR(Hide("output", state.output_name(), facts.outputs, hidden.outputs));
  }
  // State that is listed as an output is answered as well.
  for (size_t i = 0; i < facts.outputs.size(); ++i) {
    for (const auto& output : config.output()) {
      if (output.name() == facts.outputs[i].name) hidden.outputs[i] = false;
    }
  }
  return hidden;
}

}  // namespace

std::vector<int64_t> MetadataShape(const ModelIo& io) {
  std::vector<int64_t> shape;
  for (const Dim& dim : io.dims) shape.push_back(dim.is_constant() ? dim.size : -1);
  return shape;
}

absl::StatusOr<Signature> Reconcile(const ModelSettings& settings, const std::string& name,
                                    const ModelFacts& facts) {
  RETURN_IF_ERROR(CheckAxes(settings, facts));
  Signature signature = {
      .inputs = facts.inputs, .outputs = facts.outputs, .config = settings.config};
  inference::ModelConfig& config = signature.config;
  ASSIGN_OR_RETURN(signature.hidden, HideState(config, facts));
  const bool has_batch_axis =
      std::find(facts.axes.begin(), facts.axes.end(), "batch") != facts.axes.end();
  if (config.max_batch_size() > 0 && !has_batch_axis) {
    return absl::InvalidArgumentError(absl::StrCat("config.pbtxt: max_batch_size is ",
                                                   config.max_batch_size(),
                                                   ", but the model has no batch axis"));
  }
  if (!settings.max_batch_size_given) {
    config.set_max_batch_size(static_cast<int32_t>(facts.max_batch));
  }
  // Dims in a file without the line are whole shapes.
  const bool file_batched = settings.config.max_batch_size() > 0;
  for (const auto& declared : settings.config.input()) {
    RETURN_IF_ERROR(ApplyDeclared(declared, "input", file_batched, signature.inputs));
  }
  for (const auto& declared : settings.config.output()) {
    RETURN_IF_ERROR(ApplyDeclared(declared, "output", file_batched, signature.outputs));
  }
  RETURN_IF_ERROR(
      CheckWhole(settings.config.input(), "input", facts.inputs, signature.hidden.inputs));
  RETURN_IF_ERROR(
      CheckWhole(settings.config.output(), "output", facts.outputs, signature.hidden.outputs));

  config.set_name(name);
  if (config.platform().empty()) config.set_platform("onnxruntime_onnx");
  if (config.backend().empty()) config.set_backend("reprise");
  if (config.default_model_filename().empty()) {
    config.set_default_model_filename(settings.model_filename);
  }
  if (!config.has_version_policy())
    config.mutable_version_policy()->mutable_latest()->set_num_versions(1);
  if (facts.max_batch > 0 && !config.has_sequence_batching()) config.mutable_dynamic_batching();
  const bool batched = config.max_batch_size() > 0;
  config.clear_input();
  for (size_t i = 0; i < signature.inputs.size(); ++i) {
    if (signature.hidden.input(i)) continue;
    const ModelIo& io = signature.inputs[i];
    inference::ModelInput& input = *config.add_input();
    input.set_name(io.name);
    input.set_data_type(ConfigType(io));
    input.set_optional(io.optional);
    for (const int64_t dim : ConfigDims(io, batched)) input.add_dims(dim);
  }
  config.clear_output();
  for (size_t i = 0; i < signature.outputs.size(); ++i) {
    if (signature.hidden.output(i)) continue;
    const ModelIo& io = signature.outputs[i];
    inference::ModelOutput& output = *config.add_output();
    output.set_name(io.name);
    output.set_data_type(ConfigType(io));
    for (const int64_t dim : ConfigDims(io, batched)) output.add_dims(dim);
  }
  return signature;
}

Signature WithOpenRanks(Signature signature, const std::vector<std::string>& open) {
  for (ModelIo& io : signature.inputs) {
    if (absl::c_linear_search(open, io.name)) io.dims.clear();
  }
  for (auto& input : *signature.config.mutable_input()) {
    if (absl::c_linear_search(open, input.name())) input.clear_dims();
  }
  for (ModelIo& io : signature.outputs) io.dims.clear();
  for (auto& output : *signature.config.mutable_output()) output.clear_dims();
  return signature;
}

}  // namespace reprise
