#include "server/hub/two_sides.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "runtime/graph/graph.h"
#include "runtime/onnx/importer.h"

namespace reprise {
namespace {

constexpr const char* kPixels = "pixel_values";
constexpr const char* kPictureVector = "image_embeds";
constexpr const char* kTextVector = "text_embeds";

// Returns the inputs that `value` is computed from.
std::set<ValueId> InputsOf(const Graph& graph, ValueId value) {
  std::set<ValueId> inputs, seen;
  std::vector<ValueId> open = {value};
  while (!open.empty()) {
    const ValueId one = open.back();
    open.pop_back();
    if (one == kNone || !seen.insert(one).second) continue;
    const Value& at = graph.value(one);
    if (at.kind == Value::Kind::kInput) inputs.insert(one);
    if (at.kind != Value::Kind::kResult) continue;
    for (const ValueId input : graph.node(at.producer).inputs) open.push_back(input);
  }
  return inputs;
}

// Returns whether output number `index` needs inputs of that side alone.
bool IsOf(Side side, const ImportedModel& model, size_t index) {
  const std::set<ValueId> inputs = InputsOf(model.graph, model.graph.outputs()[index]);
  const ValueId pixels = model.graph.FindValue(kPixels);
  return side == Side::kPictures ? inputs == std::set<ValueId>{pixels}
                                 : !inputs.empty() && !inputs.contains(pixels);
}

bool HasOutput(Side side, const char* name, const ImportedModel& model) {
  for (size_t i = 0; i < model.outputs.size(); ++i) {
    if (model.outputs[i].name == name) return IsOf(side, model, i);
  }
  return false;
}

}  // namespace

bool HasTwoSides(const ImportedModel& model) {
  return model.graph.FindValue(kPixels) != kNone &&
         HasOutput(Side::kPictures, kPictureVector, model) &&
         HasOutput(Side::kTexts, kTextVector, model);
}

void KeepSide(Side side, ImportedModel& model) {
  const std::vector<ValueId> values = model.graph.outputs();
  std::vector<size_t> kept;
  std::set<ValueId> needed;
  for (size_t i = 0; i < values.size(); ++i) {
    if (!IsOf(side, model, i)) continue;
    kept.push_back(i);
    needed.merge(InputsOf(model.graph, values[i]));
  }
  std::vector<ModelIo> outputs;
  model.graph.ClearOutputs();
  for (const size_t i : kept) {
    model.graph.AddOutput(values[i]);
    outputs.push_back(std::move(model.outputs[i]));
  }
  model.outputs = std::move(outputs);
  std::vector<ValueId> others;
  for (const ValueId input : model.graph.inputs()) {
    if (!needed.contains(input)) others.push_back(input);
  }
  std::erase_if(model.inputs, [&](const ModelIo& io) {
    return !needed.contains(model.graph.FindValue(io.name));
  });
  // Nothing that stays reads them, so that any value does.
  for (const ValueId input : others) {
    const DType dtype = model.graph.value(input).dtype;
    model.graph.ReplaceWithConstant(input, Tensor::Make(dtype, {0}, [](void*) {}));
  }
  model.graph.Compact();
}

}  // namespace reprise
