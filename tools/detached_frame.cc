#include "tools/detached_frame.h"

#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/engine/packing/packed_frame.h"
#include "runtime/engine/packing/packing.h"
#include "runtime/graph/graph.h"
#include "runtime/graph/text.h"
#include "runtime/onnx/importer.h"
#include "runtime/recipe/record_facts.h"
#include "runtime/recipe/stored_recipe.h"

namespace reprise::cli {
namespace {

// A recipe's file holds no weights and is far smaller than this.
constexpr int64_t kMostFrameBytes = int64_t{1} << 30;

using Leaves = std::map<int, const ParameterExpr*>;  // keyed by index

void FindLeaves(const ParameterExpr& expression, Leaves& leaves) {
  if (expression.is_leaf()) leaves[expression.index()] = &expression;
  for (const ParameterExprPtr& input : expression.inputs()) {
    if (input != nullptr) FindLeaves(*input, leaves);
  }
}

// Numbers that every floating-point type holds exactly, between -1/4 and 1/4.
double SmallNumber(std::mt19937_64& random) {
  return (static_cast<double>(random() % 33) - 16) / 64;
}

// `count` elements of `dtype` at `data`: small numbers, or bytes of any value.
void FillSmall(DType dtype, int64_t count, std::mt19937_64& random, void* data) {
  for (int64_t i = 0; i < count; ++i) {
    switch (dtype) {
      case DType::kFloat32:
        static_cast<float*>(data)[i] = static_cast<float>(SmallNumber(random));
        break;
      case DType::kFloat64:
        static_cast<double*>(data)[i] = SmallNumber(random);
        break;
      case DType::kFloat16:
        static_cast<uint16_t*>(data)[i] = FloatToHalf(static_cast<float>(SmallNumber(random)));
        break;
      case DType::kBFloat16:
        static_cast<uint16_t*>(data)[i] = FloatToBFloat16(static_cast<float>(SmallNumber(random)));
        break;
      case DType::kInt8:
      case DType::kUInt8:
        static_cast<uint8_t*>(data)[i] = static_cast<uint8_t>(random());
        break;
      default:  // Zero is in range wherever an integer is an index.
        std::memset(static_cast<std::byte*>(data) + i * DTypeSize(dtype), 0, DTypeSize(dtype));
    }
  }
}

std::vector<Tensor> MakeUpWeights(const Leaves& leaves) {
  std::mt19937_64 random(1);
  std::vector<Tensor> weights(leaves.empty() ? 0 : leaves.rbegin()->first + 1);
  for (const auto& [index, leaf] : leaves) {
    weights[static_cast<size_t>(index)] =
        Tensor::Make(leaf->dtype(), leaf->shape(), [&, leaf = leaf](void* data) {
          FillSmall(leaf->dtype(), NumElements(leaf->shape()), random, data);
        });
  }
  return weights;
}

// INVALID_ARGUMENT unless `weights`, read from the model at `path`, have all of `leaves`.
absl::Status CheckWeights(const std::vector<Tensor>& weights, const Leaves& leaves,
                          const std::string& path) {
  for (const auto& [index, leaf] : leaves) {
    const auto i = static_cast<size_t>(index);
    if (i < weights.size() && weights[i].dtype() == leaf->dtype() &&
        weights[i].shape() == leaf->shape()) {
      continue;
    }
    const std::string there =
        i < weights.size()
            ? absl::StrCat("is ", DTypeName(weights[i].dtype()), ShapeToString(weights[i].shape()))
            : absl::StrCat("does not exist, of ", weights.size());
    return absl::InvalidArgumentError(absl::StrCat(
        "the recipe is not of the model '", path, "': it needs parameter ", index, " as ",
        DTypeName(leaf->dtype()), ShapeToString(leaf->shape()), ", which ", there, " there"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<const ParameterTable>> TableOf(
    const std::shared_ptr<const Recipe>& recipe, const std::string& path, const Device& device) {
  Leaves leaves;
  for (const ParameterExprPtr& expression : recipe->parameters) FindLeaves(*expression, leaves);
  if (path.empty()) {
    return ParameterStore(MakeUpWeights(leaves), {.device = &device}).TableFor(recipe);
  }
  ASSIGN_OR_RETURN(ImportedModel model, ImportOnnxFile(path));
  RETURN_IF_ERROR(CheckWeights(model.parameters, leaves, path));
  return ParameterStore(std::move(model.parameters), {.device = &device}).TableFor(recipe);
}

// Returns the recipe's inputs: ones where a mask is expected, ids that any table has, small floats.
std::vector<std::vector<std::byte>> MakeUpInputs(const Recipe& recipe) {
  std::mt19937_64 random(2);
  std::vector<std::vector<std::byte>> inputs;
  for (const TensorSlot& slot : recipe.inputs) {
    std::vector<std::byte>& bytes = inputs.emplace_back(slot.bytes);
    if (IsFloating(slot.dtype)) {
      FillSmall(slot.dtype, NumElements(slot.shape), random, bytes.data());
    }
    const bool is_mask = absl::StrContains(slot.name, "mask") || slot.dtype == DType::kBool;
    if (IsFloating(slot.dtype) || !is_mask) continue;
    for (size_t i = 0; i < bytes.size(); i += DTypeSize(slot.dtype)) bytes[i] = std::byte{1};
  }
  return inputs;
}

void FillInputs(const Recipe& recipe, Stream& stream, Frame& frame) {
  const std::vector<std::vector<std::byte>> inputs = MakeUpInputs(recipe);
  if (recipe.key.packing != kPacked) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i].empty()) continue;
      std::memcpy(stream.inputs() + recipe.inputs[i].offset, inputs[i].data(), inputs[i].size());
    }
    return;
  }
  // The frame is filled with rows of one length.
  const PackedSizes room = PackedSizesOf(recipe.key);
  const int64_t length = room.tokens / room.segments;
  Request request;
  std::vector<int> positions;
  for (size_t i = 0; i < inputs.size() && recipe.inputs[i].name != kPositionsInput; ++i) {
    request.inputs.push_back({.shape = recipe.inputs[i].shape, .data = inputs[i].data()});
    positions.push_back(static_cast<int>(i));
  }
  const PackedPart part = {.request = &request, .rows = room.segments, .length = length};
  GatherPacked(recipe, positions, {&part, 1}, std::nullopt, stream.inputs());
  frame.live_rows = room.segments * length;
  frame.live_segments = room.segments;
}

// Returns the axis that is dim 0 of every input that has dims, by its size: a record does not
// name it. Empty where no axis is, or more than one may be.
std::string BatchSymbolOf(const Graph& graph, const Binding& binding) {
  std::string found;
  for (const auto& [symbol, size] : binding.axes) {
    const bool leads = absl::c_all_of(graph.inputs(), [&, size = size](ValueId input) {
      const std::optional<Shape>& shape = graph.value(input).shape;
      return !shape.has_value() || shape->empty() || shape->front() == size;
    });
    if (!leads) continue;
    if (!found.empty()) return "";
    found = symbol;
  }
  return found;
}

absl::StatusOr<std::shared_ptr<const Recipe>> BindDetached(DetachedRecipe detached,
                                                           const Device& device,
                                                           const Clock& clock) {
  ASSIGN_OR_RETURN(const Graph graph, Parse(detached.plan.graph));
  const bool packed = detached.key.packing == kPacked;
  const CompileOptions options = {
      .device = &device,
      .clock = &clock,
      .batch_symbol = packed ? kTokensAxis : BatchSymbolOf(graph, detached.key.binding),
      .segments_symbol = packed ? kSegmentsAxis : ""};
  return Rebind(detached.plan, graph, std::move(detached.key), options);
}

}  // namespace

absl::StatusOr<DetachedFrame> FillDetached(const std::string& path, const std::string& weights,
                                           const Device& device, const Clock& clock,
                                           Stream& stream) {
  ASSIGN_OR_RETURN(const std::string bytes, ReadWholeFile(path, kMostFrameBytes));
  const auto name = RecordName::Parse(std::filesystem::path(path).filename().string());
  if (!name.has_value() || name->kind != RecordKind::kRecipe) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", path, "' does not have the name of a stored recipe, recipe-….rps"));
  }
  ASSIGN_OR_RETURN(const RecordFacts facts, FactsOf(bytes, *name));
  ASSIGN_OR_RETURN(const Record record, DecodeRecord(bytes));
  ASSIGN_OR_RETURN(DetachedRecipe detached, DetachRecipe(record.payload));
  DetachedFrame result;
  result.origin = absl::StrCat(detached.model, " version ", detached.version, ", ", detached.bucket,
                               " (", detached.binding, ")");
  result.warning = std::string(UsableOn(facts, device.fingerprint()).message());
  FilledFrame& filled = result.filled;
  ASSIGN_OR_RETURN(filled.recipe, BindDetached(std::move(detached), device, clock));
  ASSIGN_OR_RETURN(filled.parameters, TableOf(filled.recipe, weights, device));
  RETURN_IF_ERROR(stream.Reserve(*filled.recipe));
  filled.errors = std::make_unique<FirstDataError>(*filled.recipe);
  filled.frame =
      stream.MakeFrame(*filled.recipe, filled.parameters->addresses(), filled.errors.get());
  FillInputs(*filled.recipe, stream, filled.frame);
  return result;
}

}  // namespace reprise::cli
