#include "runtime/engine/parameter_store.h"

#include "absl/strings/str_cat.h"
#include "runtime/base/digest128.h"
#include "runtime/base/status_macros.h"

namespace reprise {

absl::StatusOr<std::shared_ptr<const ParameterTable>> ParameterStore::TableFor(
    const std::shared_ptr<const Recipe>& recipe) {
  MutexLock lock(mutex_);
  if (auto it = tables_.find(recipe.get());
      it != tables_.end() && it->second.recipe.lock() == recipe) {
    return it->second.table;
  }
  std::vector<Tensor> tensors;
  tensors.reserve(recipe->parameters.size());
  for (const ParameterExprPtr& expression : recipe->parameters) {
    auto it = prepared_.find(expression->text());
    if (it == prepared_.end()) {
      ASSIGN_OR_RETURN(Tensor tensor, Evaluate(*expression));
      it = prepared_.emplace(expression->text(), std::move(tensor)).first;
    }
    tensors.push_back(it->second);
  }
  auto table = std::make_shared<const ParameterTable>(std::move(tensors));
  // Recipes of other models and of probes go without a word; their tables are swept here.
  absl::erase_if(tables_, [](const auto& known) { return known.second.recipe.expired(); });
  tables_[recipe.get()] = {recipe, table};
  return table;
}

absl::StatusOr<Tensor> ParameterStore::Evaluate(const ParameterExpr& expression) {
  if (expression.is_leaf()) {
    if (expression.index() >= static_cast<int>(leaves_.size())) {
      return absl::InternalError(absl::StrCat("parameter ", expression.index(), " of ",
                                              leaves_.size(), " does not exist"));
    }
    return leaves_[expression.index()];
  }
  if (expression.is_constant()) return expression.constant();
  std::vector<std::optional<Tensor>> inputs;
  for (const ParameterExprPtr& input : expression.inputs()) {
    inputs.emplace_back();
    if (input == nullptr) continue;
    ASSIGN_OR_RETURN(inputs.back(), Evaluate(*input));
  }
  return device_->Prepare(expression.op(), expression.attributes(), inputs);
}

void ParameterStore::Forget(const Recipe& recipe) {
  MutexLock lock(mutex_);
  tables_.erase(&recipe);
}

std::string ParameterStore::Digest() const {
  Digest128 digest;
  for (const Tensor& leaf : leaves_) {
    digest.Add(absl::StrCat(std::string(DTypeName(leaf.dtype())), ShapeToString(leaf.shape())));
    digest.Add({static_cast<const char*>(leaf.data()), leaf.bytes()});
  }
  return digest.Hex();
}

int64_t ParameterStore::leaf_bytes() const {
  int64_t bytes = 0;
  for (const Tensor& leaf : leaves_) bytes += leaf.bytes();
  return bytes;
}

int64_t ParameterStore::prepared_bytes() const {
  MutexLock lock(mutex_);
  int64_t bytes = 0;
  for (const auto& [text, tensor] : prepared_) bytes += tensor.bytes();
  return bytes;
}

}  // namespace reprise
