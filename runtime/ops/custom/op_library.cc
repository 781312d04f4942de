#include "runtime/ops/custom/op_library.h"

#include <dlfcn.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/graph/text.h"
#include "runtime/ops/custom/registered_op.h"
#include "runtime/ops/custom/reprise_op.h"
#include "runtime/ops/kit/onnx_types.h"
#include "runtime/shapes/term.h"

// A call as a library sees it.
struct reprise_op_call {
  const reprise_op& op;
  const reprise::Attributes& attributes;
  reprise::InferContext* shapes = nullptr;  // null in `compute`
  std::string why;
};

namespace reprise {
namespace {

// A shape rule may ask for this many dims: the dims of results are checked afterwards.
constexpr int32_t kMostDims = 64;

template <typename T>
const T* AttributeOf(const reprise_op_call* call, const char* name) {
  return name == nullptr ? nullptr : call->attributes.Get<T>(name);
}

int AttributeInt(const reprise_op_call* call, const char* name, int64_t* value) {
  const auto* found = AttributeOf<int64_t>(call, name);
  if (found != nullptr) *value = *found;
  return found != nullptr;
}

int AttributeFloat(const reprise_op_call* call, const char* name, float* value) {
  const auto* found = AttributeOf<float>(call, name);
  if (found != nullptr) *value = *found;
  return found != nullptr;
}

int AttributeString(const reprise_op_call* call, const char* name, const char** value) {
  const auto* found = AttributeOf<std::string>(call, name);
  if (found != nullptr) *value = found->c_str();
  return found != nullptr;
}

int AttributeInts(const reprise_op_call* call, const char* name, const int64_t** values,
                  size_t* count) {
  const auto* found = AttributeOf<std::vector<int64_t>>(call, name);
  if (found == nullptr) return 0;
  *values = found->data();
  *count = found->size();
  return 1;
}

int Fail(reprise_op_call* call, const char* why) {
  call->why = why == nullptr ? "" : why;
  return 1;
}

int SetOutput(reprise_op_call* call, int32_t index, int32_t dtype, int32_t rank,
              const int64_t* dims) {
  if (call->shapes == nullptr) return Fail(call, "sets the shape of an output while it computes");
  const absl::StatusOr<DType> type = ops::DTypeFromOnnx(dtype);
  const bool has_dims = rank == 0 || dims != nullptr;
  const bool is_output = index >= 0 && (call->op.max_outputs < 0 || index < call->op.max_outputs);
  if (!is_output || !type.ok() || rank < 0 || rank > kMostDims || !has_dims) {
    return Fail(call, "sets an output that does not exist, or to an unknown type");
  }
  SizeList shape;
  for (int32_t d = 0; d < rank; ++d) {
    if (dims[d] < 0) return Fail(call, "sets an output to a shape with a negative dim");
    shape.push_back(dims[d]);
  }
  // Nothing happens where the node leaves the output out.
  call->shapes->SetOutput(static_cast<size_t>(index), *type, std::move(shape));
  return 0;
}

constexpr reprise_op_api kApi = {.version = REPRISE_OP_VERSION,
                                 .attribute_int = AttributeInt,
                                 .attribute_float = AttributeFloat,
                                 .attribute_string = AttributeString,
                                 .attribute_ints = AttributeInts,
                                 .set_output = SetOutput,
                                 .fail = Fail};

using Tensors = absl::InlinedVector<reprise_tensor, 8>;

reprise_tensor TensorOf(DType dtype, const Shape& shape, const void* data) {
  if (dtype == DType::kUndefined) return {};
  return {.dtype = static_cast<int32_t>(ops::OnnxNumber(dtype)),
          .rank = static_cast<int32_t>(shape.size()),
          .dims = shape.data(),
          .data = const_cast<void*>(data)};
}

absl::Status ToStatus(int result, const reprise_op_call& call) {
  if (result == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(call.why.empty() ? absl::StrCat("it failed with ", result)
                                                     : call.why);
}

absl::Status AskShape(const reprise_op& op, InferContext& context) {
  Tensors inputs;
  std::vector<Shape> shapes(context.num_inputs());
  for (size_t i = 0; i < context.num_inputs(); ++i) {
    const Tensor* known = context.constant(i);
    shapes[i] = HintsOf(context.shape(i));
    inputs.push_back(context.has_input(i) ? TensorOf(context.dtype(i), shapes[i],
                                                     known == nullptr ? nullptr : known->data())
                                          : reprise_tensor{});
  }
  reprise_op_call call = {.op = op, .attributes = context.attributes(), .shapes = &context};
  return ToStatus(op.shape(&kApi, &call, static_cast<int32_t>(inputs.size()), inputs.data()), call);
}

// A number of the result's shape as a function of the sizes of all operands' dims.
class LibraryShape final : public SizeFunction {
 public:
  static constexpr size_t kRank = ~size_t{0};  // Stands for the rank where a dim is asked for.

  LibraryShape(const reprise_op& op, const InferContext& context, size_t output, size_t dim)
      : op_(op),
        node_(context.node()),
        output_(output),
        dim_(dim),
        key_(absl::StrCat(node_.op, PrintAttributes(node_.attributes), "#", output, ".",
                          static_cast<int64_t>(dim))) {
    for (size_t i = 0; i < context.num_inputs(); ++i) {
      Operand& operand = operands_.emplace_back();
      if (!context.has_input(i)) continue;
      operand.dtype = context.dtype(i);
      operand.rank = context.shape(i).size();
      if (const Tensor* known = context.constant(i)) operand.known = *known;
      absl::StrAppend(&key_, ".", DTypeName(operand.dtype), operand.rank, "@",
                      reinterpret_cast<uintptr_t>(operand.known.data()));
    }
  }

  const std::string& key() const override { return key_; }
  std::optional<int64_t> At(absl::Span<const int64_t> numbers) const override {
    std::vector<InferContext::Input> inputs;
    for (const Operand& operand : operands_) {
      inputs.push_back({.dtype = operand.dtype, .shape = SizesOf(numbers.first(operand.rank))});
      if (operand.known.dtype() != DType::kUndefined) inputs.back().constant = &operand.known;
      numbers.remove_prefix(operand.rank);
    }
    InferContext context(node_, inputs);
    if (!AskShape(op_, context).ok()) return std::nullopt;
    const SizeList& shape = context.outputs()[output_].shape;
    if (dim_ == kRank) return std::ssize(shape);
    if (dim_ >= shape.size()) return std::nullopt;
    return shape[dim_].hint();
  }
  Interval range() const override { return {.low = 0}; }

 private:
  struct Operand {
    DType dtype = DType::kUndefined;  // kUndefined: left out
    size_t rank = 0;
    Tensor known;
  };
  const reprise_op& op_;
  const Node node_;
  const size_t output_, dim_;
  std::vector<Operand> operands_;
  std::string key_;
};

// Asks the library for the present sizes. Where they follow from sizes of axes, the sizes of the
// results are its function of them.
absl::Status RunShape(const reprise_op& op, InferContext& context) {
  RETURN_IF_ERROR(AskShape(op, context));
  std::vector<Size> sizes;
  SizeTable* table = nullptr;
  for (size_t i = 0; i < context.num_inputs(); ++i) {
    for (const Size size : context.shape(i)) {
      sizes.push_back(size);
      if (!size.is_constant()) table = size.term()->table;
    }
  }
  if (table == nullptr) return absl::OkStatus();
  const std::vector<InferContext::Output> found = context.outputs();
  for (size_t output = 0; output < found.size(); ++output) {
    const auto asked = [&](size_t dim) {
      return table->Call(std::make_shared<LibraryShape>(op, context, output, dim), sizes);
    };
    if (found[output].dtype == DType::kUndefined) continue;
    SizeList shape(found[output].shape.size());
    (void)(asked(LibraryShape::kRank) == std::ssize(shape));  // one rank in the region
    for (size_t d = 0; d < shape.size(); ++d) shape[d] = asked(d);
    context.SetOutput(output, found[output].dtype, std::move(shape));
  }
  return absl::OkStatus();
}

absl::Status RunCompute(const reprise_op& op, const KernelContext& context) {
  Tensors inputs, outputs;
  for (const TensorView& view : context.inputs) {
    inputs.push_back(TensorOf(view.dtype, view.shape, view.data));
  }
  for (const MutableTensorView& view : context.outputs) {
    outputs.push_back(TensorOf(view.dtype, view.shape, view.data));
  }
  reprise_op_call call = {.op = op, .attributes = context.node.attributes};
  return ToStatus(op.compute(&kApi, &call, static_cast<int32_t>(inputs.size()), inputs.data(),
                             static_cast<int32_t>(outputs.size()), outputs.data()),
                  call);
}

}  // namespace

absl::StatusOr<std::vector<std::string>> LoadOpLibrary(const std::string& path) {
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* why = dlerror();
    return absl::NotFoundError(
        absl::StrCat("op library '", path, "' cannot be loaded: ", why == nullptr ? "" : why));
  }
  using Entry = const reprise_op* const* (*)(uint32_t);
  const auto entry = reinterpret_cast<Entry>(dlsym(library, "reprise_op_library"));
  if (entry == nullptr) {
    dlclose(library);
    return absl::InvalidArgumentError(
        absl::StrCat("op library '", path, "' has no function reprise_op_library"));
  }
  const reprise_op* const* ops = entry(REPRISE_OP_VERSION);
  if (ops == nullptr) {
    return absl::FailedPreconditionError(absl::StrCat(
        "op library '", path, "' does not know version ", REPRISE_OP_VERSION, " of the interface"));
  }
  std::vector<std::string> names;
  for (; *ops != nullptr; ++ops) {
    const reprise_op& op = **ops;
    const auto text = [](const char* chars) { return std::string(chars == nullptr ? "" : chars); };
    // The first libraries end before the map.
    if (op.size < offsetof(reprise_op, map) || op.shape == nullptr || op.compute == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat("op library '", path, "': op ", names.size(), " has ", op.size,
                       " bytes or lacks a function; version ", REPRISE_OP_VERSION, " has ",
                       offsetof(reprise_op, map)));
    }
    const absl::Status registered = RegisterOp(
        {.domain = text(op.domain),
         .name = text(op.name),
         .min_inputs = op.min_inputs,
         .max_inputs = op.max_inputs,
         .min_outputs = op.min_outputs,
         .max_outputs = op.max_outputs,
         .elementwise = op.elementwise != 0,
         .map = op.size < sizeof(reprise_op) ? "" : text(op.map),
         .shape = [&op](InferContext& context) { return RunShape(op, context); },
         .kernel = [&op](const KernelContext& context) { return RunCompute(op, context); }});
    if (!registered.ok()) {
      return absl::Status(registered.code(),
                          absl::StrCat("op library '", path, "': ", registered.message()));
    }
    names.push_back(text(op.domain).empty() ? text(op.name)
                                            : absl::StrCat(text(op.domain), ".", text(op.name)));
  }
  return names;
}

}  // namespace reprise
