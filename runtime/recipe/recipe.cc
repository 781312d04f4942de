#include "runtime/recipe/recipe.h"

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/format_text.h"
#include "runtime/graph/parameter_expr.h"

namespace reprise {
namespace {

// Returns "arena[4096+98304]": space, offset, bytes; a parameter has its slot instead of an offset.
std::string OperandText(const Recipe& recipe, const Operand& operand, const OperandNote& note) {
  if (operand.space == Space::kNone) return "_";
  return absl::StrCat(SpaceName(operand.space), "[", recipe.OffsetOf(operand),
                      operand.space == Space::kParameter ? "," : "+", note.bytes, "]");
}

std::string OperandsText(const Recipe& recipe, const std::vector<Operand>& operands,
                         const std::vector<OperandNote>& notes) {
  std::string text;
  for (size_t i = 0; i < operands.size(); ++i) {
    const bool first_output = notes[i].role != OperandNote::Role::kInput &&
                              (i == 0 || notes[i - 1].role == OperandNote::Role::kInput);
    absl::StrAppend(&text, first_output ? " -> " : (i > 0 ? ", " : ""),
                    OperandText(recipe, operands[i], notes[i]));
  }
  return text;
}

void AppendSlots(std::string& text, absl::string_view title, const std::vector<TensorSlot>& slots) {
  for (const TensorSlot& slot : slots) {
    AppendText(&text, "%s %s: %s%s at %d, %d bytes\n", title, slot.name, DTypeName(slot.dtype),
               ShapeToString(slot.shape), slot.offset, slot.bytes);
  }
}

}  // namespace

int64_t Recipe::memory_bytes() const {
  // Parameter blocks are opaque; kernels use up to four cache lines.
  constexpr int64_t kParamsBytes = 256;
  int64_t bytes = sizeof(Recipe) + constants.size();
  for (const Launch& launch : launches) {
    bytes += sizeof(Launch) +
             launch.operands.size() * (sizeof(Operand) + sizeof(int) + sizeof(OperandNote)) +
             launch.kernel.size() + launch.node.size() + launch.detail.size() + kParamsBytes;
  }
  bytes += parameters.size() * sizeof(ParameterExprPtr);
  bytes += phased_steps.size() * sizeof(RecipeStep);
  return bytes;
}

void Recipe::SetSteps() {
  phased_steps.clear();
  has_long_launches = absl::c_any_of(launches, MayTakeLong);
  if (absl::c_all_of(launches, [](const Launch& launch) { return launch.phases == 1; })) return;
  for (int i = 0; i < static_cast<int>(launches.size()); ++i) {
    for (int phase = 0; phase < launches[static_cast<size_t>(i)].phases; ++phase) {
      phased_steps.push_back({.launch = i, .phase = phase});
    }
  }
}

std::string Recipe::Dump() const {
  std::string text = FormatText("recipe %s\nbinding %s\n", key.hex(), key.binding.ToString());
  AppendText(&text, "bytes: inputs %d, outputs %d, arena %d, constants %d\n", input_bytes,
             output_bytes, arena_bytes, constants.size());
  AppendSlots(text, "input", inputs);
  AppendSlots(text, "output", outputs);
  for (size_t i = 0; i < launches.size(); ++i) {
    const Launch& launch = launches[i];
    AppendText(&text, "%4d %-24s %-48s (%s)%s%s\n", i, launch.kernel, launch.detail,
               OperandsText(*this, launch.operands, operand_notes[i]),
               launch.reference ? " reference" : "", launch.foreign ? " foreign" : "");
  }
  for (size_t i = 0; i < parameters.size(); ++i) {
    AppendText(&text, "parameter[%d] %s%s = %s\n", i, DTypeName(parameters[i]->dtype()),
               ShapeToString(parameters[i]->shape()), parameters[i]->text());
  }
  return text;
}

}  // namespace reprise
