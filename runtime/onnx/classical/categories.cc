#include "runtime/onnx/classical/categories.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <optional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/graph/graph.h"
#include "runtime/onnx/classical/ml_attributes.h"
#include "runtime/onnx/file/onnx_proto.h"
#include "runtime/onnx/kit/known_numbers.h"
#include "runtime/onnx/kit/steps.h"
#include "runtime/ops/classical/categories.h"
#include "runtime/ops/elementwise/arithmetic_op.h"
#include "runtime/ops/elementwise/comparison_op.h"
#include "runtime/ops/elementwise/select_op.h"
#include "runtime/ops/movement/concat_op.h"
#include "runtime/ops/movement/expand_op.h"
#include "runtime/ops/movement/gather_op.h"
#include "runtime/ops/movement/reshape_op.h"
#include "runtime/ops/movement/shape_op.h"
#include "runtime/ops/movement/slice_op.h"

namespace reprise {
namespace {

// Returns how many dims `value` has where that is known.
std::optional<int64_t> RankOf(const Graph& graph, ValueId id) { return KnownRank(graph.value(id)); }

// INVALID_ARGUMENT where known places lie outside a last dim of `x` that is known too: no request
// could be answered.
absl::Status CheckPlaces(const Graph& graph, ValueId x, ValueId places) {
  const Tensor* known = graph.ConstantOf(places);
  const std::optional<int64_t> size = KnownDim(graph.value(x), -1);
  if (known == nullptr || !size.has_value()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::vector<int64_t> numbers, known->ToInt64s());
  for (const int64_t number : numbers) {
    if (number >= -*size && number < *size) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("takes column ", number, " of input 0, which has ", *size));
  }
  return absl::OkStatus();
}

// Keys or values of a LabelEncoder.
absl::StatusOr<Tensor> ListOf(const NodeDraft& draft, const std::string& name) {
  const Attributes& attributes = draft.attributes;
  if (const auto* tensor = attributes.Get<Tensor>(name + "_tensor")) {
    return tensor->Reshaped({tensor->num_elements()});
  }
  if (const auto* list = attributes.Get<std::vector<float>>(name + "_floats")) {
    return Tensor::FromVector(DType::kFloat32, {static_cast<int64_t>(list->size())}, *list);
  }
  if (const auto* list = attributes.Get<std::vector<int64_t>>(name + "_int64s")) {
    return Tensor::Int64s(*list);
  }
  if (const auto* list = TextsIn(attributes, name + "_strings")) {
    return Tensor::Int64s(PlacesOf(draft, *list));
  }
  return absl::InvalidArgumentError(absl::StrCat("there are no attributes '", name, "_...'"));
}

// Returns the text that an encoder answers for an unknown key.
Tensor DefaultText(const NodeDraft& draft) {
  return Tensor::Int64s(PlacesOf(draft, {draft.attributes.String("default_string", kUnusedText)}));
}

// Returns the answer of a LabelEncoder to an input that is no key.
absl::StatusOr<Tensor> DefaultOf(const NodeDraft& draft, DType dtype) {
  const Attributes& attributes = draft.attributes;
  const bool text = IsTextList(draft, "values");
  if (const auto* tensor = attributes.Get<Tensor>("default_tensor")) {
    if (tensor->dtype() != dtype || tensor->num_elements() != 1 ||
        text != draft.texts.attributes.contains("default_tensor")) {
      return absl::InvalidArgumentError(
          absl::StrCat("attribute 'default_tensor' is ", DTypeName(tensor->dtype()), " of ",
                       tensor->num_elements(), " elements, expected one ", DTypeName(dtype)));
    }
    return tensor->Reshaped({1});
  }
  if (text) return DefaultText(draft);
  switch (dtype) {
    case DType::kFloat32:
      return Tensor::FromVector<float>(dtype, {1}, {attributes.Float("default_float", -0.0f)});
    case DType::kFloat64:
      return Tensor::FromVector<double>(dtype, {1}, {-0.0});
    case DType::kInt64:
      return Tensor::FromVector<int64_t>(dtype, {1}, {attributes.Int("default_int64", -1)});
    case DType::kInt32:
      return Tensor::FromVector<int32_t>(dtype, {1}, {-1});
    case DType::kInt16:
      return Tensor::FromVector<int16_t>(dtype, {1}, {-1});
    default:
      return absl::UnimplementedError(absl::StrCat("values of ", DTypeName(dtype)));
  }
}

// Turns the draft into the element of `values` at the index of its input among `keys`, or
// `otherwise`, one element, where it is none of them.
void LookUp(NodeDraft& draft, Graph& graph, const Tensor& keys, const Tensor& values,
            const Tensor& otherwise) {
  const size_t bytes = values.bytes();
  Tensor table = Tensor::Make(values.dtype(), {values.num_elements() + 1}, [&](void* data) {
    auto* to = static_cast<std::byte*>(data);
    if (bytes > 0) std::memcpy(to, values.data(), bytes);
    std::memcpy(to + bytes, otherwise.data(), otherwise.bytes());
  });
  Steps steps(draft, graph);
  const ValueId place =
      steps.Add(CategoryIndexOp::kName, {draft.inputs[0], steps.Constant("keys", keys)});
  draft.op = GatherOp::kName;
  draft.attributes = {{"axis", int64_t{0}}};
  draft.inputs = {steps.Constant("values", std::move(table)), place};
}

// Maps texts to the numbers at the same index of a list, or numbers to texts, depending on the
// input.
void BothWays(NodeDraft& draft, Graph& graph, const std::vector<std::string>& texts,
              const std::vector<int64_t>& numbers) {
  const Tensor places = Tensor::Int64s(PlacesOf(draft, texts));
  if (draft.texts.inputs[0]) {
    const Tensor otherwise = Tensor::Int64s({draft.attributes.Int("default_int64", -1)});
    LookUp(draft, graph, places, Tensor::Int64s(numbers), otherwise);
  } else {
    LookUp(draft, graph, Tensor::Int64s(numbers), places, DefaultText(draft));
  }
}

}  // namespace

