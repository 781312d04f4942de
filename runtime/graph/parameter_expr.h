// ParameterExpr: how a parameter that a recipe uses is made from the parameters of the model.
//
// The prepare program of a recipe is its list of these expressions: immutable trees whose leaves
// are the model's own parameters (by index, never by value) and constants, and whose inner nodes
// are ops that depend on nothing else: transpose, dequantise, concatenate, pack for a kernel.
// Two recipes that need the same expression of the same model version share one result.
//
// Threads: immutable, share freely.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/graph/attribute.h"

namespace reprise {

class ParameterExpr;
using ParameterExprPtr = std::shared_ptr<const ParameterExpr>;

class ParameterExpr {
 public:
  // Returns the model's parameter number `index`.
  static ParameterExprPtr Leaf(int index, DType dtype, Shape shape);
  // Returns a constant that a prepare op reads (an axis list, a scale).
  static ParameterExprPtr Constant(Tensor value);
  // Returns `op` over `inputs` (an input may be nullptr where an optional one is left out). `dtype`
  // and `shape` describe the op's only output. Ops of a device (packing) have opaque layouts:
  // dtype kUInt8 and the shape [bytes].
  static ParameterExprPtr Apply(std::string op, Attributes attributes,
                                std::vector<ParameterExprPtr> inputs, DType dtype, Shape shape);

  bool is_leaf() const { return index_ >= 0; }
  bool is_constant() const { return index_ < 0 && op_.empty(); }
  int index() const { return index_; }
  const Tensor& constant() const { return constant_; }
  const std::string& op() const { return op_; }
  const Attributes& attributes() const { return attributes_; }
  const std::vector<ParameterExprPtr>& inputs() const { return inputs_; }
  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }

  // Returns canonical text, `Transpose{perm=[1, 0]}(p3)`: equal exactly when the expressions are
  // equal.
  const std::string& text() const { return text_; }

 private:
  ParameterExpr() = default;

  int index_ = -1;
  Tensor constant_;
  std::string op_;
  Attributes attributes_;
  std::vector<ParameterExprPtr> inputs_;
  DType dtype_ = DType::kUndefined;
  Shape shape_;
  std::string text_;
};

}  // namespace reprise
