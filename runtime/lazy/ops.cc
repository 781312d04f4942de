#include "runtime/lazy/ops.h"

#include <utility>

#include "runtime/lazy/trace.h"
#include "runtime/ops/kit/onnx_types.h"

namespace reprise::lazy {

std::vector<Tensor> Ops(absl::string_view op, const std::vector<Arg>& operands, size_t results,
                        Attributes attributes, SourceLocation at) {
  return StreamState::Call(op, operands, results, std::move(attributes), at);
}

Tensor Op(absl::string_view op, const std::vector<Arg>& operands, Attributes attributes,
          SourceLocation at) {
  return Ops(op, operands, 1, std::move(attributes), at)[0];
}

namespace {

// Returns the result of an op whose operands give its place in the source.
Tensor At(absl::string_view op, const std::vector<Arg>& operands, Attributes attributes = {}) {
  return Op(op, operands, std::move(attributes), operands[0].at());
}

}  // namespace

Tensor operator+(const Arg& a, const Arg& b) { return At("Add", {a, b}); }
Tensor operator-(const Arg& a, const Arg& b) { return At("Sub", {a, b}); }
Tensor operator*(const Arg& a, const Arg& b) { return At("Mul", {a, b}); }
Tensor operator/(const Arg& a, const Arg& b) { return At("Div", {a, b}); }
Tensor operator-(const Arg& a) { return At("Neg", {a}); }
Tensor Min(const Arg& a, const Arg& b) { return At("Min", {a, b}); }
Tensor Max(const Arg& a, const Arg& b) { return At("Max", {a, b}); }
Tensor Pow(const Arg& a, const Arg& b) { return At("Pow", {a, b}); }
Tensor Equal(const Arg& a, const Arg& b) { return At("Equal", {a, b}); }
Tensor Less(const Arg& a, const Arg& b) { return At("Less", {a, b}); }
Tensor Greater(const Arg& a, const Arg& b) { return At("Greater", {a, b}); }
Tensor Where(const Arg& condition, const Arg& a, const Arg& b) {
  return At("Where", {condition, a, b});
}

Tensor Abs(const Arg& x) { return At("Abs", {x}); }
Tensor Exp(const Arg& x) { return At("Exp", {x}); }
Tensor Log(const Arg& x) { return At("Log", {x}); }
Tensor Sqrt(const Arg& x) { return At("Sqrt", {x}); }
Tensor Erf(const Arg& x) { return At("Erf", {x}); }
Tensor Relu(const Arg& x) { return At("Relu", {x}); }
Tensor Gelu(const Arg& x) { return At("Gelu", {x}, {{"approximate", std::string("none")}}); }
Tensor Sigmoid(const Arg& x) { return At("Sigmoid", {x}); }
Tensor Tanh(const Arg& x) { return At("Tanh", {x}); }
Tensor Cast(const Arg& x, DType dtype) { return At("Cast", {x}, {{"to", ops::OnnxNumber(dtype)}}); }

Tensor MatMul(const Arg& a, const Arg& b) { return At("MatMul", {a, b}); }
Tensor Softmax(const Arg& x, int64_t axis) { return At("Softmax", {x}, {{"axis", axis}}); }
Tensor LayerNorm(const Arg& x, const Arg& scale, const Arg& bias, float epsilon) {
  return At("LayerNormalization", {x, scale, bias}, {{"axis", int64_t{-1}}, {"epsilon", epsilon}});
}
Tensor Conv2d(const Arg& x, const Arg& weights, const Arg& bias,
              const std::vector<int64_t>& strides, const std::vector<int64_t>& pads) {
  return At("Conv", {x, weights, bias}, {{"strides", strides}, {"pads", pads}});
}

Tensor Sum(const Arg& x, std::vector<int64_t> axes, bool keep_dims) {
  std::vector<Arg> operands = {x};
  if (!axes.empty()) operands.emplace_back(std::move(axes), x.at());
  return At("ReduceSum", operands, {{"keepdims", int64_t{keep_dims}}});
}
Tensor Mean(const Arg& x, std::vector<int64_t> axes, bool keep_dims) {
  std::vector<Arg> operands = {x};
  if (!axes.empty()) operands.emplace_back(std::move(axes), x.at());
  return At("ReduceMean", operands, {{"keepdims", int64_t{keep_dims}}});
}

Tensor Reshape(const Arg& x, std::vector<int64_t> shape) {
  return At("Reshape", {x, Arg(std::move(shape), x.at())});
}
Tensor Transpose(const Arg& x, std::vector<int64_t> perm) {
  return At("Transpose", {x}, {{"perm", std::move(perm)}});
}
Tensor Concat(const std::vector<Arg>& parts, int64_t axis) {
  if (parts.empty()) return Tensor();
  return At("Concat", parts, {{"axis", axis}});
}
Tensor Slice(const Arg& x, std::vector<int64_t> starts, std::vector<int64_t> ends,
             std::vector<int64_t> axes) {
  return At("Slice", {x, Arg(std::move(starts), x.at()), Arg(std::move(ends), x.at()),
                      Arg(std::move(axes), x.at())});
}
Tensor Gather(const Arg& x, const Arg& indices, int64_t axis) {
  return At("Gather", {x, indices}, {{"axis", axis}});
}

}  // namespace reprise::lazy
