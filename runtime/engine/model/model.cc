#include "runtime/engine/model/model.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "runtime/engine/model/tail.h"
#include "runtime/engine/types/engine_options.h"
#include "runtime/graph/graph.h"
#include "runtime/graph/parameter_expr.h"
#include "runtime/graph/rank_error.h"
#include "runtime/passes/pipeline.h"
#include "runtime/recipe/compiler.h"
#include "runtime/verify/size_slices.h"

namespace reprise {

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
      quarantine_(proof_->axes.size()) {
  for (const ModelAxis& axis : proof_->axes) {
    if (proof_->certified.contains(axis.label)) paddable_.insert(axis.symbol);
    if (axis.is_batch) batch_symbol_ = axis.symbol;
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
  // Numbers of rows are not learnt: every set has the same ones.
  const int64_t largest =
      buckets()->Largest(proof_->axes[signature_->batch_axis].label).value_or(1);
  return options_.max_batch_size > 0 ? std::min(options_.max_batch_size, largest) : largest;
}

int64_t Model::MaxRows(const RequestShape& shape) const {
  constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();
  if (!batches_requests() || (shape.exact && !shape.quarantined)) return kNoLimit;
  // Nodes after a cut see all rows of a request at once.
  if (program_->tail != nullptr || packs_whole_requests()) return kNoLimit;
  if (Packs(shape)) return MaxPackedRows(shape.sizes[proof_->packing->sequence_axis()]);
  // The parts would have another number of rows, and that number decides something in the model.
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

bool Model::IsFrozen(const EngineOptions& engine) const {
  return options_.freeze.IsOn(engine.frozen || options_.frozen);
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
  binding.axes = shape.own_sizes;
  for (size_t i = 0; i < proof_->axes.size() && !shape.splits_axes(); ++i) {
    binding.axes[proof_->axes[i].symbol] = target.sizes[i];
  }
  binding.shape_inputs = shape.shape_inputs;
  return MakeKey(variant == nullptr ? program_->fingerprint : variant->fingerprint,
                 std::move(binding), program_->device_fingerprint, key_policy());
}

KeyPolicy Model::key_policy() const {
  return {.precision = options_.precision,
          .weights = options_.weights,
          .by_node = program_->nodes == nullptr ? "" : program_->nodes->digest(),
          .fusion = options_.fusion};
}

const Device& Model::DeviceOf(const EngineOptions& options) const {
  return options_.one_order ? options.device->one_order() : *options.device;
}

CompileOptions Model::CompileOptionsFor(const RecipeKey& key, const EngineOptions& options) const {
  return {.device = &DeviceOf(options),
          .clock = options.clock,
          .passes = {.disabled = options_.fusion ? std::vector<std::string>() : FusionPassNames(),
                     .nodes = program_->nodes.get(),
                     .weights = options_.weights},
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
  const Graph& graph = variant != nullptr       ? *variant->graph
                       : key.packing == kPacked ? packing()->graph()
                                                : *program_->graph;
  const int64_t most = options_.max_request_bytes;
  if (key.binding.shape_inputs.empty() || most == 0) return Compile(graph, key, compile);
  // Values of a request decide sizes: each is known, and refused, before anything is made of it.
  compile.specialize.max_value_bytes = std::min(compile.specialize.max_value_bytes, most);
  auto recipe = Compile(graph, key, compile);
  // It depends on values of the request alone, and these are known: only size or time is in the
  // way.
  if (absl::IsFailedPrecondition(recipe.status())) {
    return absl::InvalidArgumentError(absl::StrCat(
        recipe.status().message(),
        ", and with these values computing that data exceeds the limits before a run"));
  }
  if (!absl::IsResourceExhausted(recipe.status())) return recipe;
  // No later attempt with these values would fit.
  return absl::InvalidArgumentError(
      absl::StrCat(recipe.status().message(), " (see reprise.max_request_mb)"));
}

absl::StatusOr<std::unique_ptr<Recipe>> Model::RebindAt(const CompiledPlan& plan,
                                                        const RecipeKey& key,
                                                        const EngineOptions& options,
                                                        const ModelVariant* variant) const {
  if (variant != nullptr) {
    return Rebind(plan, *variant->graph, key, CompileOptionsFor(key, options));
  }
  return Rebind(plan, key.packing == kPacked ? proof_->packing->graph() : *program_->graph, key,
                CompileOptionsFor(key, options));
}

namespace {

// Returns the launch of `recipe` with the largest result, and its bytes: "node 'z' makes 8 bytes".
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
    return absl::InvalidArgumentError(
        absl::StrCat("model '", id().name, "': a request with ", BindingText(recipe.key.binding),
                     " asks for ", recipe.frame_bytes(), " bytes", LargestResult(recipe),
                     "; the limit is ", asked, " (reprise.max_request_mb)"));
  }
  const int64_t most = options_.max_arena_bytes;
  if (most <= 0 || static_cast<int64_t>(recipe.frame_bytes()) <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("model '", id().name, "' needs ", recipe.frame_bytes(), " bytes of arena at ",
                   BindingText(recipe.key.binding), "; reprise.max_arena_mb allows ", most,
                   " (a smaller reprise.max_batch_tokens makes smaller replays)"));
}

bool Model::IsQuarantined(const std::vector<int64_t>& sizes) const {
  for (size_t i = 0; i < proof_->axes.size(); ++i) {
    if (!quarantine_.Contains(i) || !proof_->certified.contains(proof_->axes[i].label)) continue;
    if (buckets()->Fit(proof_->axes[i].label, sizes[i]).value_or(sizes[i]) > 0) return true;
  }
  return false;
}

std::set<std::string> Model::Paddable() const {
  std::set<std::string> symbols = paddable_;
  for (size_t i = 0; i < proof_->axes.size(); ++i) {
    if (quarantine_.Contains(i)) symbols.erase(proof_->axes[i].symbol);
  }
  return symbols;
}

AxisCertificate Model::CertificateOf(size_t axis) const {
  const std::shared_ptr<const AxisCertificate> taken = quarantine_.CertificateOf(axis);
  return taken == nullptr ? proof_->axes[axis].certificate : *taken;
}

absl::Status Model::LookAtFiles() const { return program_->owner->parameters().LookAtFiles(); }

bool Model::packs_only() const {
  return std::any_of(proof_->axes.begin(), proof_->axes.end(),
                     [](const ModelAxis& axis) { return axis.certificate.only_packed(); });
}

}  // namespace reprise
