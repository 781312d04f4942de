#include "runtime/engine/model.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/engine/gather.h"
#include "runtime/engine/signature.h"

namespace reprise {
namespace {

// Padding a small request up costs less than a replay of its own up to about this many tokens.
constexpr int64_t kReplayOverheadTokens = 64;
// Values of shape inputs are part of the key; longer ones are data.
constexpr int64_t kMaxShapeInputElements = 64;

// Whether every slice of `tensor` along its dims before `axis_dim` has an element other than
// `fill`.
bool EveryRowDiffersFrom(double fill, DType dtype, const InputTensor& tensor, size_t axis_dim) {
  int64_t rows = 1, row_elements = 1;
  for (size_t d = 0; d < tensor.shape.size(); ++d) {
    (d < axis_dim ? rows : row_elements) *= tensor.shape[d];
  }
  const size_t size = DTypeSize(dtype);
  char fill_bytes[sizeof(double)];
  FillElements(dtype, fill, 1, fill_bytes);
  const auto* data = static_cast<const char*>(tensor.data);
  for (int64_t row = 0; row < rows; ++row) {
    bool differs = false;
    for (int64_t i = 0; i < row_elements && !differs; ++i) {
      differs = std::memcmp(data + (row * row_elements + i) * size, fill_bytes, size) != 0;
    }
    if (!differs) return false;
  }
  return true;
}

}  // namespace

bool Model::batches_requests() const {
  return batch_axis_ >= 0 && axes_[batch_axis_].certificate.certified;
}

int64_t Model::max_batch() const {
  if (!batches_requests()) return 0;
  const int64_t largest = policy_.Largest(axes_[batch_axis_].label).value_or(1);
  return options_.max_batch_size > 0 ? std::min(options_.max_batch_size, largest) : largest;
}

int64_t Model::MaxRows(const RequestShape& shape) const {
  constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();
  if (!batches_requests() || shape.exact) return kNoLimit;
  for (const OutputShape& output : output_shapes_) {
    const auto moves = [&](const AffineDim& dim) { return dim.MovesWith(batch_axis_); };
    if (std::count_if(output.dims.begin(), output.dims.end(), moves) > 1) return kNoLimit;
  }
  return LargestBatchAt(shape);
}

int64_t Model::LargestBatchAt(const RequestShape& shape) const {
  AxisSizes others;
  for (size_t i = 0; i < axes_.size(); ++i) {
    if (static_cast<int>(i) == batch_axis_) continue;
    const std::string& label = axes_[i].label;
    const std::optional<int64_t> bucket =
        certified_.contains(label) ? policy_.Fit(label, shape.sizes[i]) : std::nullopt;
    others[label] = bucket.value_or(shape.sizes[i]);
  }
  return std::min(policy_.LargestBatch(others), max_batch());
}

bool Model::MovesWithBatch(size_t position, size_t dim) const {
  return batches_requests() && !output_shapes_.empty() &&
         dim < output_shapes_[position].dims.size() &&
         output_shapes_[position].dims[dim].MovesWith(batch_axis_);
}

int Model::BatchDimOf(size_t position) const {
  if (!batches_requests() || output_shapes_.empty()) return -1;
  const std::vector<AffineDim>& dims = output_shapes_[position].dims;
  for (size_t d = 0; d < dims.size(); ++d) {
    if (dims[d].IsAxis(batch_axis_)) return static_cast<int>(d);
  }
  return -1;
}

int64_t Model::parameter_bytes() const { return owner_->parameters().leaf_bytes(); }

const std::string& Model::InputWithAxis(const std::string& symbol) const {
  const auto has_axis = [&](const ModelIo& input) {
    return std::any_of(input.dims.begin(), input.dims.end(),
                       [&](const Dim& dim) { return dim.symbol == symbol; });
  };
  return std::find_if(inputs_.begin(), inputs_.end(), has_axis)->name;
}

absl::StatusOr<RequestShape> Model::Measure(const Request& request) const {
  if (request.inputs.size() != inputs_.size()) {
    return absl::InvalidArgumentError(absl::StrCat("model '", id().name, "' has ", inputs_.size(),
                                                   " inputs, the request ", request.inputs.size()));
  }
  RequestShape result;
  std::vector<const Shape*> shapes;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const InputTensor& tensor = request.inputs[i];
    if (inputs_[i].optional) {
      if (tensor.data == nullptr) {
        shapes.push_back(nullptr);
        continue;
      }
      result.overrides.push_back(i);
      result.exact = true;
    }
    ASSIGN_OR_RETURN(const int64_t elements, CheckedNumElements(tensor.shape));
    if (tensor.data == nullptr && elements > 0) {
      return absl::InvalidArgumentError(absl::StrCat("input '", inputs_[i].name, "' is missing"));
    }
    result.bytes += elements * DTypeSize(inputs_[i].dtype);
    shapes.push_back(&tensor.shape);
  }
  ASSIGN_OR_RETURN(const auto sizes, MatchShapes(inputs_, shapes));
  if (!result.overrides.empty()) result.override_sizes = sizes;
  for (size_t i = 0; i < axes_.size(); ++i) {
    const ModelAxis& axis = axes_[i];
    const int64_t size = sizes.at(axis.symbol);
    result.sizes.push_back(size);
    if (axis.is_batch) {
      if (size == 0) {
        return absl::InvalidArgumentError(absl::StrCat("the request has 0 rows: axis '", axis.label,
                                                       "' of input '", InputWithAxis(axis.symbol),
                                                       "' must be at least 1"));
      }
      result.rows = size;
    } else if (size == 0) {
      result.exact = true;
    } else if (certified_.contains(axis.label)) {
      // Refuses, as configured, what is longer than the largest bucket.
      RETURN_IF_ERROR(policy_.FitBinding({{axis.label, size}}, {axis.label}).status());
    }
    if (__builtin_mul_overflow(result.tokens, std::max<int64_t>(size, 1), &result.tokens)) {
      return absl::ResourceExhaustedError(
          absl::StrCat("the request's sizes overflow at axis '", axis.label, "' of size ", size));
    }
  }
  for (int position : result.overrides.empty() ? shape_inputs_ : variants_->shape_inputs()) {
    const InputTensor& tensor = request.inputs[position];
    const ModelIo& input = inputs_[position];
    if (input.optional && tensor.data == nullptr) continue;
    if (NumElements(tensor.shape) > kMaxShapeInputElements) {
      return absl::InvalidArgumentError(absl::StrCat(
          "input '", input.name, "' decides a shape and has ", NumElements(tensor.shape),
          " elements; at most ", kMaxShapeInputElements, " are supported"));
    }
    // A copy: the client's bytes need not be aligned.
    const Tensor value = Tensor::Make(input.dtype, tensor.shape, [&](void* data) {
      const size_t bytes = NumElements(tensor.shape) * DTypeSize(input.dtype);
      if (bytes > 0) std::memcpy(data, tensor.data, bytes);
    });
    ASSIGN_OR_RETURN(result.shape_inputs[input.name], value.ToInt64s());
    result.exact = true;
  }
  for (const ModelAxis& axis : axes_) {
    if (result.exact) break;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      const auto& names = axis.certificate.nonzero_rows;
      if (std::find(names.begin(), names.end(), inputs_[i].name) == names.end()) continue;
      for (size_t d = 0; d < inputs_[i].dims.size(); ++d) {
        if (inputs_[i].dims[d].symbol != axis.symbol) continue;
        const auto fill = options_.fills.find(inputs_[i].name);
        if (!EveryRowDiffersFrom(fill == options_.fills.end() ? 0 : fill->second, inputs_[i].dtype,
                                 request.inputs[i], d)) {
          result.exact = true;
        }
      }
    }
  }
  return result;
}