absl::Status OneHotEncoderInSteps(NodeDraft& draft, Graph& graph) {
  RETURN_IF_ERROR(RequireOneInput(draft));
  const Attributes& attributes = draft.attributes;
  const auto* texts = TextsIn(attributes, "cats_strings");
  const std::vector<int64_t> categories =
      texts == nullptr ? attributes.Ints("cats_int64s") : PlacesOf(draft, *texts);
  if (categories.empty()) {
    return absl::InvalidArgumentError("attribute 'cats_int64s' or 'cats_strings' is missing");
  }
  Steps steps(draft, graph);
  ValueId x = draft.inputs[0];
  if (TypeBefore(draft, graph, x) != DType::kInt64) x = steps.Cast(x, DType::kInt64);
  Attributes strict;
  if (attributes.Int("zeros", 1) == 0) {
    strict.Set("known", int64_t{1});
    if (texts != nullptr) strict.Set("text", int64_t{1});
  }
  const ValueId place = steps.Add(CategoryIndexOp::kName, {x, steps.Int64s(categories)}, strict);
  const auto count = static_cast<int64_t>(categories.size());
  std::vector<int64_t> places(count);
  for (int64_t i = 0; i < count; ++i) places[i] = i;
  const ValueId column = steps.Add(UnsqueezeOp::kName, {place, steps.Int64s({-1})});
  return steps.Become(CastOp::kName, {steps.Add(EqualOp::kName, {column, steps.Int64s(places)})},
                      {{"to", ops::OnnxNumber(DType::kFloat32)}});
}

