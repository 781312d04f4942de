#include "runtime/onnx/file_values.h"

#include "absl/strings/str_cat.h"
#include "runtime/graph/graph.h"

namespace reprise {

std::string Quoted(absl::string_view kind, absl::string_view name) {
  return absl::StrCat(kind, " '", name, "'");
}

absl::Status FileValues::Define(const std::string& name, ValueId value) {
  if (name.empty()) return absl::InvalidArgumentError("a value has no name");
  if (!by_name.emplace(name, value).second) {
    return absl::InvalidArgumentError(absl::StrCat("value '", name, "' is defined twice"));
  }
  return absl::OkStatus();
}

absl::Status FileValues::DefineUnread(const std::string& name) {
  return Define(name, model.graph.AddInput(name, DType::kUndefined, {}));
}

int FileValues::KeepParameter(Tensor tensor) {
  model.parameters.push_back(std::move(tensor));
  return static_cast<int>(model.parameters.size()) - 1;
}

ValueId FileValues::AddTensor(const std::string& name, Tensor tensor) {
  const DType dtype = tensor.dtype();
  if (!IsParameterLike(dtype, tensor.num_elements())) {
    return model.graph.AddConstant(name, std::move(tensor));
  }
  const Shape shape = tensor.shape();
  const int index = KeepParameter(std::move(tensor));
  return model.graph.AddParameter(name, ParameterExpr::Leaf(index, dtype, shape));
}

void FileValues::MakeParameters(ValueId first) {
  for (ValueId id = first; id < static_cast<ValueId>(model.graph.num_values()); ++id) {
    const Tensor* constant = model.graph.ConstantOf(id);
    if (constant == nullptr || !IsParameterLike(constant->dtype(), constant->num_elements())) {
      continue;
    }
    const Tensor tensor = *constant;
    const int index = KeepParameter(tensor);
    model.graph.ReplaceWithParameter(id,
                                     ParameterExpr::Leaf(index, tensor.dtype(), tensor.shape()));
  }
}

bool FileValues::IsReason(const absl::Status& status) {
  return absl::IsUnimplemented(status) || absl::IsInvalidArgument(status);
}

absl::Status FileValues::NoteOrReturn(const absl::Status& status) {
  if (!IsReason(status)) return status;
  reasons.Add(status.code(), std::string(status.message()));
  return absl::OkStatus();
}

}  // namespace reprise
