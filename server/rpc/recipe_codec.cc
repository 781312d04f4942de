#include "server/rpc/recipe_codec.h"

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "runtime/graph/dtype.h"
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

void EncodeOperand(const Operand& operand, pb::Operand& message) {
  message.set_space(EncodeSpace(operand.space));
  message.set_offset(operand.offset);
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

// The operands of a launch are its inputs, then outputs, then the workspace, without borders
// between them; they are listed in that order.
void EncodeLaunch(const Launch& launch, pb::Launch& message) {
  message.set_kernel(launch.kernel);
  message.set_node(launch.node);
  message.set_foreign(launch.foreign);
  for (const Operand& operand : launch.operands) EncodeOperand(operand, *message.add_inputs());
  pb::Attribute& detail = *message.add_attributes();
  detail.set_name("detail");
  detail.set_text(launch.detail);
  pb::Attribute& work = *message.add_attributes();
  work.set_name("work");
  work.add_floats(launch.flops);
  work.add_floats(launch.bytes);
}

void EncodeKey(const RecipeKey& key, pb::Key& message) {
  message.set_hash(key.hash);
  message.set_graph(absl::StrCat(absl::Hex(key.graph.hash, absl::kZeroPad16)));
  for (const auto& [axis, size] : key.binding.axes) {
    pb::AxisSize& binding = *message.add_binding();
    binding.set_axis(axis);
    binding.set_size(size);
  }
  for (const auto& [input, values] : key.binding.shape_inputs) {
    pb::ShapeValue& value = *message.add_shape_values();
    value.set_input(input);
    value.mutable_values()->Add(values.begin(), values.end());
  }
  message.set_packing(key.packing);
  message.set_precision(key.precision);
  message.set_device(key.device);
  message.set_compiler(absl::StrCat(key.compiler_version));
}

}  // namespace

void EncodeRecipeInfo(const CachedRecipe& cached, v1::RecipeInfo& message) {
  const Recipe& recipe = *cached.recipe;
  message.set_key(recipe.key.hex());
  message.set_model(recipe.note.model);
  message.set_version(absl::StrCat(recipe.note.version));
  message.set_bucket(recipe.note.bucket);
  message.set_binding(recipe.key.binding.ToString());
  message.set_launches(static_cast<uint32_t>(recipe.launches.size()));
  message.set_arena_bytes(recipe.arena_bytes);
  message.set_bytes(static_cast<uint64_t>(recipe.memory_bytes()));
  message.set_replays(static_cast<uint64_t>(cached.replays));
  message.set_capture_ms(static_cast<double>(recipe.note.total_ns) / 1e6);
  message.set_reason(recipe.note.reason);
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
  for (const ParameterExprPtr& expression : recipe.parameters) {
    message.add_parameters()->set_expression(expression->text());
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
  for (const Launch& launch : recipe.launches) EncodeLaunch(launch, *message.add_launches());
}

}  // namespace reprise
