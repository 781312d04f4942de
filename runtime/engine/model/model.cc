#include "runtime/engine/model/model.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/status_macros.h"
#include "runtime/engine/model/guard_values.h"
#include "runtime/engine/model/tail.h"
#include "runtime/engine/replay/gather.h"
#include "runtime/engine/types/engine_options.h"
#include "runtime/graph/rank_error.h"
#include "runtime/passes/pipeline.h"
#include "runtime/recipe/compiler.h"
#include "runtime/verify/padding_proof.h"
#include "runtime/verify/size_slices.h"

namespace reprise {
namespace {

// The limit for one request: sums over all that wait stay far from the largest integer.
constexpr int64_t kMostElements = int64_t{1} << 50;
// Rows, or other places along axes, of an input that has no elements: a client pays for them with
// no byte, and each would be split off, packed or walked over. A request may have as many as it has
// bytes in other inputs.
constexpr int64_t kMostEmptyPlaces = 4096;
// The limit for one input, when its row is repeated.
// No promoted constant has more elements.
constexpr int64_t kMostOwnElements = 1024;
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

Model::Model(ModelOptions options, std::shared_ptr<const ModelSignature> signature,
             std::shared_ptr<const ModelProgram> program, std::shared_ptr<const ModelProof> proof,
             ModelTraffic traffic, std::function<void(const std::string&)> log)
    : options_(std::move(options)),
      signature_(std::move(signature)),
      program_(std::move(program)),
      proof_(std::move(proof)),
      input_sizes_(signature_->inputs),
      log_(std::move(log)),
      traffic_(std::move(traffic)),
      padding_(proof_->axes.size()) {
  for (const ModelAxis& axis : proof_->axes) {
    if (proof_->certified.contains(axis.label)) paddable_.insert(axis.symbol);
    if (axis.is_batch) batch_symbol_ = axis.symbol;
  }
  if (proof_->pending == nullptr) return;
  for (const PendingProof::Axis& left : proof_->pending->axes) {
    padding_.Defer(left.position, left.rest.proved_to);
  }
}

bool Model::batches_requests() const {
  return proof_->packing != nullptr || (signature_->batch_axis >= 0 &&
                                        proof_->axes[signature_->batch_axis].certificate.certified);
}

int64_t Model::max_batch() const {
  if (!batches_requests()) return 0;
  if (!proof_->axes[signature_->batch_axis].certificate.certified)
    return proof_->packing->max_segments();
  // Numbers of rows are not learnt: every set has the same.
  const int64_t largest =
      buckets()->Largest(proof_->axes[signature_->batch_axis].label).value_or(1);
  return options_.max_batch_size > 0 ? std::min(options_.max_batch_size, largest) : largest;
}

int64_t Model::MaxRows(const RequestShape& shape) const {
  constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();
  if (!batches_requests() || (shape.exact && !shape.unproved)) return kNoLimit;
  // Nodes behind a cut see all rows of a request at once.
  if (program_->tail != nullptr || packs_whole_requests()) return kNoLimit;
  if (Packs(shape)) return MaxPackedRows(shape.sizes[proof_->packing->sequence_axis()]);
  // The parts would have another number of rows, and the model decides something by that.
  if (proof_->slices != nullptr && proof_->slices->Decides(signature_->batch_axis, shape.rows))
    return kNoLimit;
  for (const OutputShape& output : proof_->output_shapes) {
    const auto moves = [&](const AffineDim& dim) { return dim.MovesWith(signature_->batch_axis); };
    if (std::count_if(output.dims.begin(), output.dims.end(), moves) > 1) return kNoLimit;
  }
  return LargestBatchAt(shape.buckets == nullptr ? *buckets() : *shape.buckets, shape.sizes);
}

int64_t Model::Elements(absl::Span<const int64_t> sizes, int64_t rows) const {
  absl::InlinedVector<int64_t, 4> all(sizes.begin(), sizes.end());
  if (signature_->batch_axis >= 0) all[signature_->batch_axis] = rows;
  return signature_->measure.Elements(all);
}

int64_t Model::MaxPackedRows(int64_t length) const {
  return std::clamp<int64_t>(proof_->packing->buckets().back() / length, 1,
                             proof_->packing->max_segments());
}

bool Model::Packs(const RequestShape& shape) const {
  if (proof_->packing == nullptr || shape.exact) return false;
  const int64_t length = shape.sizes[proof_->packing->sequence_axis()];
  if (length > proof_->packing->longest()) return false;
  const bool whole = program_->tail != nullptr || packs_whole_requests();
  return !whole || shape.rows <= MaxPackedRows(length);
}

const std::vector<ModelIo>& Model::outputs() const {
  return program_->tail == nullptr ? signature_->recipe_outputs : program_->tail->outputs();
}

bool Model::MovesWithBatch(size_t position, size_t dim) const {
  return batches_requests() && !proof_->output_shapes.empty() &&
         dim < proof_->output_shapes[position].dims.size() &&
         proof_->output_shapes[position].dims[dim].MovesWith(signature_->batch_axis);
}

int Model::BatchDimOf(size_t position) const {
  if (!batches_requests() || proof_->output_shapes.empty()) return -1;
  const std::vector<AffineDim>& dims = proof_->output_shapes[position].dims;
  for (size_t d = 0; d < dims.size(); ++d) {
    if (dims[d].IsAxis(signature_->batch_axis)) return static_cast<int>(d);
  }
  return -1;
}

int64_t Model::parameter_bytes() const { return program_->owner->parameters().leaf_bytes(); }

const std::string& Model::LabelOf(const std::string& symbol) const {
  for (const ModelAxis& axis : proof_->axes) {
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
    return proof_->packing->KeyAt(target.packed_sizes(), program_->device_fingerprint,
                                  key_policy());
  }
  Binding binding;
  binding.axes = shape.override_sizes;
  for (size_t i = 0; i < proof_->axes.size(); ++i)
    binding.axes[proof_->axes[i].symbol] = target.sizes[i];
  binding.shape_inputs = shape.shape_inputs;
  return MakeKey(variant == nullptr ? program_->fingerprint : variant->fingerprint,
                 std::move(binding), program_->device_fingerprint, key_policy());
}

KeyPolicy Model::key_policy() const {
  return {.precision = options_.precision,
          .by_node = program_->nodes == nullptr ? "" : program_->nodes->digest(),
          .fusion = options_.fusion};
}

CompileOptions Model::CompileOptionsFor(const RecipeKey& key, const EngineOptions& options) const {
  return {.device = options.device,
          .clock = options.clock,
          .passes = {.disabled = options_.fusion ? std::vector<std::string>() : FusionPassNames()},
          .nodes = program_->nodes.get(),
          .batch_symbol = key.packing == kPacked ? kTokensAxis : batch_symbol_,
          .segments_symbol = key.packing == kPacked ? kSegmentsAxis : "",
          .choices = options_.fusion ? options.choices : nullptr,
          .debug = options.debug,
          .hold_second =
              [parameters = &program_->owner->parameters()](const ParameterExpr& expression) {
                return parameters->HoldSecond(expression);
              },
          .holds = [parameters = &program_->owner->parameters()](
                       const ParameterExpr& expression) { return parameters->Holds(expression); }};
}

absl::StatusOr<std::unique_ptr<Recipe>> Model::CompileAt(
    const RecipeKey& key, const ModelVariant* variant, const EngineOptions& options,
    CompiledPlan* plan, std::function<absl::Status()> go_on) const {
  CompileOptions compile = CompileOptionsFor(key, options);
  compile.plan = plan;
  compile.go_on = std::move(go_on);
  const Graph& graph = variant != nullptr       ? variant->graph
                       : key.packing == kPacked ? packing()->graph()
                                                : program_->graph;
  const int64_t most = options_.max_request_bytes;
  if (key.binding.shape_inputs.empty() || most == 0) return Compile(graph, key, compile);
  // Values of a request decide sizes: each is known, and refused, before anything is made of it.
  compile.specialize.max_value_bytes = std::min(compile.specialize.max_value_bytes, most);
  auto recipe = Compile(graph, key, compile);
  if (!absl::IsResourceExhausted(recipe.status())) return recipe;
  return WithMessage(recipe.status(),
                     absl::StrCat(recipe.status().message(), " (see reprise.max_request_mb)"));
}

absl::StatusOr<std::unique_ptr<Recipe>> Model::RebindAt(const CompiledPlan& plan,
                                                        const RecipeKey& key,
                                                        const EngineOptions& options,
                                                        const ModelVariant* variant) const {
  if (variant != nullptr) {
    return Rebind(plan, variant->graph, key, CompileOptionsFor(key, options));
  }
  return Rebind(plan, key.packing == kPacked ? proof_->packing->graph() : program_->graph, key,
                CompileOptionsFor(key, options));
}

namespace {

// The launch of `recipe` with the largest result, and that one's bytes: "node 'z' makes 8 bytes".
std::string LargestResult(const Recipe& recipe) {
  const Launch* largest = nullptr;
  uint64_t most = 0;
  for (size_t i = 0; i < recipe.launches.size(); ++i) {
    for (const OperandNote& note : recipe.operand_notes[i]) {
      if (note.role != OperandNote::Role::kOutput || note.bytes < most) continue;
      most = note.bytes;
      largest = &recipe.launches[i];
    }
  }
  return largest == nullptr ? "" : absl::StrCat(", of which ", largest->node, " makes ", most);
}

}  // namespace

absl::Status Model::CheckArena(const Recipe& recipe) const {
  const int64_t asked = options_.max_request_bytes;
  if (asked > 0 && !recipe.key.binding.shape_inputs.empty() &&
      static_cast<int64_t>(recipe.frame_bytes()) > asked) {
    return absl::ResourceExhaustedError(
        absl::StrCat("model '", id().name, "': a request with ", BindingText(recipe.key.binding),
                     " asks for ", recipe.frame_bytes(), " bytes", LargestResult(recipe),
                     "; the limit is ", asked, " (reprise.max_request_mb)"));
  }
  const int64_t most = options_.max_arena_bytes;
  if (most <= 0 || static_cast<int64_t>(recipe.frame_bytes()) <= most) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("model '", id().name, "' needs ", recipe.frame_bytes(), " bytes of arena at ",
                   BindingText(recipe.key.binding), "; reprise.max_arena_mb allows ", most,
                   " (a smaller reprise.max_batch_tokens makes smaller replays)"));
}

bool Model::BeyondProof(const std::vector<int64_t>& sizes) const {
  for (size_t i = 0; i < proof_->axes.size(); ++i) {
    const int64_t proved = padding_.proved_to(i);
    if (proved == PaddingProgress::kAnySize || !proof_->certified.contains(proof_->axes[i].label))
      continue;
    if (buckets()->Fit(proof_->axes[i].label, sizes[i]).value_or(sizes[i]) > proved) return true;
  }
  return false;
}

std::set<std::string> Model::Paddable() const {
  std::set<std::string> symbols = paddable_;
  for (size_t i = 0; i < proof_->axes.size(); ++i) {
    if (padding_.proved_to(i) != PaddingProgress::kAnySize) symbols.erase(proof_->axes[i].symbol);
  }
  return symbols;
}

AxisCertificate Model::CertificateOf(size_t axis) const {
  const std::shared_ptr<const AxisCertificate> finished = padding_.Finished(axis);
  return finished == nullptr ? proof_->axes[axis].certificate : *finished;
}

std::optional<RequestShape> Model::MeasureAgain(const RequestShape& shape) const {
  if (shape.exact && !shape.unproved && !shape.in_new_slice) return std::nullopt;
  RequestShape now;  // what HoldBack looks at: most requests need no copy of the rest
  if (proof_->slices == nullptr) {
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
  if (proof_->slices != nullptr && !Packs(shape)) {
    const SizeSlices::State state = proof_->slices->Find(shape.sizes);
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
  return std::find_if(signature_->inputs.begin(), signature_->inputs.end(), has_axis)->name;
}

bool Model::MasksAllowPadding(const Request& request) const {
  for (const ModelAxis& axis : proof_->axes) {
    const AxisCertificate& certificate = axis.certificate;
    int hiding = 0;  // how many hide, of those that do so together
    for (size_t i = 0; i < signature_->inputs.size(); ++i) {
      const ModelIo& input = signature_->inputs[i];
      const auto counts = certificate.must_count.find(input.name);
      const auto together = certificate.together.find(input.name);
      const bool counted = counts != certificate.must_count.end();
      const bool guards = counted || absl::c_linear_search(certificate.guards, input.name);
      if (!guards && together == certificate.together.end()) continue;
      const auto dims = input_sizes_.DimsAlong(i, axis.symbol);
      if (dims.empty()) continue;
      const auto known_fill = options_.fills.find(input.name);
      const double fill = known_fill == options_.fills.end() ? 0 : known_fill->second;
      const InputTensor& tensor = request.inputs[i];
      const bool is_mask = IsFloating(input.dtype) ? counted : signature_->mask_inputs.contains(i);
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

absl::Status Model::LookAtFiles() const { return program_->owner->parameters().LookAtFiles(); }

bool Model::packs_any_mask() const {
  if (proof_->packing == nullptr || !proof_->packing->takes_any_mask()) return false;
  return std::all_of(proof_->axes.begin(), proof_->axes.end(), [&](const ModelAxis& axis) {
    if (axis.is_batch && axis.certificate.asks_of_masks()) return false;
    return axis.certificate.proved || packs_whole_requests() || proof_->any_mask_measured;
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
      if (signature_->inputs[i].parameter < 0) {
        result.overrides.push_back(i);
        result.exact = true;
      }
    }
    const absl::StatusOr<int64_t> counted = CheckedNumElements(tensor.shape);
    if (!counted.ok()) {
      return WithMessage(counted.status(), absl::StrCat("input '", signature_->inputs[i].name,
                                                        "': ", counted.status().message()));
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
    return absl::ResourceExhaustedError(
        absl::StrCat("input '", signature_->inputs[emptiest].name, "' of shape ",
                     ShapeToString(request.inputs[emptiest].shape), " has ", empty_places,
                     " rows or positions and no element; a request of ", result.bytes,
                     " bytes may have ", std::max(result.bytes, kMostEmptyPlaces)));
  }
  return shapes;
}

void Model::TakeOwnValue(const ModelIo& input, const InputTensor& tensor, RequestShape& result) {
  // One of a wrong shape is refused behind this.
  const int64_t elements = CheckedNumElements(tensor.shape).value_or(0);
  if (elements > kMostOwnElements) return;
  // A copy: the client's bytes need not be aligned.
  Tensor value = Tensor::Make(input.dtype, tensor.shape, [&](void* data) {
    const size_t bytes = elements * DTypeSize(input.dtype);
    if (bytes > 0) std::memcpy(data, tensor.data, bytes);
  });
  result.own_values.push_back({.parameter = input.parameter, .value = std::move(value)});
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
  } else if (proof_->certified.contains(axis.label)) {
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
  // More than what was sent can have: Measure refuses them.
  if (rows > sent) return;
  for (const size_t i : signature_->one_row_inputs) {
    InputTensor& input = request.inputs[i];
    if (rows == 1 || input.data == nullptr || input.shape.empty() || input.shape[0] != 1) continue;
    const absl::StatusOr<int64_t> elements = CheckedNumElements(input.shape);
    if (!elements.ok() || *elements > kMostSpreadBytes) continue;
    const auto bytes = static_cast<size_t>(*elements * DTypeSize(signature_->inputs[i].dtype));
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
  ASSIGN_OR_RETURN(const auto sizes, input_sizes_.Match(shapes));
  if (!result.overrides.empty()) result.override_sizes = sizes;
  for (const ModelAxis& axis : proof_->axes) {
    RETURN_IF_ERROR(TakeSize(axis, sizes.at(axis.symbol), result));
  }
  result.tokens = signature_->measure.Elements(result.sizes);
  if (result.tokens > kMostElements) {
    const auto axis_text = [&](std::string* out, const ModelAxis& axis) {
      absl::StrAppend(out, axis.label, " ", sizes.at(axis.symbol));
    };
    return absl::ResourceExhaustedError(absl::StrCat("the request's sizes are too large: ",
                                                     absl::StrJoin(proof_->axes, ", ", axis_text)));
  }
  for (int position :
       result.overrides.empty() ? signature_->shape_inputs : program_->variants->shape_inputs()) {
    RETURN_IF_ERROR(TakeShapeInput(signature_->inputs[position], request.inputs[position], result));
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
