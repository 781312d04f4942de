#include "server/hub/embedding_head.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/graph/graph.h"
#include "runtime/onnx/importer.h"
#include "runtime/ops/kit/onnx_types.h"

namespace reprise {
namespace {

// Numbers of sentence-transformers and of torch.nn.functional.normalize.
constexpr float kLeastCount = 1e-9f;
constexpr float kLeastLength = 1e-12f;
constexpr float kMaskedOut = -1e9f;

class HeadBuilder {
 public:
  explicit HeadBuilder(ImportedModel& model) : model_(model), graph_(model.graph) {}

  ValueId Pool(Pooling pooling, ValueId hidden) {
    const ValueId mask = graph_.FindValue("attention_mask");
    const bool masked = mask != kNone && graph_.value(mask).kind == Value::Kind::kInput;
    switch (pooling) {
      case Pooling::kCls:
        return Add("Gather", {hidden, Constant(Tensor::Int64Scalar(0))}, {{"axis", int64_t{1}}});
      case Pooling::kMax:
        return Reduce("ReduceMax", masked ? MaskOut(hidden, mask) : hidden);
      case Pooling::kLastToken:
        return LastToken(hidden, masked ? mask : kNone);
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

  ValueId Dense(const DenseLayer& layer, ValueId x) {
    // MatMul wants [in, out].
    const Shape& shape = layer.weight.shape();
    std::vector<float> turned(static_cast<size_t>(shape[0] * shape[1]));
    const float* weight = static_cast<const float*>(layer.weight.data());
    for (int64_t out = 0; out < shape[0]; ++out) {
      for (int64_t in = 0; in < shape[1]; ++in) {
        turned[in * shape[0] + out] = weight[out * shape[1] + in];
      }
    }
    x = Add("MatMul",
            {x, Weight(layer.folder + ".weight",
                       Tensor::FromVector(DType::kFloat32, {shape[1], shape[0]}, turned))});
    if (layer.bias.data() != nullptr) {
      x = Add("Add", {x, Weight(layer.folder + ".bias", layer.bias)});
    }
    switch (layer.activation) {
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

  ValueId Normalize(ValueId x) {
    const ValueId length =
        Add("ReduceL2", {x, Constant(Tensor::Int64s({1}))}, {{"keepdims", int64_t{1}}});
    return Add("Div", {x, Add("Max", {length, Constant(Tensor::FloatScalar(kLeastLength))})});
  }

  ValueId ToFloat(ValueId x) {
    return Add("Cast", {x}, {{"to", ops::OnnxNumber(DType::kFloat32)}});
  }

 private:
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

  // Over the tokens.
  ValueId Reduce(const char* op, ValueId x) {
    return Add(op, {x, Constant(Tensor::Int64s({1}))}, {{"keepdims", int64_t{0}}});
  }

  // The mask as float32 [batch, tokens, 1].
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

  // The token in front of the first one that the mask leaves out.
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

}  // namespace

absl::Status AppendEmbeddingHead(const EmbeddingHead& head, ImportedModel& model) {
  const auto output = std::find_if(model.outputs.begin(), model.outputs.end(),
                                   [&](const ModelIo& io) { return io.name == head.hidden; });
  if (output == model.outputs.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the model has no output \"", head.hidden, "\" to pool"));
  }
  ValueId hidden = model.graph.outputs()[output - model.outputs.begin()];
  const std::vector<Dim> dims = output->dims;
  HeadBuilder builder(model);
  if (output->dtype != DType::kFloat32) hidden = builder.ToFloat(hidden);
  std::vector<ValueId> parts;
  for (const Pooling pooling : head.poolings) parts.push_back(builder.Pool(pooling, hidden));
  ValueId vector = builder.Join(parts);
  for (const DenseLayer& layer : head.dense) vector = builder.Dense(layer, vector);
  if (head.normalize) vector = builder.Normalize(vector);
  if (!head.keep_outputs) {
    model.outputs.clear();
    model.graph.ClearOutputs();
  }
  ModelIo io{.name = kEmbeddingOutput, .dtype = DType::kFloat32};
  if (!dims.empty()) io.dims.push_back(dims.front());
  if (!head.dense.empty()) {
    io.dims.push_back(Dim{.size = head.dense.back().weight.shape()[0]});
  } else if (!dims.empty() && dims.back().is_constant()) {
    io.dims.push_back(Dim{.size = dims.back().size * static_cast<int64_t>(head.poolings.size())});
  } else {
    io.dims.push_back(Dim{.symbol = "embedding"});
  }
  model.outputs.push_back(std::move(io));
  model.graph.AddOutput(vector);
  model.graph.Compact();
  return absl::OkStatus();
}

}  // namespace reprise
