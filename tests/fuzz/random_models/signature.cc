#include "tests/fuzz/random_models/signature.h"

#include <algorithm>
#include <limits>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "runtime/graph/graph.h"
#include "tests/fuzz/random_models/tensor_numbers.h"

namespace reprise::fuzz {
namespace {

// A dim of a drawn form: a letter stands for an axis (b: batch, s, t, u, v: others), a number for
// itself.
struct Form {
  std::vector<std::pair<const char*, std::pair<DType, const char*>>> inputs;
};

constexpr DType kF = DType::kFloat32, kI = DType::kInt64;

const std::vector<Form>& Forms() {
  static const auto* const forms = new std::vector<Form>{
      {{{"ids", {kI, "bs"}}, {"mask", {kI, "bs"}}}},
      {{{"ids", {kI, "bs"}}, {"mask", {kI, "bs"}}, {"ids_type", {kI, "bs"}}}},
      {{{"x", {kF, "bs8"}}}},
      {{{"x", {kF, "bs8"}}, {"mask", {kI, "bs"}}}},
      {{{"x", {kF, "bs8"}}, {"mask_float", {kF, "bs"}}}},
      {{{"x", {kF, "bs4"}}, {"x_other", {kF, "bt4"}}}},
      {{{"x", {kF, "bs8"}}, {"x_key", {kF, "bt8"}}, {"mask", {kI, "bt"}}}},
      {{{"x", {kF, "b6"}}}},
      {{{"x", {kF, "b6"}}, {"x_other", {kF, "b4"}}}},
      {{{"x", {kF, "bs"}}}},
      {{{"x", {kF, "b4s"}}}},
      {{{"x", {kF, "b4st"}}}},
      {{{"x", {kF, "b488"}}}},
      {{{"x", {kF, "sb8"}}}},
      {{{"x", {kF, "sb8"}}, {"count", {kI, "b"}}}},
      {{{"x", {kF, "s4"}}}},
      {{{"x", {kF, "st"}}}},
      {{{"x", {kF, "b4"}}, {"x_line", {kF, "s4"}}}},
      {{{"x", {kF, "bst"}}, {"ids", {kI, "bs"}}}},
      {{{"x", {kF, "bs4"}}, {"flag", {DType::kBool, "bs"}}}},
      {{{"x", {kF, "1s8"}}}},
      {{{"x", {kF, "bs8"}}, {"mask", {kI, "b1"}}}},
      {{{"ids", {kI, "bs"}}, {"mask", {kI, "bst"}}}},
      {{{"ids", {kI, "bs"}}, {"ids_other", {kI, "bt"}}}},
      {{{"x", {kF, "b2s8"}}, {"mask", {DType::kBool, "b1ss"}}}},
      {{{"bytes", {DType::kUInt8, "bs4"}}}},
      {{{"x_half", {DType::kFloat16, "bs4"}}}},
      {{{"x_scalar", {kF, ""}}, {"x", {kF, "bs4"}}}},
      {{{"x", {kF, "bsss"}}}},
      {{{"x", {kF, "bb"}}, {"x_other", {kF, "b4"}}}},
      {{{"ids", {kI, "bs"}}, {"keep", {kI, "bs"}}}},
      {{{"ids", {DType::kInt32, "bs"}}, {"mask", {DType::kInt32, "bs"}}}},
      {{{"ids", {kI, "bs"}},
        {"mask", {kI, "bs"}},
        {"ids_other", {kI, "bt"}},
        {"mask_other", {kI, "bt"}}}},
      {{{"ids", {kI, "s"}}}},
      {{{"x", {kF, "bs8"}}, {"mask", {DType::kBool, "bs"}}}},
      {{{"x", {kF, "bs8"}}, {"x_one", {kF, "b8"}}}},
      {{{"x", {kF, "b1s"}}}},
      {{{"x", {kF, "b1st"}}}},
      {{{"x", {kF, "bst"}}, {"mask", {kI, "bst"}}}},
      {{{"bytes", {DType::kUInt8, "b3st"}}}},
      {{{"x_half", {DType::kFloat16, "bs8"}}, {"mask", {kI, "bs"}}}},
  };
  return *forms;
}

const char* NameOf(char letter, Chance& chance) {
  switch (letter) {
    case 'b':
      return chance.Of({"batch", "N", "batch_size"});
    case 's':
      return chance.Of({"sequence", "length", "time"});
    case 't':
      return chance.Of({"other", "width"});
    case 'u':
      return "third";
    default:
      return "fourth";
  }
}

}  // namespace

bool IsMaskName(const std::string& name) {
  return absl::StartsWith(name, "mask") || absl::StartsWith(name, "keep");
}

Signature DrawSignature(Chance& chance) {
  const Form& form = chance.Of(Forms());
  std::map<char, size_t> axes;
  std::map<char, std::string> names;
  Signature signature;
  signature.smallest = chance.OneIn(3) ? 4 : 1;
  const bool unnamed = chance.OneIn(12);
  // One name on dims that differ: the part after ~ is not written.
  const bool one_name = chance.OneIn(12);
  for (const auto& [name, type] : form.inputs) {
    DrawnInput& input = signature.inputs.emplace_back();
    input.name = name;
    input.dtype = type.first;
    for (const char* letter = type.second; *letter != 0; ++letter) {
      if (*letter >= '0' && *letter <= '9') {
        input.dims.push_back({.size = *letter - '0'});
        continue;
      }
      const auto [axis, is_new] = axes.try_emplace(*letter, signature.axes.size());
      if (is_new) {
        signature.axes.emplace_back();
        names[*letter] = NameOf(*letter, chance);
        if (one_name && *letter == 't' && names.contains('s')) names['t'] = names['s'] + "~2";
      }
      const std::string symbol =
          unnamed ? absl::StrCat(name, ":", input.dims.size()) : names[*letter];
      std::vector<std::string>& symbols = signature.axes[axis->second];
      if (std::find(symbols.begin(), symbols.end(), symbol) == symbols.end()) {
        symbols.push_back(symbol);
      }
      input.dims.push_back({.symbol = symbol});
    }
  }
  return signature;
}

std::vector<Sizes> DrawTrials(const Signature& signature, Chance& chance) {
  constexpr int kTrials = 5;
  std::vector<Sizes> trials(kTrials);
  std::set<int64_t> taken;
  for (const std::vector<std::string>& symbols : signature.axes) {
    // A few sizes an axis, so that one axis is alike where another differs.
    std::vector<int64_t> sizes;
    while (sizes.size() < 3) {
      const int64_t size = chance.OneIn(3) && signature.smallest == 1
                               ? chance.Of({1, 1, 2, 3})
                               : chance.Of({5, 7, 9, 10, 11, 13, 15, 17, 18, 20});
      if (size == 1 || taken.insert(size).second) sizes.push_back(size);
    }
    for (int t = 0; t < kTrials; ++t) {
      const int64_t size = t == 0 ? sizes[0] : chance.Of(sizes);
      for (const std::string& symbol : symbols) trials[t][symbol] = size;
    }
  }
  return trials;
}

namespace {

// Rows of ones with zeros after them, or elsewhere.
void FillMask(Numbers& numbers, Chance& chance) {
  const int64_t length = numbers.shape.empty() ? 1 : numbers.shape.back();
  if (length == 0) return;
  const int64_t style = chance.Below(6);
  for (size_t row = 0; row < numbers.values.size() / length; ++row) {
    const int64_t ones = style < 2 ? length : 1 + chance.Below(length);
    for (int64_t i = 0; i < length; ++i) {
      const bool one = style == 5   ? i == 0 || chance.OneIn(2)
                       : style == 4 ? i >= length - ones
                                    : i < ones;
      numbers.values[row * length + i] = one ? 1 : 0;
    }
  }
}

}  // namespace

Tensor ContentsOf(const std::string& name, DType dtype, const std::vector<Dim>& dims,
                  const Sizes& sizes, Chance& chance) {
  Numbers numbers = {.dtype = dtype};
  for (const Dim& dim : dims) {
    numbers.shape.push_back(dim.is_constant() ? dim.size : sizes.at(dim.symbol));
  }
  numbers.values.resize(NumElements(numbers.shape));
  if (IsMaskName(name)) {
    FillMask(numbers, chance);
    return ToTensor(numbers);
  }
  const bool round = chance.OneIn(2);
  for (double& value : numbers.values) {
    value = absl::StartsWith(name, "ids")     ? static_cast<double>(chance.Below(kIds))
            : absl::StartsWith(name, "count") ? static_cast<double>(chance.Below(4))
            : dtype == DType::kBool           ? static_cast<double>(chance.Below(2))
            : IsFloating(dtype)               ? chance.Number(1, round)
                                              : static_cast<double>(chance.Below(100));
  }
  return ToTensor(numbers);
}

Tensor MadeWild(const Tensor& tensor, Chance& chance) {
  if (!IsFloating(tensor.dtype())) return tensor;
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const double what = chance.Of({kInfinity, -kInfinity, kInfinity - kInfinity, 3e38, -3e38, 1e6});
  Numbers numbers = FromTensor(tensor);
  for (double& value : numbers.values) {
    if (chance.OneIn(8)) value = what;
  }
  return ToTensor(numbers);
}

std::vector<Tensor> DrawContents(const Graph& graph, const Sizes& sizes, Chance& chance) {
  std::vector<Tensor> contents;
  for (const ValueId id : graph.inputs()) {
    const Value& value = graph.value(id);
    contents.push_back(ContentsOf(value.name, value.dtype, value.dims, sizes, chance));
  }
  return contents;
}

}  // namespace reprise::fuzz
