#include "server/hub/embedding_head.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/graph/graph.h"
#include "runtime/onnx/importer.h"
#include "runtime/ops/kit/onnx_types.h"

namespace reprise {
namespace {

// Numbers of sentence-transformers and of torch.nn.functional.normalize.
constexpr float kLeastCount = 1e-9f;
constexpr float kLeastLength = 1e-12f;
constexpr float kMaskedOut = -1e9f;
constexpr float kNormEpsilon = 1e-5f;

class HeadBuilder {
 public:
  explicit HeadBuilder(ImportedModel& model) : model_(model), graph_(model.graph) {}

  ValueId Pool(Pooling pooling, ValueId hidden) {
    const ValueId mask = Mask();
    const bool masked = mask != kNone;
    switch (pooling) {
      case Pooling::kCls:
        return Add("Gather", {hidden, Constant(Tensor::Int64Scalar(0))}, {{"axis", int64_t{1}}});
      case Pooling::kMax:
        return Reduce("ReduceMax", masked ? MaskOut(hidden, mask) : hidden);
      case Pooling::kLastToken:
        return LastToken(hidden, mask);
      case Pooling::kMean:
      case Pooling::kMeanSqrtLength:
      case Pooling::kWeightedMean:
        break;
    }
    if (!masked) return Reduce("ReduceMean", hidden);
    return Mean(pooling, hidden, mask);
  }

  ValueId Join(const std::vector<ValueId>& parts) {
    if (parts.size() == 1) return parts[0];
    return Add("Concat", parts, {{"axis", int64_t{1}}});
  }

  ValueId Dense(const DenseLayer& layer, ValueId input) {
    ValueId x = Multiply(input, layer.folder + ".weight", layer.weight);
    if (layer.bias.data() != nullptr) {
      x = Add("Add", {x, Weight(layer.folder + ".bias", layer.bias)});
    }
    x = Activate(layer.activation, x);
    if (!layer.adds_input) return x;
    const bool projects = layer.residual.data() != nullptr;
    return Add("Add",
               {x, projects ? Multiply(input, layer.folder + ".residual", layer.residual) : input});
  }

  ValueId Normalize(ValueId x) {
    const ValueId length =
        Add("ReduceL2", {x, Constant(Tensor::Int64s({-1}))}, {{"keepdims", int64_t{1}}});
    return Add("Div", {x, Add("Max", {length, Constant(Tensor::FloatScalar(kLeastLength))})});
  }

  ValueId LayerNorm(const LayerNormStep& step, ValueId x) {
    return Add(
        "LayerNormalization",
        {x, Weight(step.folder + ".weight", step.weight), Weight(step.folder + ".bias", step.bias)},
        {{"axis", int64_t{-1}}, {"epsilon", kNormEpsilon}});
  }

  // Returns the weights of words. The logarithm keeps the order, so that the largest is taken first
  // and a text has one logarithm a word.
  ValueId Splade(const SpladeStep& step, ValueId scores) {
    if (!step.sums) return LogOf(step, Add("Relu", {Pool(Pooling::kMax, scores)}));
    ValueId weights = LogOf(step, Add("Relu", {scores}));
    const ValueId mask = Mask();
    if (mask != kNone) weights = Add("Mul", {weights, Column(mask)});
    return Reduce("ReduceSum", weights);
  }

  ValueId Cut(ValueId x, int64_t width) {
    return Add("Slice", {x, Constant(Tensor::Int64s({0})), Constant(Tensor::Int64s({width})),
                         Constant(Tensor::Int64s({1}))});
  }

  ValueId ToFloat(ValueId x) {
    return Add("Cast", {x}, {{"to", ops::OnnxNumber(DType::kFloat32)}});
  }

 private:
  // Returns the input that tells tokens from padding; kNone: the model has none.
  ValueId Mask() const {
    const ValueId mask = graph_.FindValue("attention_mask");
    const bool given = mask != kNone && graph_.value(mask).kind == Value::Kind::kInput;
    return given ? mask : kNone;
  }

