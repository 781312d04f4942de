#include "runtime/engine/model/split_axes.h"

#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/memory_net.h"
#include "runtime/base/status_macros.h"
#include "runtime/engine/types/input_signature.h"
#include "runtime/shapes/dim_expression.h"

namespace reprise {

SplitAxes::SplitAxes(std::vector<ModelIo> inputs, const std::map<std::string, std::string>& derived,
                     Whole whole)
    : inputs_(std::move(inputs)),
      recipe_inputs_(std::move(whole.recipe_inputs)),
      tail_(std::move(whole.tail)) {
  std::set<std::string> plain;
  for (const ModelIo& input : inputs_) {
    if (input.optional) continue;
    for (const Dim& dim : input.dims) {
      if (ExpressionSymbols(dim.symbol).empty()) plain.insert(dim.symbol);
    }
  }
  for (const ModelIo& input : inputs_) {
    std::vector<Known>& dims = known_.emplace_back(input.dims.size());
    for (size_t d = 0; d < dims.size(); ++d) {
      const Dim& dim = input.dims[d];
      if (input.optional || dim.is_constant()) continue;
      dims[d].symbol = absl::StrCat(input.name, ":", d);
      ++num_symbols_;
      const std::vector<std::string> terms = ExpressionSymbols(dim.symbol);
      const bool is_sum = !terms.empty() && absl::c_all_of(terms, [&](const std::string& term) {
        return plain.contains(term);
      });
      if (is_sum) dims[d].follows = dim.symbol;
      if (const auto sum = derived.find(dim.symbol); sum != derived.end()) {
        dims[d].follows = sum->second;
      }
    }
  }
  Apply(whole.graph);
  graph_ = std::move(whole.graph);
}

void SplitAxes::Apply(Graph& split) const {
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (inputs_[i].optional) continue;
    const ValueId value = split.FindValue(inputs_[i].name);
    if (value == kNone || split.value(value).kind != Value::Kind::kInput) continue;
    std::vector<Dim>& dims = split.value(value).dims;
    for (size_t d = 0; d < dims.size(); ++d) {
      dims[d] = inputs_[i].dims[d];
      if (!known_[i][d].symbol.empty()) dims[d].symbol = known_[i][d].symbol;
    }
  }
}

std::vector<std::vector<Dim>> SplitAxes::Dims() const {
  std::vector<std::vector<Dim>> all;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (inputs_[i].optional) continue;
    std::vector<Dim>& dims = all.emplace_back(inputs_[i].dims);
    for (size_t d = 0; d < dims.size(); ++d) {
      if (!known_[i][d].symbol.empty()) dims[d].symbol = known_[i][d].symbol;
    }
  }
  return all;
}

void SplitAxes::Learn(const MergedSymbols& found) {
  std::map<std::string, int> classes;
  for (std::vector<Known>& dims : known_) {
    for (Known& dim : dims) {
      if (dim.symbol.empty()) continue;
      if (const auto one = found.representative.find(dim.symbol);
          one != found.representative.end()) {
        dim.joined = classes.emplace(one->second, static_cast<int>(classes.size())).first->second;
      }
      // A dim that is accepted at 1 may broadcast with another size as well.
      const auto fixed = found.fixed.find(dim.symbol);
      if (fixed != found.fixed.end() && fixed->second != 1 && !found.one_row.contains(dim.symbol)) {
        dim.fixed = fixed->second;
      }
    }
  }
}

