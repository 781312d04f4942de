#include "runtime/generate/encoder_decoder.h"

#include <cstring>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "runtime/graph/graph.h"
#include "runtime/onnx/importer.h"
#include "runtime/ops/control/control_op.h"
#include "runtime/ops/movement/concat_op.h"
#include "runtime/ops/movement/shape_op.h"
#include "runtime/ops/movement/slice_op.h"
#include "runtime/passes/kit/branches.h"
#include "runtime/passes/paged/decoder.h"

namespace reprise {
namespace {

namespace fs = std::filesystem;

constexpr absl::string_view kEncoder = "encoder_model", kEnding = ".onnx";

// Sets a flag that says whether caches are read to false, and chooses the branches that depend on
// it.
void ReadNoCaches(Graph& graph) {
  const std::vector<ValueId> inputs = graph.inputs();
  for (const ValueId id : inputs) {
    const Value& input = graph.value(id);
    if (input.dtype != DType::kBool) continue;
    const Shape shape(input.dims.size(), 1);
    graph.ReplaceWithConstant(id, Tensor::Make(DType::kBool, shape, [](void* data) {
                                *static_cast<bool*>(data) = false;
                              }));
  }
  for (const NodeId id : graph.NodeIds()) {
    if (graph.node(id).op != IfOp::kName) continue;
    const Tensor* condition = KnownCondition(graph, id);
    if (condition != nullptr) TakeBranch(graph, id, *static_cast<const bool*>(condition->data()));
  }
}

// Returns the values whose elements decide the outputs; those that are read for their sizes alone
// are not among them.
absl::flat_hash_set<ValueId> ReadByElements(const Graph& graph) {
  absl::flat_hash_set<ValueId> read;
  std::vector<ValueId> left = graph.outputs();
  while (!left.empty()) {
    const ValueId id = left.back();
    left.pop_back();
    if (id == kNone || !read.insert(id).second) continue;
    const NodeId producer = graph.value(id).producer;
    if (producer == kNone || graph.node(producer).op == ShapeOp::kName) continue;
    const std::vector<ValueId>& inputs = graph.node(producer).inputs;
    left.insert(left.end(), inputs.begin(), inputs.end());
  }
  return read;
}

// Returns zeros [rows of `states`, 1].
ValueId ZerosFor(Graph& graph, ValueId states, DType dtype) {
  const auto add = [&](absl::string_view op, std::vector<ValueId> inputs,
                       Attributes attributes = {}) {
    return graph.node(graph.AddNode(op, std::move(inputs), std::move(attributes))).outputs[0];
  };
  const auto number = [&](int64_t value) { return graph.AddConstant("", Tensor::Int64s({value})); };
  const ValueId rows = add(SliceOp::kName, {add(ShapeOp::kName, {states}), number(0), number(1)});
  const ValueId sizes = add(ConcatOp::kName, {rows, number(1)}, {{"axis", int64_t{0}}});
  const Tensor zero = Tensor::Make(
      dtype, {1}, [&](void* data) { std::memset(data, 0, static_cast<size_t>(DTypeSize(dtype))); });
  return add(ConstantOfShapeOp::kName, {sizes}, {{"value", zero}});
}

// Exports of transformers from 4.48 on take the number of rows of these caches off the decoder's
// own states: its ids are read for their sizes alone. Zeros of as many rows as the encoder's result
// has stand for them, so that the caches are made of that result alone.
void TakeRowsOfEncoder(ImportedModel& model) {
  Graph& graph = model.graph;
  const absl::flat_hash_set<ValueId> read = ReadByElements(graph);
  ValueId states = kNone;
  std::vector<ValueId> ids;
  for (const ValueId id : graph.inputs()) {
    const Value& input = graph.value(id);
    if (read.contains(id)) {
      if (states != kNone) return;
      states = id;
    } else if (input.dims.size() == 2 &&
               (input.dtype == DType::kInt64 || input.dtype == DType::kInt32)) {
      ids.push_back(id);
    }
  }
  if (states == kNone || graph.value(states).dims.size() != 3) return;
  for (const ValueId id : ids) {
    if (graph.value(id).users.empty()) continue;
    graph.ReplaceAllUses(id, ZerosFor(graph, states, graph.value(id).dtype));
  }
}

// Leaves the outputs that are caches of the encoder's result, and the inputs that these read.
absl::Status KeepCrossCaches(ImportedModel& model) {
  Graph& graph = model.graph;
  ReadNoCaches(graph);
  const std::vector<ValueId> values = graph.outputs();
  std::vector<ModelIo> outputs;
  graph.ClearOutputs();
  for (size_t i = 0; i < values.size(); ++i) {
    if (!IsCrossName(model.outputs[i].name)) continue;
    graph.AddOutput(values[i]);
    outputs.push_back(std::move(model.outputs[i]));
  }
  model.outputs = std::move(outputs);
  if (model.outputs.empty()) {
    return absl::UnimplementedError("no output holds keys and values of the encoder's result");
  }
  if (!graph.Compact()) return absl::InternalError("the graph of its caches has a cycle");
  TakeRowsOfEncoder(model);
  std::erase_if(model.inputs, [&](const ModelIo& input) {
    const ValueId id = graph.FindValue(input.name);
    if (id == kNone) return true;
    if (!graph.value(id).users.empty() || graph.IsOutput(id)) return false;
    if (graph.value(id).kind == Value::Kind::kInput) {
      graph.ReplaceWithConstant(id, Tensor::Make(graph.value(id).dtype, {0}, [](void*) {}));
    }
    return true;
  });
  if (!graph.Compact()) return absl::InternalError("the graph of its caches has a cycle");
  return absl::OkStatus();
}

// Returns the options that both have of the encoder.
ModelOptions OptionsOf(const ModelOptions& encoder, absl::string_view part, std::string path) {
  return {.id = {.name = absl::StrCat(encoder.id.name, ":", part), .version = encoder.id.version},
          .path = std::move(path),
          .max_batch_tokens = encoder.max_batch_tokens,
          .max_exact = encoder.max_exact,
          .max_recipe_bytes = encoder.max_recipe_bytes,
          .max_arena_bytes = encoder.max_arena_bytes,
          .max_parameter_bytes = encoder.max_parameter_bytes,
          .max_request_ns = encoder.max_request_ns,
          .max_request_bytes = encoder.max_request_bytes,
          .precision = encoder.precision,
          .precision_goal = encoder.precision_goal,
          .fusion = encoder.fusion,
          .one_order = encoder.one_order,
          .tune = TuneMode::kOff};
}

}  // namespace

std::optional<EncoderDecoderFiles> FindEncoderDecoder(const fs::path& encoder) {
  const std::string name = encoder.filename().string();
  if (!absl::StartsWith(name, kEncoder) || !absl::EndsWith(name, kEnding)) return std::nullopt;
  const std::string suffix =
      name.substr(kEncoder.size(), name.size() - kEncoder.size() - kEnding.size());
  const auto beside = [&](absl::string_view stem) {
    return (encoder.parent_path() / absl::StrCat(stem, suffix, kEnding)).string();
  };
  const auto exists = [](const std::string& path) {
    std::error_code error;
    return fs::exists(path, error);
  };
  const std::string merged = beside("decoder_model_merged"), first = beside("decoder_model"),
                    next = beside("decoder_with_past_model");
  if (exists(merged)) return EncoderDecoderFiles{encoder.string(), merged, merged};
  if (exists(first) && exists(next)) return EncoderDecoderFiles{encoder.string(), next, first};
  return std::nullopt;
}

absl::StatusOr<std::shared_ptr<Model>> LoadDecoder(Engine& engine, const EncoderDecoderFiles& files,
                                                   const ModelOptions& encoder) {
  return engine.Load(OptionsOf(encoder, "decoder", files.decoder));
}

absl::StatusOr<std::shared_ptr<Model>> LoadCrossModel(Engine& engine,
                                                      const EncoderDecoderFiles& files,
                                                      const ModelOptions& encoder) {
  ModelOptions options = OptionsOf(encoder, "cross", files.cross);
  options.extend = KeepCrossCaches;
  return engine.Load(std::move(options));
}

}  // namespace reprise