  ValueId LogOf(const SpladeStep& step, ValueId x) {
    const ValueId one = Constant(Tensor::FloatScalar(1));
    for (int i = 0; i < (step.log_twice ? 2 : 1); ++i) x = Add("Log", {Add("Add", {x, one})});
    return x;
  }

  ValueId Add(const char* op, std::vector<ValueId> inputs, Attributes attributes = {}) {
    const NodeId node = graph_.AddNode(op, std::move(inputs), std::move(attributes), 1,
                                       absl::StrCat("pooling/", op));
    return graph_.node(node).outputs[0];
  }

  ValueId Constant(Tensor value) {
    return graph_.AddConstant("pooling/constant", std::move(value));
  }

  ValueId Weight(const std::string& name, Tensor value) {
    if (!IsParameterLike(value.dtype(), value.num_elements())) {
      return graph_.AddConstant(name, std::move(value));
    }
    const int index = static_cast<int>(model_.parameters.size());
    model_.parameters.push_back(value);
    return graph_.AddParameter(name, ParameterExpr::Leaf(index, value.dtype(), value.shape()));
  }

  ValueId Activate(Activation activation, ValueId x) {
    switch (activation) {
      case Activation::kIdentity:
        return x;
      case Activation::kTanh:
        return Add("Tanh", {x});
      case Activation::kRelu:
        return Add("Relu", {x});
      case Activation::kGelu:
        return Add("Gelu", {x});
      case Activation::kSigmoid:
        return Add("Sigmoid", {x});
    }
    return x;
  }

  // `matrix` is [out, in], MatMul takes [in, out].
  ValueId Multiply(ValueId x, const std::string& name, const Tensor& matrix) {
    const Shape& shape = matrix.shape();
    std::vector<float> turned(static_cast<size_t>(shape[0] * shape[1]));
    const float* weight = static_cast<const float*>(matrix.data());
    for (int64_t out = 0; out < shape[0]; ++out) {
      for (int64_t in = 0; in < shape[1]; ++in) {
        turned[in * shape[0] + out] = weight[out * shape[1] + in];
      }
    }
    return Add(
        "MatMul",
        {x, Weight(name, Tensor::FromVector(DType::kFloat32, {shape[1], shape[0]}, turned))});
  }

  // Over the tokens.
  ValueId Reduce(const char* op, ValueId x) {
    return Add(op, {x, Constant(Tensor::Int64s({1}))}, {{"keepdims", int64_t{0}}});
  }

  // Returns the mask as float32 [batch, tokens, 1].
  ValueId Column(ValueId mask) {
    return Add("Unsqueeze", {ToFloat(mask), Constant(Tensor::Int64s({2}))});
  }

  ValueId Mean(Pooling pooling, ValueId hidden, ValueId mask) {
    ValueId weights = Column(mask);
    if (pooling == Pooling::kWeightedMean) {
      // Later tokens count more: token i i times.
      const ValueId place = Add("CumSum", {ToFloat(mask), Constant(Tensor::Int64Scalar(1))});
      weights = Add("Mul", {weights, Add("Unsqueeze", {place, Constant(Tensor::Int64s({2}))})});
    }
    const ValueId sum = Reduce("ReduceSum", Add("Mul", {hidden, weights}));
    ValueId count =
        Add("Max", {Reduce("ReduceSum", weights), Constant(Tensor::FloatScalar(kLeastCount))});
    if (pooling == Pooling::kMeanSqrtLength) count = Add("Sqrt", {count});
    return Add("Div", {sum, count});
  }

  ValueId MaskOut(ValueId hidden, ValueId mask) {
    const ValueId kept = Add("Cast", {Column(mask)}, {{"to", ops::OnnxNumber(DType::kBool)}});
    return Add("Where", {kept, hidden, Constant(Tensor::FloatScalar(kMaskedOut))});
  }