bool SplitAxes::MatchesDerived(absl::Span<const Shape* const> shapes) const {
  std::map<std::string, int64_t> sizes;
  std::set<std::string> unclear;  // symbols of several sizes
  for (size_t i = 0; i < known_.size(); ++i) {
    for (size_t d = 0; d < known_[i].size(); ++d) {
      if (known_[i][d].symbol.empty() || !known_[i][d].follows.empty()) continue;
      const std::string& declared = inputs_[i].dims[d].symbol;
      if (sizes.emplace(declared, (*shapes[i])[d]).first->second != (*shapes[i])[d]) {
        unclear.insert(declared);
      }
    }
  }
  for (size_t i = 0; i < known_.size(); ++i) {
    for (size_t d = 0; d < known_[i].size(); ++d) {
      const std::string& follows = known_[i][d].follows;
      if (follows.empty() || (*shapes[i])[d] == 1) continue;
      const std::vector<std::string> terms = ExpressionSymbols(follows);
      const bool is_clear = absl::c_all_of(terms, [&](const std::string& term) {
        return sizes.contains(term) && !unclear.contains(term);
      });
      if (!is_clear) continue;
      const absl::StatusOr<int64_t> size = DimSize({.symbol = follows}, sizes);
      if (!size.ok() || *size != (*shapes[i])[d]) return false;
    }
  }
  return true;
}

std::optional<std::map<std::string, int64_t>> SplitAxes::Match(
    absl::Span<const Shape* const> shapes) const {
  std::map<std::string, int64_t> sizes;
  std::map<int, int64_t> size_of_class;
  for (size_t i = 0; i < known_.size(); ++i) {
    if (inputs_[i].optional) continue;
    if (shapes[i] == nullptr || shapes[i]->size() != known_[i].size()) return std::nullopt;
    for (size_t d = 0; d < known_[i].size(); ++d) {
      const int64_t size = (*shapes[i])[d];
      const Known& dim = known_[i][d];
      const Dim& declared = inputs_[i].dims[d];
      if (size < 0 || (declared.is_constant() && declared.size != size)) return std::nullopt;
      if (dim.fixed >= 0 && dim.fixed != size) return std::nullopt;
      if (dim.symbol.empty()) continue;
      sizes.emplace(dim.symbol, size);
      if (dim.joined < 0 || size == 1) continue;
      if (size_of_class.emplace(dim.joined, size).first->second != size) return std::nullopt;
    }
  }
  if (!MatchesDerived(shapes)) return std::nullopt;
  return sizes;
}

std::string SplitAxes::Disagreement(absl::Span<const Shape* const> shapes) const {
  struct Seen {
    int64_t size;
    size_t input, dim;
  };
  std::map<int, Seen> seen_of_class;
  for (size_t i = 0; i < known_.size(); ++i) {
    if (inputs_[i].optional || shapes[i] == nullptr) continue;
    const ModelIo& input = inputs_[i];
    for (size_t d = 0; d < known_[i].size() && d < shapes[i]->size(); ++d) {
      const int64_t size = (*shapes[i])[d];
      if (known_[i][d].joined < 0 || size == 1) continue;
      const Seen& first =
          seen_of_class.emplace(known_[i][d].joined, Seen{size, i, d}).first->second;
      if (first.size == size) continue;
      return absl::StrCat("input '", input.name, "' has shape ", ShapeToString(*shapes[i]),
                          ", the model expects ", DimsToString(input.dims), ": '",
                          input.dims[d].symbol, "' is ", size, " here and ", first.size,
                          " in input '", inputs_[first.input].name, "' (dims ", d, " and ",
                          first.dim, ")");
    }
  }
  return "";
}

absl::StatusOr<std::shared_ptr<const ModelVariant>> SplitAxes::Variant() const {
  MutexLock lock(mutex_);
  if (variant_ != nullptr) return variant_;
  auto variant = std::make_shared<ModelVariant>();
  RETURN_IF_ERROR(WithinMemory([] { return "taking the axes of a model apart"; },
                               [&] {
                                 variant->graph = graph_;
                                 variant->fingerprint = FingerprintGraph(*variant->graph);
                                 variant->recipe_inputs = recipe_inputs_;
                                 return absl::OkStatus();
                               }));
  variant->tail = tail_;
  variant_ = std::move(variant);
  return variant_;
}

absl::Status WithMisfit(absl::Status status, const std::string& misfit) {
  if (misfit.empty() || !absl::IsInvalidArgument(status)) return status;
  return absl::InvalidArgumentError(
      absl::StrCat(misfit, "; the model does not take these sizes: ", status.message()));
}

}  // namespace reprise