absl::StatusOr<BatchPlan::Target> BatchPlan::TargetFor(const std::vector<int64_t>& sizes,
                                                       bool exact) const {
  const std::vector<ModelAxis>& axes = model_->axes_;
  AxisSizes by_label;
  for (size_t i = 0; i < axes.size(); ++i) by_label[axes[i].label] = sizes[i];
  AxisSizes fitted = by_label;
  if (!exact) {
    ASSIGN_OR_RETURN(fitted, model_->policy_.FitBinding(by_label, model_->certified_));
  }
  Target target;
  AxisSizes bucketed;
  const bool in_bucket = !exact && model_->policy_.IsBucket(fitted, model_->certified_);
  target.tokens = 1;
  for (const ModelAxis& axis : axes) {
    target.sizes.push_back(fitted[axis.label]);
    // Kernels skip the rows that no request fills: along the batch axis padding costs no time.
    const int64_t computed = axis.is_batch ? by_label[axis.label] : fitted[axis.label];
    target.tokens *= std::max<int64_t>(computed, 1);
    if (in_bucket && model_->certified_.contains(axis.label)) {
      bucketed[axis.label] = fitted[axis.label];
    }
  }
  target.exact = exact || bucketed.size() < axes.size();
  const auto it = model_->bucket_index_.find(BucketLabel(bucketed, model_->policy_.batch_axis));
  target.bucket = it == model_->bucket_index_.end()
                      ? static_cast<int>(model_->bucket_labels_.size()) - 1
                      : it->second;
  return target;
}

bool BatchPlan::TryAdd(const RequestShape& shape) {
  if (shapes_.empty()) {
    absl::StatusOr<Target> target = TargetFor(shape.sizes, shape.exact);
    if (!target.ok()) return false;
    target_ = *std::move(target);
    sizes_ = shape.sizes;
    rows_ = shape.rows;
    shapes_.push_back(shape);
    return true;
  }
  if (!model_->batches_requests() || shape.exact || shapes_[0].exact) return false;
  std::vector<int64_t> sizes = sizes_;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (static_cast<int>(i) == model_->batch_axis_) {
      sizes[i] += shape.sizes[i];
    } else if (model_->certified_.contains(model_->axes_[i].label)) {
      sizes[i] = std::max(sizes[i], shape.sizes[i]);
    } else if (sizes[i] != shape.sizes[i]) {
      return false;  // No certificate: only equal sizes go together.
    }
  }
  RequestShape joint{.sizes = sizes};
  if (rows_ + shape.rows > model_->LargestBatchAt(joint)) return false;
  const absl::StatusOr<Target> alone = TargetFor(shape.sizes, false);
  absl::StatusOr<Target> together = TargetFor(sizes, false);
  if (!alone.ok() || !together.ok()) return false;
  if (together->tokens > target_.tokens + alone->tokens + kReplayOverheadTokens) return false;
  target_ = *std::move(together);
  sizes_ = std::move(sizes);
  rows_ += shape.rows;
  shapes_.push_back(shape);
  return true;
}

bool BatchPlan::full() const {
  if (shapes_.empty()) return false;
  if (!model_->batches_requests() || shapes_[0].exact) return true;
  RequestShape joint{.sizes = sizes_};
  return rows_ >= model_->LargestBatchAt(joint);
}

}  // namespace reprise
