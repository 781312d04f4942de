// The measuring of a request by its model: its sizes along each axis, and whether it may be padded.
#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/status_macros.h"
#include "runtime/engine/model/length_values.h"
#include "runtime/engine/model/model.h"
#include "runtime/graph/rank_error.h"
#include "runtime/verify/size_slices.h"

namespace reprise {
namespace {

// The limit for one request: sums over all waiting requests stay far from the largest integer.
constexpr int64_t kMostElements = int64_t{1} << 50;
// Rows, or other places along axes, of an input that has no elements: they cost a client no bytes,
// and each would be split off, packed or walked over. A request may have as many as it has bytes in
// other inputs.
constexpr int64_t kMostEmptyPlaces = 4096;
// No promoted constant has more elements.
constexpr int64_t kMostOwnElements = 1024;
// The limit for one input, when its row is repeated.
constexpr int64_t kMostSpreadBytes = int64_t{64} << 20;

// Returns the places along axes of an input of shape `shape` that has no elements; INT64_MAX beyond
// that.
int64_t EmptyPlaces(const ModelIo& input, const Shape& shape) {
  int64_t places = 1;
  for (size_t d = 0; d < shape.size(); ++d) {
    const bool along_axis = d < input.dims.size() && !input.dims[d].is_constant();
    if (shape[d] == 0 || !along_axis) continue;
    if (__builtin_mul_overflow(places, shape[d], &places)) return INT64_MAX;
  }
  return places;
}

}  // namespace

std::optional<RequestShape> Model::MeasureAgain(const RequestShape& shape) const {
  if (shape.exact && !shape.quarantined && !shape.in_new_slice) return std::nullopt;
  if (shape.splits_axes()) return std::nullopt;
  RequestShape now;  // the fields that HoldBack reads: most requests need no copy of the rest
  if (proof_->slices == nullptr) {
    now.exact = now.quarantined = IsQuarantined(shape.sizes);
  } else {
    now.sizes = shape.sizes;
    now.rows = shape.rows;
    HoldBack(now);
  }
  if (now.exact == shape.exact && now.quarantined == shape.quarantined &&
      now.in_new_slice == shape.in_new_slice) {
    return std::nullopt;
  }
  RequestShape changed = shape;
  changed.exact = now.exact;
  changed.quarantined = now.quarantined;
  changed.in_new_slice = now.in_new_slice;
  // A request was not split by rows while that was not known to be harmless, and is not split now.
  if (shape.in_new_slice && !changed.exact && changed.rows > MaxRows(changed)) return std::nullopt;
  return changed;
}

void Model::HoldBack(RequestShape& shape) const {
  if (proof_->slices != nullptr && !Packs(shape)) {
    const SizeSlices::State state = proof_->slices->Find(shape.sizes);
    shape.in_new_slice = state == SizeSlices::State::kUnknown;
    shape.exact = state != SizeSlices::State::kHolds;
  }
  if (!shape.exact) shape.exact = shape.quarantined = IsQuarantined(shape.sizes);
}

const std::string& Model::InputWithAxis(const std::string& symbol) const {
  const auto has_axis = [&](const ModelIo& input) {
    return std::any_of(input.dims.begin(), input.dims.end(),
                       [&](const Dim& dim) { return dim.symbol == symbol; });
  };
  return std::find_if(signature_->inputs.begin(), signature_->inputs.end(), has_axis)->name;
}

bool Model::LengthsAreInside(const Request& request, const RequestShape& shape) const {
  if (signature_->length_inputs.empty()) return true;
  int64_t shortest = INT64_MAX;
  for (size_t i = 0; i < shape.sizes.size(); ++i) {
    if (!proof_->axes[i].is_batch) shortest = std::min(shortest, shape.sizes[i]);
  }
  return absl::c_all_of(signature_->length_inputs, [&](size_t i) {
    const InputTensor& tensor = request.inputs[i];
    return tensor.data == nullptr || AllLengthsUpTo(shortest, signature_->inputs[i].dtype, tensor);
  });
}

absl::StatusOr<std::vector<const Shape*>> Model::TakeInputs(const Request& request,
                                                            RequestShape& result) const {
  if (request.inputs.size() != signature_->inputs.size()) {
    return absl::InvalidArgumentError(absl::StrCat("model '", id().name, "' has ",
                                                   signature_->inputs.size(),
                                                   " inputs, the request ", request.inputs.size()));
  }
  std::vector<const Shape*> shapes;
  int64_t empty_places = 0;
  size_t emptiest = 0;
  for (size_t i = 0; i < signature_->inputs.size(); ++i) {
    const InputTensor& tensor = request.inputs[i];
    if (signature_->inputs[i].optional) {
      if (tensor.data == nullptr) {
        shapes.push_back(nullptr);
        continue;
      }
      if (signature_->inputs[i].has_variants()) {
        result.overrides.push_back(i);
        result.exact = true;
      }
    }
    const absl::StatusOr<int64_t> counted = CheckedNumElements(tensor.shape);
    if (!counted.ok()) {
      // Too large a shape never fits.
      return absl::InvalidArgumentError(
          absl::StrCat("input '", signature_->inputs[i].name, "': ", counted.status().message()));
    }
    const int64_t elements = *counted;
    if (tensor.data == nullptr && elements > 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("input '", signature_->inputs[i].name, "' is missing"));
    }
    result.bytes += elements * DTypeSize(signature_->inputs[i].dtype);
    shapes.push_back(&tensor.shape);
    if (signature_->inputs[i].parameter >= 0) TakeOwnValue(signature_->inputs[i], tensor, result);
    if (elements > 0) continue;
    if (const int64_t empty = EmptyPlaces(signature_->inputs[i], tensor.shape);
        empty > empty_places) {
      empty_places = empty;
      emptiest = i;
    }
  }
  if (empty_places > std::max(result.bytes, kMostEmptyPlaces)) {
    return absl::InvalidArgumentError(
        absl::StrCat("input '", signature_->inputs[emptiest].name, "' of shape ",
                     ShapeToString(request.inputs[emptiest].shape), " has ", empty_places,
                     " rows or positions and no element; a request of ", result.bytes,
                     " bytes may have ", std::max(result.bytes, kMostEmptyPlaces)));
  }
  return shapes;
}