// Looks up the value at the place of the key, or after all of them the default.
absl::Status LabelEncoderInSteps(NodeDraft& draft, Graph& graph) {
  RETURN_IF_ERROR(RequireOneInput(draft));
  // Before opset 2 of the domain it only turned text into numbers and back.
  if (const auto* classes = TextsIn(draft.attributes, "classes_strings")) {
    std::vector<int64_t> numbers(classes->size());
    std::iota(numbers.begin(), numbers.end(), int64_t{0});
    BothWays(draft, graph, *classes, numbers);
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(const Tensor keys, ListOf(draft, "keys"));
  ASSIGN_OR_RETURN(const Tensor values, ListOf(draft, "values"));
  RETURN_IF_ERROR(CheckLength("values", static_cast<size_t>(values.num_elements()),
                              static_cast<size_t>(keys.num_elements())));
  ASSIGN_OR_RETURN(const Tensor otherwise, DefaultOf(draft, values.dtype()));
  LookUp(draft, graph, keys, values, otherwise);
  return absl::OkStatus();
}

absl::Status CategoryMapperInSteps(NodeDraft& draft, Graph& graph) {
  RETURN_IF_ERROR(RequireOneInput(draft));
  const auto* texts = TextsIn(draft.attributes, "cats_strings");
  const std::vector<int64_t> numbers = draft.attributes.Ints("cats_int64s");
  if (texts == nullptr) return absl::InvalidArgumentError("attribute 'cats_strings' is missing");
  RETURN_IF_ERROR(CheckLength("cats_int64s", numbers.size(), texts->size()));
  BothWays(draft, graph, *texts, numbers);
  return absl::OkStatus();
}

// Integers as text: the places of those texts of the vocabulary that are such numbers, and of none
// for all others.
absl::Status CastToText(NodeDraft& draft, Graph& graph) {
  if (draft.attributes.Int("to", 0) != onnx::TensorProto::STRING) return absl::OkStatus();
  RETURN_IF_ERROR(RequireOneInput(draft));
  if (draft.texts.inputs[0]) {
    draft.op = IdentityOp::kName;
    draft.attributes = {};
    return absl::OkStatus();
  }
  const DType dtype = TypeBefore(draft, graph, draft.inputs[0]);
  constexpr DType kIntegers[] = {DType::kInt8,  DType::kInt16,  DType::kInt32, DType::kInt64,
                                 DType::kUInt8, DType::kUInt16, DType::kUInt32};
  if (std::find(std::begin(kIntegers), std::end(kIntegers), dtype) == std::end(kIntegers)) {
    return absl::UnimplementedError(
        absl::StrCat("writes ", DTypeName(dtype), " as text: only integers are supported"));
  }
  if (dtype != DType::kInt64)
    draft.inputs[0] = Steps(draft, graph).Cast(draft.inputs[0], DType::kInt64);
  std::vector<int64_t> numbers, places;
  const Vocabulary& vocabulary = *draft.texts.vocabulary;
  for (int64_t place = Vocabulary::kNoText + 1; place < vocabulary.size(); ++place) {
    int64_t number = 0;
    const absl::string_view text = vocabulary.text(place);
    // As it would be written: no sign or zeros in front.
    if (!absl::SimpleAtoi(text, &number) || absl::StrCat(number) != text) continue;
    numbers.push_back(number);
    places.push_back(place);
  }
  LookUp(draft, graph, Tensor::Int64s(numbers), Tensor::Int64s(places),
         Tensor::Int64s({Vocabulary::kNoText}));
  return absl::OkStatus();
}

// Elements of the last dim; of a vector a row of them.
absl::Status ArrayFeatureExtractorInSteps(NodeDraft& draft, Graph& graph) {
  if (draft.inputs.size() != 2 || draft.inputs[0] == kNone || draft.inputs[1] == kNone) {
    return absl::InvalidArgumentError("does not have two inputs");
  }
  RETURN_IF_ERROR(CheckPlaces(graph, draft.inputs[0], draft.inputs[1]));
  Steps steps(draft, graph);
  const ValueId x = draft.inputs[0];
  const ValueId indices = RankOf(graph, draft.inputs[1]) == 1
                              ? draft.inputs[1]
                              : steps.Add(ReshapeOp::kName, {draft.inputs[1], steps.Int64s({-1})});
  const ValueId chosen = steps.Add(GatherOp::kName, {x, indices}, {{"axis", int64_t{-1}}});
  const std::optional<int64_t> rank = RankOf(graph, x);
  draft.attributes = {};
  if (rank == 1) {
    draft.op = UnsqueezeOp::kName;
    draft.inputs = {chosen, steps.Int64s({0})};
  } else if (rank.has_value()) {
    draft.op = IdentityOp::kName;
    draft.inputs = {chosen};
  } else {
    // A dim of 1 in front where there would be one dim alone: shape arithmetic, which folds away.
    const ValueId dims = steps.Dims(chosen, 0, std::nullopt);
    const ValueId count = steps.Add(ShapeOp::kName, {dims});
    const ValueId missing = steps.Add(
        MaxOp::kName, {steps.Add(SubOp::kName, {steps.Int64s({2}), count}), steps.Int64s({0})});
    const ValueId lead =
        steps.Add(ConstantOfShapeOp::kName, {missing}, {{"value", Tensor::Int64s({1})}});
    draft.op = ReshapeOp::kName;
    draft.attributes = {{"allowzero", int64_t{1}}};
    draft.inputs = {chosen, steps.Concat({lead, dims})};
  }
  return absl::OkStatus();
}

absl::Status FeatureVectorizerInSteps(NodeDraft& draft, Graph& graph) {
  if (draft.inputs.empty()) return absl::InvalidArgumentError("has no inputs");
  const std::vector<int64_t> sizes = draft.attributes.Ints("inputdimensions");
  if (!sizes.empty()) {
    RETURN_IF_ERROR(CheckLength("inputdimensions", sizes.size(), draft.inputs.size()));
  }
  Steps steps(draft, graph);
  std::vector<ValueId> parts;
  for (size_t i = 0; i < draft.inputs.size(); ++i) {
    if (draft.inputs[i] == kNone) {
      return absl::InvalidArgumentError(absl::StrCat("input ", i, " is left out"));
    }
    const std::optional<int64_t> rank = RankOf(graph, draft.inputs[i]);
    ValueId x = AsFloats(draft, graph, draft.inputs[i]);
    if (rank == 1) {
      x = steps.Add(UnsqueezeOp::kName, {x, steps.Int64s({0})});
    } else if (rank != 2) {
      x = steps.Add(FlattenOp::kName, {x}, {{"axis", int64_t{1}}});
    }
    if (!sizes.empty()) {
      // Longer rows are cut, shorter ones filled with zeros.
      const ValueId dim = steps.Dims(x, 1, 2);
      const ValueId fill =
          steps.Add(MaxOp::kName,
                    {steps.Add(SubOp::kName, {steps.Int64s({sizes[i]}), dim}), steps.Int64s({0})});
      const ValueId zeros =
          steps.Add(ExpandOp::kName, {steps.Float(0), steps.Concat({steps.Dims(x, 0, 1), fill})});
      x = steps.Add(ConcatOp::kName, {x, zeros}, {{"axis", int64_t{1}}});
      x = steps.Add(SliceOp::kName,
                    {x, steps.Int64s({0}), steps.Int64s({sizes[i]}), steps.Int64s({1})});
    }
    parts.push_back(x);
  }
  draft.op = parts.size() == 1 ? IdentityOp::kName : ConcatOp::kName;
  draft.attributes = {};
  if (parts.size() > 1) draft.attributes.Set("axis", int64_t{1});
  draft.inputs = std::move(parts);
  return absl::OkStatus();
}

absl::Status ZipMapIsItsTensor(NodeDraft& draft, Graph&) {
  RETURN_IF_ERROR(RequireOneInput(draft));
  draft.op = IdentityOp::kName;
  draft.attributes = {};
  return absl::OkStatus();
}

absl::Status RefuseMaps(NodeDraft&, Graph&) {
  return absl::UnimplementedError("it reads maps: only tensors are supported");
}

}  // namespace reprise
