#include "runtime/engine/model/model.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "absl/algorithm/container.h"
#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/status_macros.h"
#include "runtime/engine/model/guard_values.h"
#include "runtime/engine/model/size_slices.h"
#include "runtime/engine/model/tail.h"
#include "runtime/engine/replay/gather.h"
#include "runtime/engine/types/engine_options.h"
#include "runtime/graph/rank_error.h"
#include "runtime/recipe/compiler.h"

namespace reprise {
namespace {

// Of one request: sums over all that wait stay far from the largest integer.
constexpr int64_t kMostElements = int64_t{1} << 50;
// Rows, or other places along axes, of an input that has no elements: a client pays for them with
// no byte, and each would be split off, packed or walked over. A request may have as many as it has
// bytes in other inputs.
constexpr int64_t kMostEmptyPlaces = 4096;
// Of one input, when its row is repeated.
constexpr int64_t kMostSpreadBytes = int64_t{64} << 20;

// The places along axes of an input of shape `shape` that has no elements; INT64_MAX beyond that.
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

bool Model::batches_requests() const {
  return packing_ != nullptr || (batch_axis_ >= 0 && axes_[batch_axis_].certificate.certified);
}

int64_t Model::max_batch() const {
  if (!batches_requests()) return 0;
  if (!axes_[batch_axis_].certificate.certified) return packing_->max_segments();
  // Numbers of rows are not learnt: every set has the same.
  const int64_t largest = buckets()->Largest(axes_[batch_axis_].label).value_or(1);
  return options_.max_batch_size > 0 ? std::min(options_.max_batch_size, largest) : largest;
}

int64_t Model::MaxRows(const RequestShape& shape) const {
  constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();
  if (!batches_requests() || (shape.exact && !shape.unproved)) return kNoLimit;
  // What lies behind a cut sees all rows of a request at once.
  if (tail_ != nullptr || packs_whole_requests()) return kNoLimit;
  if (Packs(shape)) return MaxPackedRows(shape.sizes[packing_->sequence_axis()]);
  // The parts would have another number of rows, and the model decides something by that.
  if (slices_ != nullptr && slices_->Decides(batch_axis_, shape.rows)) return kNoLimit;
  for (const OutputShape& output : output_shapes_) {
    const auto moves = [&](const AffineDim& dim) { return dim.MovesWith(batch_axis_); };
    if (std::count_if(output.dims.begin(), output.dims.end(), moves) > 1) return kNoLimit;
  }
  return LargestBatchAt(shape.buckets == nullptr ? *buckets() : *shape.buckets, shape.sizes);
}

int64_t Model::Elements(absl::Span<const int64_t> sizes, int64_t rows) const {
  absl::InlinedVector<int64_t, 4> all(sizes.begin(), sizes.end());
  if (batch_axis_ >= 0) all[batch_axis_] = rows;
  return measure_.Elements(all);
}

int64_t Model::MaxPackedRows(int64_t length) const {
  return std::clamp<int64_t>(packing_->buckets().back() / length, 1, packing_->max_segments());
}

bool Model::Packs(const RequestShape& shape) const {
  if (packing_ == nullptr || shape.exact) return false;
  const int64_t length = shape.sizes[packing_->sequence_axis()];
  if (length > packing_->longest()) return false;
  const bool whole = tail_ != nullptr || packs_whole_requests();
  return !whole || shape.rows <= MaxPackedRows(length);
}

const std::vector<ModelIo>& Model::outputs() const {
  return tail_ == nullptr ? recipe_outputs_ : tail_->outputs();
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

const std::string& Model::LabelOf(const std::string& symbol) const {
  for (const ModelAxis& axis : axes_) {
    if (axis.symbol == symbol) return axis.label;
  }
  return symbol;
}

std::string Model::BindingText(const Binding& binding) const {
  Binding by_label = {.shape_inputs = binding.shape_inputs};
  for (const auto& [symbol, size] : binding.axes) by_label.axes[LabelOf(symbol)] = size;
  return by_label.ToString();
}

void Model::Note(const std::string& text) const {
  log_(absl::StrCat("model ", id().name, ": ", text));
}

RecipeKey Model::KeyAt(const BatchTarget& target, const RequestShape& shape,
                       const ModelVariant* variant) const {
  if (target.packed) {
    return packing_->KeyAt(target.packed_sizes(), device_fingerprint_, options_.precision);
  }
  Binding binding;
  binding.axes = shape.override_sizes;
  for (size_t i = 0; i < axes_.size(); ++i) binding.axes[axes_[i].symbol] = target.sizes[i];
  binding.shape_inputs = shape.shape_inputs;
  return MakeKey(variant == nullptr ? fingerprint_ : variant->fingerprint, std::move(binding),
                 device_fingerprint_, {.precision = options_.precision});
}

CompileOptions Model::CompileOptionsFor(const RecipeKey& key, const EngineOptions& options) const {
  return {.device = options.device,
          .clock = options.clock,
          .batch_symbol = key.packing == kPacked ? kTokensAxis : batch_symbol_,
          .segments_symbol = key.packing == kPacked ? kSegmentsAxis : "",
          .choices = options.choices,
          .debug = options.debug,
          .hold_second =
              [parameters = &owner_->parameters()](const ParameterExpr& expression) {
                return parameters->HoldSecond(expression);
              },
          .holds = [parameters = &owner_->parameters()](
                       const ParameterExpr& expression) { return parameters->Holds(expression); }};
}

absl::StatusOr<std::unique_ptr<Recipe>> Model::CompileAt(const RecipeKey& key,
                                                         const ModelVariant* variant,
                                                         const EngineOptions& options,
                                                         CompiledPlan* plan) const {
  CompileOptions compile = CompileOptionsFor(key, options);
  compile.plan = plan;
  if (variant != nullptr) return Compile(variant->graph, key, compile);
  return Compile(key.packing == kPacked ? packing_->graph() : graph_, key, compile);
}

absl::StatusOr<std::unique_ptr<Recipe>> Model::RebindAt(const CompiledPlan& plan,
                                                        const RecipeKey& key,
                                                        const EngineOptions& options) const {
  return Rebind(plan, key.packing == kPacked ? packing_->graph() : graph_, key,
                CompileOptionsFor(key, options));
}

absl::Status Model::CheckArena(const Recipe& recipe) const {
  const int64_t most = options_.max_arena_bytes;
  if (most <= 0 || static_cast<int64_t>(recipe.frame_bytes()) <= most) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("model '", id().name, "' needs ", recipe.frame_bytes(), " bytes of arena at ",
                   BindingText(recipe.key.binding), "; reprise.max_arena_mb allows ", most,
                   " (a smaller reprise.max_batch_tokens makes smaller replays)"));
}

bool Model::BeyondProof(const std::vector<int64_t>& sizes) const {
  for (size_t i = 0; i < axes_.size(); ++i) {
    const int64_t proved = padding_.proved_to(i);
    if (proved == PaddingProgress::kAnySize || !certified_.contains(axes_[i].label)) continue;
    if (buckets()->Fit(axes_[i].label, sizes[i]).value_or(sizes[i]) > proved) return true;
  }
  return false;
}

std::set<std::string> Model::Paddable() const {
  std::set<std::string> symbols = paddable_;
  for (size_t i = 0; i < axes_.size(); ++i) {
    if (padding_.proved_to(i) != PaddingProgress::kAnySize) symbols.erase(axes_[i].symbol);
  }
  return symbols;
}

AxisCertificate Model::CertificateOf(size_t axis) const {
  const std::shared_ptr<const AxisCertificate> finished = padding_.Finished(axis);
  return finished == nullptr ? axes_[axis].certificate : *finished;
}

std::optional<RequestShape> Model::MeasureAgain(const RequestShape& shape) const {
  if (shape.exact && !shape.unproved && !shape.in_new_slice) return std::nullopt;
  RequestShape now;  // what HoldBack looks at: most requests need no copy of the rest
  if (slices_ == nullptr) {
    now.exact = now.unproved = BeyondProof(shape.sizes);
  } else {
    now.sizes = shape.sizes;
    now.rows = shape.rows;
    HoldBack(now);
  }
  if (now.exact == shape.exact && now.unproved == shape.unproved &&
      now.in_new_slice == shape.in_new_slice) {
    return std::nullopt;
  }
  RequestShape changed = shape;
  changed.exact = now.exact;
  changed.unproved = now.unproved;
  changed.in_new_slice = now.in_new_slice;
  // A request was not split by rows while that was not known to be harmless, and is whole now.
  if (shape.in_new_slice && !changed.exact && changed.rows > MaxRows(changed)) return std::nullopt;
  return changed;
}

void Model::HoldBack(RequestShape& shape) const {
  if (slices_ != nullptr && !Packs(shape)) {
    const SizeSlices::State state = slices_->Find(shape.sizes);
    shape.in_new_slice = state == SizeSlices::State::kUnknown;
    shape.exact = state != SizeSlices::State::kHolds;
  }
  if (!shape.exact) shape.exact = shape.unproved = BeyondProof(shape.sizes);
}

const std::string& Model::InputWithAxis(const std::string& symbol) const {
  const auto has_axis = [&](const ModelIo& input) {
    return std::any_of(input.dims.begin(), input.dims.end(),
                       [&](const Dim& dim) { return dim.symbol == symbol; });
  };
  return std::find_if(inputs_.begin(), inputs_.end(), has_axis)->name;
}

bool Model::MasksAllowPadding(const Request& request) const {
  for (const ModelAxis& axis : axes_) {
    const AxisCertificate& certificate = axis.certificate;
    int hiding = 0;  // of those that hide together
    for (size_t i = 0; i < inputs_.size(); ++i) {
      const ModelIo& input = inputs_[i];
      const auto counts = certificate.must_count.find(input.name);
      const auto together = certificate.together.find(input.name);
      const bool counted = counts != certificate.must_count.end();
      const bool guards = counted || absl::c_linear_search(certificate.guards, input.name);
      if (!guards && together == certificate.together.end()) continue;
      const auto dims = signature_.DimsAlong(i, axis.symbol);
      if (dims.empty()) continue;
      const auto known_fill = options_.fills.find(input.name);
      const double fill = known_fill == options_.fills.end() ? 0 : known_fill->second;
      const InputTensor& tensor = request.inputs[i];
      const bool is_mask = IsFloating(input.dtype) ? counted : mask_inputs_.contains(i);
      if (guards && !HoldsWhatWasProved(input.dtype, tensor, fill, is_mask)) return false;
      const bool all_count = !counted || absl::c_all_of(dims, [&](size_t dim) {
        return EveryRowCounts(counts->second, fill, input.dtype, tensor, dim);
      });
      if (!all_count) return false;
      if (together == certificate.together.end()) continue;
      const Hiding hides = HidingOf(together->second, guards ? std::optional(fill) : std::nullopt,
                                    input.dtype, tensor, dims);
      if (hides == Hiding::kTooMuch) return false;
      if (hides == Hiding::kSome && ++hiding > 1) return false;
    }
  }
  return true;
}

absl::Status Model::LookAtFiles() const { return owner_->parameters().LookAtFiles(); }

bool Model::packs_any_mask() const {
  if (packing_ == nullptr || !packing_->takes_any_mask()) return false;
  return std::all_of(axes_.begin(), axes_.end(), [&](const ModelAxis& axis) {
    if (axis.is_batch && axis.certificate.asks_of_masks()) return false;
    return axis.certificate.proved || packs_whole_requests() || any_mask_measured_;
  });
}

absl::StatusOr<std::vector<const Shape*>> Model::TakeInputs(const Request& request,
                                                            RequestShape& result) const {
  if (request.inputs.size() != inputs_.size()) {
    return absl::InvalidArgumentError(absl::StrCat("model '", id().name, "' has ", inputs_.size(),
                                                   " inputs, the request ", request.inputs.size()));
  }
  std::vector<const Shape*> shapes;
  int64_t empty_places = 0;
  size_t emptiest = 0;
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
    const absl::StatusOr<int64_t> counted = CheckedNumElements(tensor.shape);
    if (!counted.ok()) {
      return WithMessage(counted.status(), absl::StrCat("input '", inputs_[i].name,
                                                        "': ", counted.status().message()));
    }
    const int64_t elements = *counted;
    if (tensor.data == nullptr && elements > 0) {
      return absl::InvalidArgumentError(absl::StrCat("input '", inputs_[i].name, "' is missing"));
    }
    result.bytes += elements * DTypeSize(inputs_[i].dtype);
    shapes.push_back(&tensor.shape);
    if (elements > 0) continue;
    if (const int64_t empty = EmptyPlaces(inputs_[i], tensor.shape); empty > empty_places) {
      empty_places = empty;
      emptiest = i;
    }
  }
  if (empty_places > std::max(result.bytes, kMostEmptyPlaces)) {
    return absl::ResourceExhaustedError(
        absl::StrCat("input '", inputs_[emptiest].name, "' of shape ",
                     ShapeToString(request.inputs[emptiest].shape), " has ", empty_places,
                     " rows or positions and no element; a request of ", result.bytes,
                     " bytes may have ", std::max(result.bytes, kMostEmptyPlaces)));
  }
  return shapes;
}

absl::Status Model::TakeSize(const ModelAxis& axis, int64_t size, RequestShape& result) const {
  result.sizes.push_back(size);
  if (axis.is_batch) {
    if (size == 0) {
      return absl::InvalidArgumentError(absl::StrCat("the request has 0 rows: axis '", axis.label,
                                                     "' of input '", InputWithAxis(axis.symbol),
                                                     "' must be at least 1"));
    }
    result.rows = size;
  } else if (size < axis.smallest) {
    result.exact = true;
  } else if (certified_.contains(axis.label)) {
    // Refuses, as configured, what is longer than the largest bucket.
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
  if (one_row_inputs_.empty() || !axes_[batch_axis_].certificate.certified ||
      request.inputs.size() != inputs_.size()) {
    return;
  }
  int64_t rows = 1;
  int64_t sent = kMostEmptyPlaces;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const Shape& shape = request.inputs[i].shape;
    const bool has_rows =
        !inputs_[i].dims.empty() && inputs_[i].dims[0].symbol == axes_[batch_axis_].symbol;
    if (has_rows && !shape.empty()) rows = std::max(rows, shape[0]);
    sent = std::max(sent, CheckedNumElements(shape).value_or(0));
  }
  // More than what was sent can have: Measure refuses them.
  if (rows > sent) return;
  for (const size_t i : one_row_inputs_) {
    InputTensor& input = request.inputs[i];
    if (rows == 1 || input.data == nullptr || input.shape.empty() || input.shape[0] != 1) continue;
    const absl::StatusOr<int64_t> elements = CheckedNumElements(input.shape);
    if (!elements.ok() || *elements > kMostSpreadBytes) continue;
    const auto bytes = static_cast<size_t>(*elements * DTypeSize(inputs_[i].dtype));
    if (rows > kMostSpreadBytes / std::max<int64_t>(1, static_cast<int64_t>(bytes))) continue;
    auto repeated = std::make_shared<std::string>();
    repeated->reserve(static_cast<size_t>(rows) * bytes);
    for (int64_t row = 0; row < rows; ++row) {
      repeated->append(static_cast<const char*>(input.data), bytes);
    }
    input.shape[0] = rows;
    input.data = repeated->data();
    request.spread.push_back(std::move(repeated));
  }
}

absl::StatusOr<RequestShape> Model::Measure(const Request& request) const {
  RequestShape result{.buckets = buckets()};
  ASSIGN_OR_RETURN(const std::vector<const Shape*> shapes, TakeInputs(request, result));
  ASSIGN_OR_RETURN(const auto sizes, signature_.Match(shapes));
  if (!result.overrides.empty()) result.override_sizes = sizes;
  for (const ModelAxis& axis : axes_) {
    RETURN_IF_ERROR(TakeSize(axis, sizes.at(axis.symbol), result));
  }
  result.tokens = measure_.Elements(result.sizes);
  if (result.tokens > kMostElements) {
    const auto axis_text = [&](std::string* out, const ModelAxis& axis) {
      absl::StrAppend(out, axis.label, " ", sizes.at(axis.symbol));
    };
    return absl::ResourceExhaustedError(
        absl::StrCat("the request's sizes are too large: ", absl::StrJoin(axes_, ", ", axis_text)));
  }
  for (int position : result.overrides.empty() ? shape_inputs_ : variants_->shape_inputs()) {
    RETURN_IF_ERROR(TakeShapeInput(inputs_[position], request.inputs[position], result));
  }
  if (!result.exact && !MasksAllowPadding(request)) {
    result.exact = !packs_any_mask() || !Packs(result);
  }
  result.spread = !request.spread.empty();
  if (!result.exact) HoldBack(result);
  // Nothing is padded of a model that is packed without certificates for that.
  if (packs_whole_requests() && !Packs(result)) result.exact = true;
  return result;
}

}  // namespace reprise