void Model::TakeOwnValue(const ModelIo& input, const InputTensor& tensor, RequestShape& result) {
  // An input of a wrong shape is refused after this.
  const int64_t elements = CheckedNumElements(tensor.shape).value_or(0);
  if (elements > kMostOwnElements) return;
  // A copy: the client's bytes need not be aligned.
  Tensor value = Tensor::Make(input.dtype, tensor.shape, [&](void* data) {
    const size_t bytes = elements * DTypeSize(input.dtype);
    if (bytes > 0) std::memcpy(data, tensor.data, bytes);
  });
  result.own_values.push_back({.parameter = input.parameter, .value = std::move(value)});
}

absl::StatusOr<std::map<std::string, int64_t>> Model::MatchSizes(
    const std::vector<const Shape*>& shapes, RequestShape& result) const {
  absl::StatusOr<std::map<std::string, int64_t>> sizes = input_sizes_.Match(shapes);
  if (!result.overrides.empty() && sizes.ok()) result.own_sizes = *sizes;
  const SplitAxes* const split = program_->split_axes.get();
  if (sizes.ok() || split == nullptr || !result.overrides.empty()) return sizes;
  std::optional<std::map<std::string, int64_t>> own = split->Match(shapes);
  if (!own.has_value()) {
    // The axes of a file that gives every dim one name find the first two dims of two sizes.
    const std::string disagreement = split->Disagreement(shapes);
    return disagreement.empty() ? sizes : absl::InvalidArgumentError(disagreement);
  }
  result.misfit = std::string(sizes.status().message());
  result.exact = true;
  result.own_sizes = *std::move(own);
  std::map<std::string, int64_t> largest;
  for (size_t i = 0; i < signature_->inputs.size(); ++i) {
    const ModelIo& input = signature_->inputs[i];
    for (size_t d = 0; d < input.dims.size() && !input.optional; ++d) {
      if (input.dims[d].is_constant()) continue;
      const int64_t size = (*shapes[i])[d];
      int64_t& known = largest.emplace(input.dims[d].symbol, size).first->second;
      // An input without rows makes the request one without rows.
      known = known == 0 || size == 0 ? 0 : std::max(known, size);
    }
  }
  return largest;
}

