#include "runtime/graph/parameter_expr.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/graph/text.h"

namespace reprise {

ParameterExprPtr ParameterExpr::Leaf(int index, DType dtype, Shape shape) {
  std::shared_ptr<ParameterExpr> expr(new ParameterExpr());
  expr->index_ = index;
  expr->dtype_ = dtype;
  expr->shape_ = std::move(shape);
  expr->text_ = absl::StrCat("p", index);
  return expr;
}

ParameterExprPtr ParameterExpr::Constant(Tensor value) {
  std::shared_ptr<ParameterExpr> expr(new ParameterExpr());
  expr->dtype_ = value.dtype();
  expr->shape_ = value.shape();
  expr->text_ = PrintTensor(value);
  expr->constant_ = std::move(value);
  return expr;
}

ParameterExprPtr ParameterExpr::Apply(std::string op, Attributes attributes,
                                      std::vector<ParameterExprPtr> inputs, DType dtype,
                                      Shape shape) {
  std::shared_ptr<ParameterExpr> expr(new ParameterExpr());
  expr->text_ =
      absl::StrCat(op, PrintAttributes(attributes), "(",
                   absl::StrJoin(inputs, ", ",
                                 [](std::string* out, const ParameterExprPtr& input) {
                                   absl::StrAppend(out, input == nullptr ? "_" : input->text());
                                 }),
                   ")");
  expr->op_ = std::move(op);
  expr->attributes_ = std::move(attributes);
  expr->inputs_ = std::move(inputs);
  expr->dtype_ = dtype;
  expr->shape_ = std::move(shape);
  return expr;
}

}  // namespace reprise
