#include "tools/serve/made_up_request.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <random>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "client/cli/json_inputs.h"
#include "runtime/base/status_macros.h"
#include "runtime/shapes/dim_expression.h"
#include "server/wire/datatype.h"

namespace reprise::cli {
namespace {

// Returns the inputs that a request must have, each dim of the size `size_of(Dim)`.
template <typename SizeOf>
absl::StatusOr<inference::ModelMetadataResponse> Describe(const Model& model,
                                                          const SizeOf& size_of) {
  inference::ModelMetadataResponse metadata;
  metadata.set_name(model.id().name);
  for (const ModelIo& input : model.inputs()) {
    if (input.optional) continue;
    auto& tensor = *metadata.add_inputs();
    tensor.set_name(input.name);
    tensor.set_datatype(std::string(ProtocolName(input.dtype)));
    for (const Dim& dim : input.dims) {
      ASSIGN_OR_RETURN(const int64_t size, size_of(dim));
      tensor.add_shape(size);
    }
  }
  return metadata;
}

Request RequestOf(const Model& model, const std::vector<OwnedTensor>& tensors) {
  Request request;
  size_t next = 0;
  for (const ModelIo& input : model.inputs()) {
    InputTensor& tensor = request.inputs.emplace_back();
    if (input.optional) continue;
    const OwnedTensor& owned = tensors[next++];
    tensor.shape.assign(owned.shape.begin(), owned.shape.end());
    tensor.data = owned.bytes.data();
  }
  return request;
}

// Rows as long as may be that fill a packed replay of `tokens`.
AxisSizes Filling(const Model& model, int64_t tokens) {
  const int64_t length = std::min(tokens, model.packing()->longest());
  AxisSizes sizes;
  for (const ModelAxis& axis : model.axes()) {
    sizes[axis.label] = axis.is_batch ? tokens / length : length;
  }
  return sizes;
}

}  // namespace

absl::StatusOr<RequestSizes> SizesOf(const Model& model, const std::string& text) {
  std::vector<std::string> axes;
  for (const ModelAxis& axis : model.axes()) axes.push_back(absl::StrCat(axis.label, "=SIZE"));
  if (axes.empty()) return RequestSizes();
  // Axes without a certificate are in no bucket.
  const auto names_all = [&](const AxisSizes& sizes) {
    return sizes.size() == axes.size() &&
           std::all_of(model.axes().begin(), model.axes().end(),
                       [&](const ModelAxis& axis) { return sizes.contains(axis.label); });
  };
  if (model.packing() != nullptr) {
    if (const auto bucket = model.FindBucket(text)) {
      const int64_t tokens = bucket->at(kTokensAxis);
      return RequestSizes{.sizes = Filling(model, tokens), .packed = true, .bucket_tokens = tokens};
    }
  }
  const std::shared_ptr<const BucketPolicy> policy = model.buckets();
  AxisSizes sizes;
  if (text.empty()) {
    for (const AxisBuckets& axis : policy->axes) sizes[axis.axis] = axis.sizes.front();
  } else if (const auto bucket = policy->FindBucket(text)) {
    sizes = *bucket;
  }
  if (names_all(sizes)) return RequestSizes{.sizes = sizes};
  sizes.clear();
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    const std::pair<std::string, std::string> pair = absl::StrSplit(part, absl::MaxSplits('=', 1));
    int64_t size = 0;
    if (absl::SimpleAtoi(pair.second, &size) && size > 0) sizes[pair.first] = size;
  }
  if (names_all(sizes)) return RequestSizes{.sizes = sizes};
  const std::string form = absl::StrJoin(axes, ",");
  const std::vector<std::string> labels = model.BucketLabels();
  if (labels.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", text, "' is not ", form, " (the model has no buckets)"));
  }
  return absl::InvalidArgumentError(absl::StrCat("'", text, "' is neither a bucket of the model (",
                                                 absl::StrJoin(labels, ", "), ") nor ", form));
}

absl::StatusOr<MadeUpRequest> MakeUpRequest(const Model& model, const AxisSizes& sizes,
                                            int64_t max_id, uint64_t seed) {
  std::map<std::string, int64_t> by_symbol;
  for (const ModelAxis& axis : model.axes()) by_symbol[axis.symbol] = sizes.at(axis.label);
  ASSIGN_OR_RETURN(const inference::ModelMetadataResponse metadata,
                   Describe(model, [&](const Dim& dim) { return DimSize(dim, by_symbol); }));
  std::mt19937_64 random(seed);
  MadeUpRequest made;
  ASSIGN_OR_RETURN(made.tensors, RandomInputs(metadata, {.max_id = max_id}, random));
  made.request = RequestOf(model, made.tensors);
  return made;
}

absl::StatusOr<MadeUpRequest> RequestOfJson(const Model& model, const std::string& json) {
  std::string text = json;
  if (!absl::StartsWith(text, "{")) {
    std::ifstream file(json);
    if (!file) return absl::NotFoundError(absl::StrCat("cannot read '", json, "'"));
    text.assign((std::istreambuf_iterator<char>(file)), {});
  }
  const inference::ModelMetadataResponse metadata = MetadataOf(model);
  MadeUpRequest made;
  ASSIGN_OR_RETURN(made.tensors, ParseJsonInputs(text, metadata));
  for (const auto& input : metadata.inputs()) {
    const auto sent =
        std::find_if(made.tensors.begin(), made.tensors.end(),
                     [&](const OwnedTensor& tensor) { return tensor.name == input.name(); });
    if (sent == made.tensors.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("input '", input.name(), "' is not among the inputs"));
    }
  }
  made.request = RequestOfTensors(model, made.tensors);
  return made;
}

inference::ModelMetadataResponse MetadataOf(const Model& model) {
  return *Describe(model, [](const Dim& dim) -> absl::StatusOr<int64_t> {
    return dim.is_constant() ? dim.size : -1;
  });
}

Request RequestOfTensors(const Model& model, const std::vector<OwnedTensor>& tensors) {
  Request request;
  for (const ModelIo& input : model.inputs()) {
    InputTensor& tensor = request.inputs.emplace_back();
    for (const OwnedTensor& owned : tensors) {
      if (owned.name != input.name) continue;
      tensor.shape.assign(owned.shape.begin(), owned.shape.end());
      tensor.data = owned.bytes.data();
    }
  }
  return request;
}

}  // namespace reprise::cli