absl::Status Model::TakeSize(const ModelAxis& axis, int64_t size, RequestShape& result) const {
  result.sizes.push_back(size);
  if (const auto range = options_.ranges.find(axis.label);
      range != options_.ranges.end() && !range->second.Allows(size)) {
    return absl::InvalidArgumentError(
        absl::StrCat("axis '", axis.label, "' of input '", InputWithAxis(axis.symbol), "' is ",
                     size, ", reprise.range.", axis.label, " allows ", range->second.Text()));
  }
  if (axis.is_batch) {
    if (size == 0) {
      return absl::InvalidArgumentError(absl::StrCat("the request has 0 rows: axis '", axis.label,
                                                     "' of input '", InputWithAxis(axis.symbol),
                                                     "' must be at least 1"));
    }
    result.rows = size;
  } else if (size < axis.smallest || size % axis.step != 0) {
    result.exact = true;
  } else if (proof_->certified.contains(axis.label)) {
    // Refuses, as configured, a size beyond the largest bucket.
    RETURN_IF_ERROR(result.buckets->FitBinding({{axis.label, size}}, {axis.label}).status());
  }
  return absl::OkStatus();
}

absl::Status Model::TakeShapeInput(const ModelIo& input, const InputTensor& tensor,
                                   RequestShape& result) const {
  if (input.optional && tensor.data == nullptr) return absl::OkStatus();
  const int64_t elements = NumElements(tensor.shape);
  if (elements > kMaxShapeInputElements) {
    return absl::InvalidArgumentError(
        absl::StrCat("input '", input.name, "' decides a shape and has ", elements,
                     " elements; at most ", kMaxShapeInputElements, " are supported"));
  }
  // A copy: the client's bytes need not be aligned.
  Tensor value = Tensor::Make(input.dtype, tensor.shape, [&](void* data) {
    const size_t bytes = elements * DTypeSize(input.dtype);
    if (bytes > 0) std::memcpy(data, tensor.data, bytes);
  });
  result.shape_inputs.insert_or_assign(input.name, std::move(value));
  result.exact = true;
  return absl::OkStatus();
}

void Model::SpreadRows(Request& request) const {
  if (signature_->one_row_inputs.empty() ||
      !proof_->axes[signature_->batch_axis].certificate.certified ||
      request.inputs.size() != signature_->inputs.size()) {
    return;
  }
  int64_t rows = 1;
  int64_t sent = kMostEmptyPlaces;
  for (size_t i = 0; i < signature_->inputs.size(); ++i) {
    const Shape& shape = request.inputs[i].shape;
    const bool has_rows =
        !signature_->inputs[i].dims.empty() &&
        signature_->inputs[i].dims[0].symbol == proof_->axes[signature_->batch_axis].symbol;
    if (has_rows && !shape.empty()) rows = std::max(rows, shape[0]);
    sent = std::max(sent, CheckedNumElements(shape).value_or(0));
  }
  // More rows than the sent bytes can have: Measure refuses them.
  if (rows == 1 || rows > sent || RunsAsSent(request, rows)) return;
  std::vector<std::pair<InputTensor*, size_t>> repeatable;  // and the bytes of the one row
  for (const size_t i : signature_->one_row_inputs) {
    InputTensor& input = request.inputs[i];
    if (input.data == nullptr || input.shape.empty() || input.shape[0] != 1) continue;
    const absl::StatusOr<int64_t> elements = CheckedNumElements(input.shape);
    if (!elements.ok() || *elements > kMostSpreadBytes) return;
    const auto bytes = static_cast<size_t>(*elements * DTypeSize(signature_->inputs[i].dtype));
    if (rows > kMostSpreadBytes / std::max<int64_t>(1, static_cast<int64_t>(bytes))) return;
    repeatable.emplace_back(&input, bytes);
  }
  for (const auto& [input, bytes] : repeatable) {
    auto repeated = std::make_shared<std::string>();
    repeated->reserve(static_cast<size_t>(rows) * bytes);
    for (int64_t row = 0; row < rows; ++row) {
      repeated->append(static_cast<const char*>(input->data), bytes);
    }
    input->shape[0] = rows;
    input->data = repeated->data();
    request.spread.push_back(std::move(repeated));
  }
}

