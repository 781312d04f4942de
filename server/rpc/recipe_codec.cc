#include "server/rpc/recipe_codec.h"

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "runtime/graph/dtype.h"
#include "runtime/graph/graph.h"
#include "runtime/graph/parameter_expr.h"

namespace reprise {
namespace {

namespace pb = reprise::recipe::v1;

pb::Space EncodeSpace(Space space) {
  switch (space) {
    case Space::kArena:
      return pb::SPACE_ARENA;
    case Space::kParameter:
      return pb::SPACE_PARAMETER;
    case Space::kConstant:
      return pb::SPACE_CONSTANT;
    case Space::kInput:
      return pb::SPACE_INPUT;
    case Space::kOutput:
      return pb::SPACE_OUTPUT;
    case Space::kNone:
      break;
  }
  return pb::SPACE_UNSPECIFIED;
}

void EncodeOperand(const Recipe& recipe, const Operand& operand, pb::Operand& message) {
  message.set_space(EncodeSpace(operand.space));
  message.set_offset(recipe.OffsetOf(operand));
}

void EncodeSlot(const TensorSlot& slot, pb::Space space, pb::Slot& message) {
  message.set_name(slot.name);
  pb::Operand& operand = *message.mutable_operand();
  operand.set_space(space);
  operand.set_offset(slot.offset);
  operand.set_bytes(slot.bytes);
  operand.set_dtype(std::string(DTypeName(slot.dtype)));
  for (const int64_t dim : slot.shape) operand.add_shape(dim);
}

void EncodeLaunch(const Recipe& recipe, size_t index, pb::Launch& message) {
  const Launch& launch = recipe.launches[index];
  const std::vector<OperandNote>& notes = recipe.operand_notes[index];
  message.set_kernel(launch.kernel);
  message.set_node(launch.node);
  message.set_detail(launch.detail);
  message.set_foreign(launch.foreign);
  message.set_flops(launch.work.flops);
  message.set_bytes(launch.work.bytes);
  for (size_t i = 0; i < launch.operands.size(); ++i) {
    pb::Operand* operand = nullptr;
    switch (notes[i].role) {
      case OperandNote::Role::kInput:
        operand = message.add_inputs();
        break;
      case OperandNote::Role::kOutput:
        operand = message.add_outputs();
        break;
      case OperandNote::Role::kWorkspace:
        operand = message.mutable_workspace();
        break;
    }
    EncodeOperand(recipe, launch.operands[i], *operand);
    operand->set_bytes(notes[i].bytes);
    if (notes[i].dtype != DType::kUndefined) {
      operand->set_dtype(std::string(DTypeName(notes[i].dtype)));
    }
  }
}

void EncodeParameter(const ParameterExpr& expression, size_t slot, pb::Parameter& message) {
  message.set_expression(expression.text());
  pb::Operand& result = *message.mutable_result();
  result.set_space(pb::SPACE_PARAMETER);
  result.set_offset(slot);
  result.set_bytes(NumElements(expression.shape()) * DTypeSize(expression.dtype()));
  result.set_dtype(std::string(DTypeName(expression.dtype())));
  for (const int64_t dim : expression.shape()) result.add_shape(dim);
}

void EncodeKey(const RecipeKey& key, pb::Key& message) {
  message.set_hash(key.hash);
  message.set_graph(absl::StrCat(absl::Hex(key.graph.hash, absl::kZeroPad16)));
  for (const auto& [axis, size] : key.binding.axes) {
    pb::AxisSize& binding = *message.add_binding();
    binding.set_axis(axis);
    binding.set_size(size);
  }
  for (const auto& [input, tensor] : key.binding.shape_inputs) {
    pb::ShapeValue& value = *message.add_shape_values();
    value.set_input(input);
    if (const auto integers = tensor.ToInt64s(); integers.ok()) {
      value.mutable_values()->Add(integers->begin(), integers->end());
    } else {
      const std::vector<double> numbers = tensor.ToDoubles();
      value.mutable_numbers()->Add(numbers.begin(), numbers.end());
    }
  }
  message.set_packing(key.packing);
  message.set_precision(key.precision);
  message.set_device(key.device);
  message.set_compiler(absl::StrCat(key.compiler_version));
}

}  // namespace

google::protobuf::Timestamp EncodeTime(std::chrono::system_clock::time_point time) {
  const int64_t ns =
      std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
  google::protobuf::Timestamp message;
  message.set_seconds(ns / 1'000'000'000);
  message.set_nanos(static_cast<int32_t>(ns % 1'000'000'000));
  return message;
}

void EncodeRecipeInfo(const CachedRecipe& cached, v1::RecipeInfo& message) {
  const Recipe& recipe = *cached.recipe;
  message.set_key(recipe.key.hex());
  message.set_model(recipe.note.model);
  message.set_version(absl::StrCat(recipe.note.version));
  message.set_bucket(recipe.note.bucket);
  message.set_binding(recipe.note.binding);
  message.set_launches(static_cast<uint32_t>(recipe.launches.size()));
  message.set_arena_bytes(recipe.arena_bytes);
  message.set_bytes(static_cast<uint64_t>(recipe.memory_bytes()));
  message.set_replays(static_cast<uint64_t>(cached.replays));
  message.set_capture_ms(static_cast<double>(recipe.note.total_ns) / 1e6);
  message.set_reason(recipe.note.reason);
  message.set_tuned(!recipe.note.tuning.empty());
  message.set_tuning(recipe.note.tuning);
  message.set_precision(recipe.key.precision);
  *message.mutable_created() = EncodeTime(cached.created);
  *message.mutable_last_used() = EncodeTime(cached.last_used);
}

void EncodeRecipe(const Recipe& recipe, bool include_constants, pb::Recipe& message) {
  EncodeKey(recipe.key, *message.mutable_key());
  message.set_bucket(recipe.note.bucket);
  message.mutable_arena()->set_bytes(recipe.arena_bytes);
  message.mutable_arena()->set_alignment(kAlignment);
  for (const TensorSlot& slot : recipe.inputs) {
    EncodeSlot(slot, pb::SPACE_INPUT, *message.add_inputs());
  }
  for (const TensorSlot& slot : recipe.outputs) {
    EncodeSlot(slot, pb::SPACE_OUTPUT, *message.add_outputs());
  }
  for (size_t i = 0; i < recipe.parameters.size(); ++i) {
    EncodeParameter(*recipe.parameters[i], i, *message.add_parameters());
  }
  if (recipe.constants.size() > 0) {
    pb::Constant& constants = *message.add_constants();
    constants.set_name("constants");
    constants.mutable_operand()->set_space(pb::SPACE_CONSTANT);
    constants.mutable_operand()->set_bytes(recipe.constants.size());
    if (include_constants) {
      constants.set_data(recipe.constants.data(), recipe.constants.size());
    }
  }
  for (size_t i = 0; i < recipe.launches.size(); ++i) {
    EncodeLaunch(recipe, i, *message.add_launches());
  }
}

}  // namespace reprise
