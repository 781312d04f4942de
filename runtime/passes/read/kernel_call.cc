#include "runtime/passes/read/kernel_call.h"

#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/graph/text.h"
#include "runtime/ops/kit/element_bits.h"
#include "runtime/ops/kit/op.h"

namespace reprise {
namespace {

class Kernel final : public SizeFunction {
 public:
  static constexpr int64_t kAny = -1;  // any element, and none has a number

  Kernel(const Node& node, std::vector<CallOperand> operands, size_t result, int64_t element,
         DType dtype)
      : node_(node),
        operands_(std::move(operands)),
        result_(result),
        element_(element),
        dtype_(dtype) {
    key_ = absl::StrCat(node.op, PrintAttributes(node.attributes));
    for (const CallOperand& operand : operands_) {
      absl::StrAppend(&key_, ".", DTypeName(operand.dtype));
      if (!operand.shape.empty()) absl::StrAppend(&key_, ShapeToString(operand.shape));
    }
    if (result > 0 || element != 0) absl::StrAppend(&key_, "#", result, ".", element);
  }

  const std::string& key() const override { return key_; }
  std::optional<int64_t> At(absl::Span<const int64_t> numbers) const override {
    if (element_ == kAny) return std::nullopt;
    std::vector<std::optional<Tensor>> inputs;
    for (const CallOperand& operand : operands_) {
      if (operand.dtype == DType::kUndefined) {
        inputs.emplace_back();
        continue;
      }
      const auto count = static_cast<size_t>(NumElements(operand.shape));
      inputs.emplace_back(TensorOfElements(operand.dtype, operand.shape, numbers.first(count)));
      numbers.remove_prefix(count);
    }
    constexpr int64_t kMostBytes = 1 << 20;
    const auto results = Evaluate(node_, inputs, kMostBytes);
    if (!results.ok() || element_ >= (*results)[result_].num_elements()) return std::nullopt;
    const Tensor& result = (*results)[result_];
    return ElementBits(result.dtype(), result.data(), element_);
  }
  Interval range() const override { return dtype_ == DType::kBool ? Interval{0, 1} : Interval{}; }
  CalledKernel called() const { return {&node_, element_ == kAny, operands_, dtype_}; }

 private:
  const Node node_;
  const std::vector<CallOperand> operands_;
  const size_t result_;
  const int64_t element_;
  const DType dtype_;
  std::string key_;
};

}  // namespace

std::shared_ptr<const SizeFunction> KernelCall(const Node& node, std::vector<CallOperand> operands,
                                               size_t result, int64_t element, DType dtype) {
  return std::make_shared<Kernel>(node, std::move(operands), result, element, dtype);
}

std::shared_ptr<const SizeFunction> OpaqueCall(const Node& node, std::vector<CallOperand> operands,
                                               size_t result, DType dtype) {
  return std::make_shared<Kernel>(node, std::move(operands), result, Kernel::kAny, dtype);
}

CalledKernel KernelOf(const SizeFunction& function) {
  const auto* const kernel = dynamic_cast<const Kernel*>(&function);
  return kernel == nullptr ? CalledKernel() : kernel->called();
}

}  // namespace reprise