bool Model::RunsAsSent(const Request& request, int64_t rows) const {
  if (program_->split_axes == nullptr) return false;
  std::vector<Shape> spread;
  std::vector<const Shape*> as_sent, as_spread;
  spread.reserve(signature_->inputs.size());
  for (size_t i = 0; i < signature_->inputs.size(); ++i) {
    const InputTensor& input = request.inputs[i];
    const bool optional = signature_->inputs[i].optional;
    const bool left_out = optional && input.data == nullptr;
    if (optional && !left_out) return false;  // It needs another variant.
    Shape& shape = spread.emplace_back(input.shape);
    if (signature_->one_row_inputs.contains(i) && !shape.empty() && shape[0] == 1) shape[0] = rows;
    as_sent.push_back(left_out ? nullptr : &input.shape);
    as_spread.push_back(left_out ? nullptr : &shape);
  }
  if (!program_->split_axes->Match(as_sent).has_value()) return false;
  const auto known = input_sizes_.Match(as_spread);
  if (!known.ok()) return true;
  if (proof_->slices == nullptr) return false;
  const SizeDecision& by_rows = proof_->axes[signature_->batch_axis].decision;
  if (!by_rows.words.empty() && rows > by_rows.alike_up_to) return true;
  std::vector<int64_t> sizes;
  for (const ModelAxis& axis : proof_->axes) sizes.push_back(known->at(axis.symbol));
  return proof_->slices->Find(sizes) != SizeSlices::State::kHolds;
}

absl::StatusOr<RequestShape> Model::Measure(const Request& request) const {
  RequestShape result{.buckets = buckets()};
  ASSIGN_OR_RETURN(const std::vector<const Shape*> shapes, TakeInputs(request, result));
  ASSIGN_OR_RETURN(const auto sizes, MatchSizes(shapes, result));
  for (const ModelAxis& axis : proof_->axes) {
    RETURN_IF_ERROR(TakeSize(axis, sizes.at(axis.symbol), result));
  }
  result.tokens = signature_->measure.Elements(result.sizes);
  if (result.tokens > kMostElements) {
    const auto axis_text = [&](std::string* out, const ModelAxis& axis) {
      absl::StrAppend(out, axis.label, " ", sizes.at(axis.symbol));
    };
    return absl::InvalidArgumentError(absl::StrCat("the request's sizes are too large: ",
                                                   absl::StrJoin(proof_->axes, ", ", axis_text)));
  }
  for (int position :
       result.overrides.empty() ? signature_->shape_inputs : program_->variants->shape_inputs()) {
    RETURN_IF_ERROR(TakeShapeInput(signature_->inputs[position], request.inputs[position], result));
  }
  if (!result.exact && packs_only() && !Packs(result)) result.exact = true;
  // Beyond the request's own end lies padding: at its exact sizes the op refuses an invalid length.
  if (!result.exact) result.exact = !LengthsAreInside(request, result);
  if (!result.exact) HoldBack(result);
  // Its inputs of one row may stand for others, once that is known: see RunsAsSent.
  if (result.splits_axes() && proof_->slices != nullptr && !signature_->one_row_inputs.empty()) {
    result.in_new_slice = proof_->slices->Find(result.sizes) == SizeSlices::State::kUnknown;
  }
  // Nothing is padded of a model that is packed without certificates for that.
  if (packs_whole_requests() && !Packs(result)) result.exact = true;
  return result;
}

}  // namespace reprise
