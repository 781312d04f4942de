#include "runtime/engine/load/stored_model.h"

#include <algorithm>
#include <ctime>

#include "absl/strings/str_cat.h"
#include "proto/recipe.pb.h"
#include "runtime/base/hash64.h"
#include "runtime/base/status_macros.h"
#include "runtime/recipe/key.h"

namespace reprise {
namespace {

constexpr int kMaxDims = 64;
// Far beyond any size, but small enough that a product with a size does not overflow.
constexpr int64_t kMaxFactor = int64_t{1} << 31;

bool IsTooFar(int64_t factor) { return factor > kMaxFactor || factor < -kMaxFactor; }

absl::Status Damaged(absl::string_view what) {
  return absl::DataLossError(absl::StrCat("it says of a model ", what));
}

bool Contains(const std::vector<std::string>& list, const std::string& item) {
  return std::find(list.begin(), list.end(), item) != list.end();
}

absl::StatusOr<AxisCertificate> AxisOf(const recipe::v1::StoredAxis& stored,
                                       const std::vector<std::string>& input_names) {
  AxisCertificate axis = {.axis = stored.label(),
                          .certified = stored.certified(),
                          .mixing = stored.mixing(),
                          .reason = stored.reason()};
  const auto has_input = [&](const std::string& input) {
    return Contains(input_names, input)
               ? absl::OkStatus()
               : Damaged(absl::StrCat("that it has an input '", input, "'"));
  };
  for (const std::string& input : stored.guards()) {
    RETURN_IF_ERROR(has_input(input));
    axis.guards.push_back(input);
  }
  if (axis.reason.empty()) return Damaged("nothing about an axis");
  return axis;
}

absl::StatusOr<OutputShape> OutputOf(const recipe::v1::StoredOutput& stored, DType dtype,
                                     size_t axes) {
  OutputShape shape = {.dtype = dtype};
  if (stored.dims_size() > kMaxDims) return Damaged("that an output has too many dims");
  for (const auto& dim : stored.dims()) {
    if (dim.factors_size() != static_cast<int>(axes) || IsTooFar(dim.constant())) {
      return Damaged("a size that no output has");
    }
    AffineDim& affine = shape.dims.emplace_back();
    affine.constant = dim.constant();
    affine.open = dim.open();
    for (int64_t factor : dim.factors()) {
      if (IsTooFar(factor)) return Damaged("a size that no output has");
      affine.factors.push_back(factor);
    }
    if (dim.offsets_size() != dim.strides_size() ||
        (dim.offsets_size() != 0 && dim.offsets_size() != dim.factors_size())) {
      return Damaged("a size that no output has");
    }
    for (int i = 0; i < dim.offsets_size(); ++i) {
      const Extent extent = {.offset = dim.offsets(i), .stride = dim.strides(i)};
      if (extent.stride < 1 || extent.stride > kMaxFactor || IsTooFar(extent.offset)) {
        return Damaged("a size that no output has");
      }
      affine.extents.push_back(extent);
    }
    if (dim.products_size() % 3 != 0) return Damaged("a size that no output has");
    for (int i = 0; i < dim.products_size(); i += 3) {
      const int64_t first = dim.products(i), second = dim.products(i + 1);
      const int64_t factor = dim.products(i + 2), most = static_cast<int64_t>(axes);
      const bool sound = first >= 0 && first < most && second >= 0 && second < most &&
                         first != second && !IsTooFar(factor);
      if (!sound) return Damaged("a size that no output has");
      affine.products.push_back({static_cast<size_t>(first), static_cast<size_t>(second), factor});
    }
  }
  return shape;
}

}  // namespace

RecordName StoredModelKey::NameOf(const ModelId& id) const {
  const uint64_t graph_hash = Hash64(graph);
  const uint64_t subject = Hash64(settings, Hash64(parameters));
  const uint64_t device_hash = Hash64(device);
  return {.kind = RecordKind::kModel,
          .key = Hash64(
              absl::StrCat(graph, "\n", parameters, "\n", settings, "\n", device, "\n", compiler)),
          .graph = graph_hash,
          .subject = subject,
          .device = device_hash,
          .origin = Hash64(id.name),
          .compiler = Hash64(compiler)};
}

void StoredModelKey::Put(recipe::v1::ModelKey& stored) const {
  stored.set_graph(graph);
  stored.set_parameters(parameters);
  stored.set_settings(settings);
  stored.set_device(device);
  stored.set_compiler(compiler);
}

absl::Status StoredModelKey::Check(const recipe::v1::ModelKey& stored) const {
  const bool same = stored.graph() == graph && stored.parameters() == parameters &&
                    stored.settings() == settings && stored.device() == device &&
                    stored.compiler() == compiler;
  return same ? absl::OkStatus() : absl::FailedPreconditionError("its key is another one");
}

std::string EncodeFindings(const StoredModelKey& key, const ModelId& id,
                           const ModelFindings& findings, int64_t measure_ns) {
  recipe::v1::StoredModel stored;
  key.Put(*stored.mutable_key());
  stored.set_model(id.name);
  stored.set_version(id.version);
  stored.set_created_unix_s(time(nullptr));
  stored.set_measure_ns(measure_ns);
  for (size_t i = 0; i < findings.axes.size(); ++i) {
    const AxisCertificate& axis = findings.axes[i];
    auto* to = stored.add_axes();
    to->set_smallest(findings.smallest[i]);
    to->set_label(axis.axis);
    to->set_certified(axis.certified);
    to->set_decides(findings.decisions[i].words);
    to->set_alike_up_to(findings.decisions[i].alike_up_to);
    to->set_opens_to(findings.opens_to[i]);
    for (const std::string& guard : axis.guards) to->add_guards(guard);
    to->set_mixing(axis.mixing);
    to->set_reason(axis.reason);
  }
  stored.set_fitted(!findings.outputs.empty());
  for (size_t i = 0; i < findings.output_dtypes.size(); ++i) {
    auto* to = stored.add_outputs();
    if (findings.output_dtypes[i] != DType::kUndefined) {
      to->set_dtype(std::string(DTypeName(findings.output_dtypes[i])));
    }
    if (findings.outputs.empty()) continue;
    for (const AffineDim& dim : findings.outputs[i].dims) {
      auto* to_dim = to->add_dims();
      to_dim->set_constant(dim.constant);
      to_dim->set_open(dim.open);
      for (int64_t factor : dim.factors) to_dim->add_factors(factor);
      for (const Extent& extent : dim.extents) {
        to_dim->add_offsets(extent.offset);
        to_dim->add_strides(extent.stride);
      }
      for (const auto& [first, second, factor] : dim.products) {
        to_dim->add_products(static_cast<int64_t>(first));
        to_dim->add_products(static_cast<int64_t>(second));
        to_dim->add_products(factor);
      }
    }
  }
  stored.set_packing_refusal(findings.packing_refusal);
  return stored.SerializeAsString();
}

absl::StatusOr<ModelFindings> DecodeFindings(absl::string_view bytes, const StoredModelKey& key,
                                             const std::vector<std::string>& axis_labels,
                                             const std::vector<std::string>& input_names,
                                             size_t outputs) {
  recipe::v1::StoredModel stored;
  if (!stored.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return absl::DataLossError("it is not a valid message");
  }
  RETURN_IF_ERROR(key.Check(stored.key()));
  if (stored.axes_size() != static_cast<int>(axis_labels.size())) {
    return Damaged(absl::StrCat("that it has ", stored.axes_size(), " axes"));
  }
  if (stored.outputs_size() != static_cast<int>(outputs)) {
    return Damaged(absl::StrCat("that it has ", stored.outputs_size(), " outputs"));
  }
  ModelFindings findings = {.packing_refusal = stored.packing_refusal()};
  bool certified = false;
  for (int i = 0; i < stored.axes_size(); ++i) {
    ASSIGN_OR_RETURN(AxisCertificate axis, AxisOf(stored.axes(i), input_names));
    if (axis.axis != axis_labels[i]) {
      return Damaged(absl::StrCat("that it has an axis '", axis.axis, "'"));
    }
    certified = certified || axis.certified;
    findings.axes.push_back(std::move(axis));
    findings.smallest.push_back(stored.axes(i).smallest());
    if (findings.smallest.back() < 1) {
      return Damaged(absl::StrCat("that it takes sizes from ", findings.smallest.back(), " on"));
    }
    findings.decisions.push_back({stored.axes(i).decides(), stored.axes(i).alike_up_to()});
    findings.opens_to.push_back(stored.axes(i).opens_to());
    if (findings.opens_to.back() < 0 || findings.opens_to.back() > kLargestSize) {
      return Damaged(absl::StrCat("that buckets open to ", findings.opens_to.back()));
    }
  }
  for (const auto& output : stored.outputs()) {
    const std::optional<DType> dtype =
        output.dtype().empty() ? DType::kUndefined : ParseDType(output.dtype());
    if (!dtype.has_value()) return Damaged("that an output has an unknown dtype");
    findings.output_dtypes.push_back(*dtype);
  }
  if (!stored.fitted()) {
    // Where every node is cut off, there are no outputs to fit.
    if (certified && outputs > 0) {
      return Damaged("that it may be padded, but not the sizes of its outputs");
    }
    return findings;
  }
  for (int i = 0; i < stored.outputs_size(); ++i) {
    ASSIGN_OR_RETURN(OutputShape shape,
                     OutputOf(stored.outputs(i), findings.output_dtypes[i], axis_labels.size()));
    findings.outputs.push_back(std::move(shape));
  }
  return findings;
}

}  // namespace reprise