  // Returns the token in front of the first one that the mask leaves out.
  ValueId LastToken(ValueId hidden, ValueId mask) {
    if (mask == kNone) {
      return Add("Gather", {hidden, Constant(Tensor::Int64Scalar(-1))}, {{"axis", int64_t{1}}});
    }
    const ValueId count = Add("ReduceSum", {ToFloat(mask), Constant(Tensor::Int64s({1}))},
                              {{"keepdims", int64_t{1}}});
    const ValueId place = Add("Cast", {Add("Sub", {count, Constant(Tensor::FloatScalar(1))})},
                              {{"to", ops::OnnxNumber(DType::kInt64)}});
    return Add("GatherND", {hidden, place}, {{"batch_dims", int64_t{1}}});
  }

  ImportedModel& model_;
  Graph& graph_;
};

// The vectors that the steps have written, by their names.
using Named = std::map<std::string, ValueId>;

void AppendStep(const HeadStep& step, HeadBuilder& builder, Named& vectors) {
  if (const auto* pooling = std::get_if<PoolingStep>(&step)) {
    std::vector<ValueId> parts;
    for (const Pooling each : pooling->poolings) {
      parts.push_back(builder.Pool(each, vectors.at(kTokenVectors)));
    }
    vectors[kTextVectors] = builder.Join(parts);
  } else if (const auto* dense = std::get_if<DenseLayer>(&step)) {
    vectors[dense->output] = builder.Dense(*dense, vectors.at(dense->input));
  } else if (const auto* norm = std::get_if<LayerNormStep>(&step)) {
    vectors[kTextVectors] = builder.LayerNorm(*norm, vectors.at(kTextVectors));
  } else if (const auto* splade = std::get_if<SpladeStep>(&step)) {
    vectors[kTextVectors] = builder.Splade(*splade, vectors.at(kTokenVectors));
  } else {
    const auto& normalize = std::get<NormalizeStep>(step);
    vectors[normalize.output] = builder.Normalize(vectors.at(normalize.input));
  }
}

}  // namespace

absl::Status AppendEmbeddingHead(const EmbeddingHead& head, ImportedModel& model) {
  const auto output = std::find_if(model.outputs.begin(), model.outputs.end(),
                                   [&](const ModelIo& io) { return io.name == head.source; });
  if (output == model.outputs.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the model has no output \"", head.source, "\" to pool"));
  }
  const std::vector<Dim> dims = output->dims;
  const int64_t source_width = !dims.empty() && dims.back().is_constant() ? dims.back().size : 0;
  ASSIGN_OR_RETURN(int64_t width,
                   WidthAfter(head.steps, head.source_name, source_width, head.result));
  ValueId source = model.graph.outputs()[output - model.outputs.begin()];
  HeadBuilder builder(model);
  if (output->dtype != DType::kFloat32) source = builder.ToFloat(source);
  Named vectors = {{head.source_name, source}};
  for (const HeadStep& step : head.steps) AppendStep(step, builder, vectors);
  ValueId result = vectors.at(head.result);
  if (head.truncate_dim > 0 && (width == 0 || head.truncate_dim < width)) {
    result = builder.Cut(result, head.truncate_dim);
    width = width == 0 ? 0 : head.truncate_dim;
  }
  if (!head.keep_outputs) {
    model.outputs.clear();
    model.graph.ClearOutputs();
  }
  for (const ModelIo& kept : model.outputs) {
    if (kept.name != head.result) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("the model has an output \"", kept.name, "\" of its own"));
  }
  ModelIo io{.name = head.result, .dtype = DType::kFloat32};
  if (!dims.empty()) io.dims.push_back(dims.front());
  if (head.result == kTokenVectors && dims.size() == 3) io.dims.push_back(dims[1]);
  io.dims.push_back(width > 0 ? Dim{.size = width} : Dim{.symbol = "embedding"});
  model.outputs.push_back(std::move(io));
  model.graph.AddOutput(result);
  model.graph.Compact();
  return absl::OkStatus();
}

}  // namespace reprise
