// Ops over tensors of an OpStream. Any op of the table (runtime/ops/kit/op.h), in its newest form,
// and any registered one can be called by name; those that programs use most have functions.
//
//   Tensor y = Softmax(MatMul(q, Transpose(k, {1, 0})) / 8, -1);
//   Tensor z = Op("LayerNormalization", {x, scale, bias}, {{"epsilon", 1e-5f}});
//   Tensor c = Op("acme.Clamp01", {x});
//
// Operands broadcast as numpy's do; a number has the dtype of the op's first tensor.
#pragma once

#include <vector>

#include "runtime/lazy/tensor.h"

namespace reprise::lazy {

// Returns result 0 of an op, or all of `results`. Attributes are named as in ONNX.
Tensor Op(absl::string_view op, const std::vector<Arg>& operands, Attributes attributes = {},
          SourceLocation at = SourceLocation::current());
std::vector<Tensor> Ops(absl::string_view op, const std::vector<Arg>& operands, size_t results,
                        Attributes attributes = {}, SourceLocation at = SourceLocation::current());

Tensor operator+(const Arg& a, const Arg& b);
Tensor operator-(const Arg& a, const Arg& b);
Tensor operator*(const Arg& a, const Arg& b);
Tensor operator/(const Arg& a, const Arg& b);
Tensor operator-(const Arg& a);
Tensor Min(const Arg& a, const Arg& b);
Tensor Max(const Arg& a, const Arg& b);
Tensor Pow(const Arg& a, const Arg& b);
Tensor Equal(const Arg& a, const Arg& b);
Tensor Less(const Arg& a, const Arg& b);
Tensor Greater(const Arg& a, const Arg& b);
Tensor Where(const Arg& condition, const Arg& a, const Arg& b);

Tensor Abs(const Arg& x);
Tensor Exp(const Arg& x);
Tensor Log(const Arg& x);
Tensor Sqrt(const Arg& x);
Tensor Erf(const Arg& x);
Tensor Relu(const Arg& x);
Tensor Gelu(const Arg& x);
Tensor Sigmoid(const Arg& x);
Tensor Tanh(const Arg& x);
Tensor Cast(const Arg& x, DType dtype);

// Returns [..., m, k] times [..., k, n].
Tensor MatMul(const Arg& a, const Arg& b);
Tensor Softmax(const Arg& x, int64_t axis = -1);
// Normalises over the last dim.
Tensor LayerNorm(const Arg& x, const Arg& scale, const Arg& bias, float epsilon = 1e-5f);
// Convolves [batch, channels, height, width] with weights [out, in, height, width].
Tensor Conv2d(const Arg& x, const Arg& weights, const Arg& bias,
              const std::vector<int64_t>& strides = {1, 1},
              const std::vector<int64_t>& pads = {0, 0, 0, 0});

// Sums over `axes`; over all dims where there are none.
Tensor Sum(const Arg& x, std::vector<int64_t> axes = {}, bool keep_dims = true);
Tensor Mean(const Arg& x, std::vector<int64_t> axes = {}, bool keep_dims = true);

// Reshapes; a size of -1 is the rest.
Tensor Reshape(const Arg& x, std::vector<int64_t> shape);
Tensor Transpose(const Arg& x, std::vector<int64_t> perm);
Tensor Concat(const std::vector<Arg>& parts, int64_t axis);
// Returns [starts, ends) along `axes`.
Tensor Slice(const Arg& x, std::vector<int64_t> starts, std::vector<int64_t> ends,
             std::vector<int64_t> axes);
Tensor Gather(const Arg& x, const Arg& indices, int64_t axis = 0);

}  // namespace reprise::lazy
