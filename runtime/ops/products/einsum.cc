#include "runtime/ops/products/einsum.h"

#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "runtime/base/status_macros.h"
#include "runtime/base/work_watch.h"
#include "runtime/ops/kit/typed.h"

namespace reprise::ops {
namespace {

// Labels are letters (0 to 51) and the dims of the ellipsis (52 and up, numbered from the right).
constexpr int kLetters = 52;
constexpr int kMaxLabels = 96;

// Moving on to the next product costs as much as this many steps of a plain loop.
constexpr int64_t kStepsOfProduct = 8;
constexpr int64_t kProductsWatched = 1 << 14;

template <typename Number>
struct Equation {
  std::vector<std::vector<int>> operands;  // the labels of each operand's dims
  std::vector<int> output;
  std::vector<int> summed;
  std::array<Number, kMaxLabels> sizes;
};

// Returns the labels of one term, for an operand of `rank`; for the output, `rank` is -1 and the
// ellipsis stands for `ellipsis` dims.
absl::StatusOr<std::vector<int>> ParseTerm(absl::string_view term, int64_t rank,
                                           int64_t& ellipsis) {
  std::vector<int> labels;
  int64_t letters = 0;
  for (char c : term) letters += absl::ascii_isalpha(static_cast<unsigned char>(c)) ? 1 : 0;
  for (size_t i = 0; i < term.size(); ++i) {
    const unsigned char c = static_cast<unsigned char>(term[i]);
    if (absl::ascii_isalpha(c)) {
      labels.push_back(absl::ascii_islower(c) ? c - 'a' : c - 'A' + 26);
    } else if (term.substr(i, 3) == "...") {
      const int64_t dims = rank < 0 ? ellipsis : rank - letters;
      if (dims < 0 || dims > kMaxLabels - kLetters) {
        return absl::InvalidArgumentError(absl::StrCat("term '", term, "' does not fit"));
      }
      for (int64_t d = dims; d-- > 0;) labels.push_back(kLetters + static_cast<int>(d));
      ellipsis = std::max(ellipsis, dims);
      i += 2;
    } else {
      return absl::InvalidArgumentError(absl::StrCat("term '", term, "' cannot be read"));
    }
  }
  if (rank >= 0 && static_cast<int64_t>(labels.size()) != rank) {
    return absl::InvalidArgumentError(
        absl::StrCat("term '", term, "' does not fit an operand of rank ", rank));
  }
  return labels;
}

// `shape(i)` is the shape of operand i.
template <typename Number, typename F>
absl::StatusOr<Equation<Number>> ParseEquation(const Node& node, size_t count, F shape) {
  std::string text = node.attributes.String("equation", "");
  text.erase(std::remove(text.begin(), text.end(), ' '), text.end());
  const size_t arrow = text.find("->");
  const absl::string_view left = absl::string_view(text).substr(0, arrow);
  const std::vector<absl::string_view> terms = absl::StrSplit(left, ',');
  if (terms.size() != count) {
    return absl::InvalidArgumentError(
        absl::StrCat("equation '", text, "' has ", terms.size(), " terms for ", count, " inputs"));
  }
  Equation<Number> equation;
  equation.sizes.fill(-1);
  std::array<int, kMaxLabels> uses{};
  int64_t ellipsis = 0;
  for (size_t i = 0; i < count; ++i) {
    const auto& dims = shape(i);
    ASSIGN_OR_RETURN(std::vector<int> labels,
                     ParseTerm(terms[i], static_cast<int64_t>(dims.size()), ellipsis));
    for (size_t d = 0; d < labels.size(); ++d) {
      ++uses[labels[d]];
      Number& size = equation.sizes[labels[d]];
      if (size != -1 && dims[d] == size) continue;
      if (size == -1 || size == 1) {
        size = dims[d];
      } else if (dims[d] != 1) {
        return absl::InvalidArgumentError(
            absl::StrCat("sizes ", size, " and ", dims[d], " of one label differ"));
      }
    }
    equation.operands.push_back(std::move(labels));
  }
  if (arrow != std::string::npos) {
    ASSIGN_OR_RETURN(equation.output,
                     ParseTerm(absl::string_view(text).substr(arrow + 2), -1, ellipsis));
  } else {
    // The default output: the ellipsis, then labels used once, in alphabetical order.
    for (int64_t d = ellipsis; d-- > 0;) equation.output.push_back(kLetters + static_cast<int>(d));
    for (int label = 26; label < kLetters; ++label) {
      if (uses[label] == 1) equation.output.push_back(label);
    }
    for (int label = 0; label < 26; ++label) {
      if (uses[label] == 1) equation.output.push_back(label);
    }
  }
  std::array<bool, kMaxLabels> in_output{};
  for (int label : equation.output) {
    if (uses[label] == 0 || in_output[label]) {
      return absl::InvalidArgumentError(
          absl::StrCat("the output of equation '", text, "' has a wrong label"));
    }
    in_output[label] = true;
  }
  for (int label = 0; label < kMaxLabels; ++label) {
    if (uses[label] > 0 && !in_output[label]) equation.summed.push_back(label);
  }
  return equation;
}

// Moves `index` on by one over `labels`, and each operand's offset with it. Returns false after the
// last.
bool Advance(const std::vector<int>& labels, const Equation<int64_t>& equation,
             const std::vector<std::array<int64_t, kMaxLabels>>& strides, Shape& index,
             std::vector<int64_t>& offsets) {
  for (size_t d = labels.size(); d-- > 0;) {
    const int label = labels[d];
    for (size_t i = 0; i < offsets.size(); ++i) offsets[i] += strides[i][label];
    if (++index[d] < equation.sizes[label]) return true;
    for (size_t i = 0; i < offsets.size(); ++i) {
      offsets[i] -= strides[i][label] * equation.sizes[label];
    }
    index[d] = 0;
  }
  return false;
}

}  // namespace

absl::Status EinsumRule(InferContext& context) {
  RETURN_IF_ERROR(CheckType(context, 0, kNumbers));
  for (size_t i = 1; i < context.num_inputs(); ++i) RETURN_IF_ERROR(CheckSameType(context, 0, i));
  ASSIGN_OR_RETURN(
      const Equation<Size> equation,
      ParseEquation<Size>(context.node(), context.num_inputs(),
                          [&](size_t i) -> const SizeList& { return context.shape(i); }));
  SizeList shape;
  for (int label : equation.output) shape.push_back(equation.sizes[label]);
  context.SetOutput(0, context.dtype(0), std::move(shape));
  return absl::OkStatus();
}

absl::Status EinsumKernel(const KernelContext& context) {
  const size_t count = context.inputs.size();
  ASSIGN_OR_RETURN(const Equation<int64_t> equation,
                   ParseEquation<int64_t>(context.node, count, [&](size_t i) -> const Shape& {
                     return context.inputs[i].shape;
                   }));
  const MutableTensorView& out = context.outputs[0];
  std::vector<std::array<int64_t, kMaxLabels>> strides(count);
  bool empty_sum = false;
  for (int label : equation.summed) empty_sum |= equation.sizes[label] == 0;
  for (size_t i = 0; i < count; ++i) {
    strides[i].fill(0);
    const Shape dense = Strides(context.inputs[i].shape);
    for (size_t d = 0; d < dense.size(); ++d) {
      // A label that occurs twice walks the diagonal: its strides add up.
      if (context.inputs[i].shape[d] != 1) strides[i][equation.operands[i][d]] += dense[d];
    }
  }
  if (out.num_elements() == 0) return absl::OkStatus();
  return Dispatch(NumericList{}, out.dtype, [&]<typename T>() {
    using Sum = std::conditional_t<std::is_integral_v<T>, uint64_t, double>;
    Shape out_index(equation.output.size(), 0);
    std::vector<int64_t> offsets(count, 0);
    T* y = out.as<T>();
    int64_t products = 0;
    do {
      Sum sum = 0;
      Shape sum_index(equation.summed.size(), 0);
      if (!empty_sum) {
        do {
          if (++products % kProductsWatched == 0) WatchWork(kProductsWatched * kStepsOfProduct);
          Sum product = 1;
          for (size_t i = 0; i < count; ++i) {
            product *=
                static_cast<Sum>(static_cast<Compute<T>>(context.inputs[i].as<T>()[offsets[i]]));
          }
          sum += product;
        } while (Advance(equation.summed, equation, strides, sum_index, offsets));
      }
      if constexpr (std::is_integral_v<T>) {
        *y++ = static_cast<T>(sum);
      } else {
        *y++ = static_cast<T>(static_cast<Compute<T>>(sum));
      }
    } while (Advance(equation.output, equation, strides, out_index, offsets));
  });
}

}  // namespace reprise::ops
