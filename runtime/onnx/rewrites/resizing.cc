#include "runtime/onnx/rewrites/resizing.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/graph/graph.h"
#include "runtime/onnx/kit/steps.h"

namespace reprise {

// Resize of opset 10 had no choice of coordinates. The nearest element is the one before, or
// where a dim shrinks the one after; ONNX leaves this open and onnxruntime does so.
absl::Status ResizeAtCorner(NodeDraft& draft, Graph& graph) {
  if (draft.inputs.size() == 2) draft.inputs = {draft.inputs[0], kNone, draft.inputs[1]};
  draft.attributes.Set("coordinate_transformation_mode", std::string("asymmetric"));
  draft.attributes.Set("nearest_mode", std::string("floor"));
  const Tensor* known = draft.inputs.size() > 2 && draft.inputs[2] != kNone
                            ? graph.ConstantOf(draft.inputs[2])
                            : nullptr;
  if (known == nullptr || draft.attributes.String("mode", "nearest") != "nearest") {
    return absl::OkStatus();
  }
  std::vector<float> shrinks, grows;
  for (const double scale : known->ToDoubles()) {
    shrinks.push_back(static_cast<float>(std::min(scale, 1.0)));
    grows.push_back(static_cast<float>(std::max(scale, 1.0)));
  }
  const auto is_one = [](float scale) { return scale == 1; };
  if (absl::c_all_of(shrinks, is_one)) return absl::OkStatus();
  Attributes behind = draft.attributes;
  behind.Set("nearest_mode", std::string("ceil"));
  if (absl::c_all_of(grows, is_one)) {
    draft.attributes = std::move(behind);
    return absl::OkStatus();
  }
  // Dims that grow after those that shrink.
  const auto constant = [&](const std::vector<float>& scales) {
    const auto size = static_cast<int64_t>(scales.size());
    return graph.AddConstant("", Tensor::FromVector(DType::kFloat32, {size}, scales));
  };
  const NodeId first =
      graph.AddNode(draft.op, {draft.inputs[0], kNone, constant(shrinks)}, std::move(behind));
  draft.inputs = {graph.node(first).outputs[0], kNone, constant(grows)};
  return absl::OkStatus();
}

// Upsample, which Resize replaced. Its scales were an attribute before opset 9.
absl::Status UpsampleIsResize(NodeDraft& draft, Graph& graph) {
  if (const auto* scales = draft.attributes.Get<std::vector<float>>("scales")) {
    draft.inputs.resize(std::max<size_t>(draft.inputs.size(), 2), kNone);
    draft.inputs[1] = graph.AddConstant(
        absl::StrCat(draft.name, "/scales"),
        Tensor::FromVector(DType::kFloat32, {static_cast<int64_t>(scales->size())}, *scales));
    draft.attributes.Erase("scales");
  }
  draft.op = "Resize";
  return ResizeAtCorner(draft, graph);
}

// Makes it a Pad, which crops where it is negative: before by half of the missing size, rounded to
// zero, and after by the rest.
absl::Status CenterCropPadIsPad(NodeDraft& draft, Graph& graph) {
  Steps steps(draft, graph);
  RETURN_IF_ERROR(steps.Require({0, 1}));
  const ValueId x = steps.input(0), wanted = steps.Cast(steps.input(1), DType::kInt64);
  ValueId sizes = steps.Dims(x, 0, std::nullopt), axes = kNone;
  if (draft.attributes.Has("axes")) {
    axes = steps.Int64s(draft.attributes.Ints("axes"));
    sizes = steps.Add("Gather", {sizes, axes});
  }
  const ValueId missing = steps.Add("Sub", {wanted, sizes});
  const ValueId before = steps.Add("Div", {missing, steps.Int64(2)});
  const ValueId pads = steps.Concat({before, steps.Add("Sub", {missing, before})});
  return steps.Become("Pad", {x, pads, kNone, axes});
}

// Before opset 16 regions were no half elements to the left.
absl::Status RegionsAtCorner(NodeDraft& draft, Graph&) {
  draft.attributes.Set("coordinate_transformation_mode", std::string("output_half_pixel"));
  return absl::OkStatus();
}

}  // namespace reprise
