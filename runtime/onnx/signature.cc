#include "runtime/onnx/signature.h"

#include <set>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/graph/graph.h"
#include "runtime/ops/kit/onnx_types.h"

namespace reprise {
namespace {

bool HasRank(const onnx::ValueInfoProto& info) {
  return info.type().has_tensor_type() && info.type().tensor_type().has_shape();
}

Dim UnnamedDim(const std::string& name, int64_t position) {
  return {.symbol = absl::StrCat(name, ":", position)};
}

// Reads its dtype, and whether it is text.
absl::Status ReadElements(const onnx::ValueInfoProto& info, ModelIo& io) {
  const int32_t number = info.type().tensor_type().elem_type();
  io.text = number == onnx::TensorProto::STRING;
  if (io.text) {
    io.dtype = DType::kInt64;
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(io.dtype, ops::DTypeFromOnnx(number));
  return absl::OkStatus();
}

// Reads the type as far as possible.
absl::Status ReadType(const onnx::ValueInfoProto& info, ModelIo& io) {
  io.name = info.name();
  if (!info.type().has_tensor_type()) {
    return absl::UnimplementedError(info.type().value_case() == onnx::TypeProto::VALUE_NOT_SET
                                        ? "is not a tensor"
                                        : "is a sequence, a map or an Optional, and no tensor");
  }
  const auto& type = info.type().tensor_type();
  RETURN_IF_ERROR(ReadElements(info, io));
  if (!type.has_shape()) return absl::UnimplementedError("has no declared rank");
  for (int i = 0; i < type.shape().dim_size(); ++i) {
    const auto& proto = type.shape().dim(i);
    Dim dim;
    if (proto.has_dim_value() && proto.dim_value() >= 0) {
      dim.size = proto.dim_value();
    } else {
      dim.symbol = std::string(absl::StripAsciiWhitespace(
          absl::string_view(proto.dim_param().data(), proto.dim_param().size())));
      if (dim.symbol.empty()) dim = UnnamedDim(info.name(), i);
    }
    io.dims.push_back(std::move(dim));
  }
  return absl::OkStatus();
}

// Returns the type of an input, which may be an initializer too: an undeclared rank is then its
// value's, or else the one in `ranks`.
absl::StatusOr<ModelIo> TypeOfInput(const onnx::ValueInfoProto& info, const InputRanks& ranks,
                                    const Value* initializer) {
  const auto given = ranks.find(info.name());
  const bool open = !HasRank(info) && info.type().has_tensor_type();
  if (!open || (initializer == nullptr && given == ranks.end())) return DeclaredType(info);
  ModelIo io = {.name = info.name()};
  RETURN_IF_ERROR(ReadElements(info, io));
  if (initializer == nullptr) {
    for (int64_t i = 0; i < given->second; ++i) io.dims.push_back(UnnamedDim(io.name, i));
    return io;
  }
  for (int64_t size : *initializer->shape) io.dims.push_back({.size = size});
  return io;
}

absl::Status MakeOverridable(ModelIo& io, Value& value) {
  if (value.overridable || value.kind == Value::Kind::kInput) {
    return absl::InvalidArgumentError(absl::StrCat("value '", io.name, "' is defined twice"));
  }
  if (value.dtype != io.dtype) {
    return absl::InvalidArgumentError(absl::StrCat(Quoted("input", io.name), " is declared ",
                                                   DTypeName(io.dtype), ", its initializer is ",
                                                   DTypeName(value.dtype)));
  }
  value.overridable = true;
  value.dims = io.dims;
  io.optional = true;
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ModelIo> DeclaredType(const onnx::ValueInfoProto& info) {
  ModelIo io;
  RETURN_IF_ERROR(ReadType(info, io));
  return io;
}

std::vector<std::string> NamesWithoutRank(const onnx::GraphProto& graph) {
  std::set<std::string> initializers;
  for (const auto& tensor : graph.initializer()) initializers.insert(tensor.name());
  for (const auto& sparse : graph.sparse_initializer()) {
    initializers.insert(sparse.values().name());
  }
  std::vector<std::string> names;
  for (const auto& info : graph.input()) {
    const bool open = info.type().has_tensor_type() && !HasRank(info);
    if (open && !initializers.contains(info.name())) names.push_back(info.name());
  }
  return names;
}

absl::Status AddInputs(const onnx::ModelProto& model, const InputRanks& ranks,
                       absl::FunctionRef<bool(const std::string&)> is_unread,
                       absl::FunctionRef<void(const std::string&)> no_tensor, TextWalk& texts,
                       FileValues& values) {
  Graph& graph = values.model.graph;
  for (const auto& info : model.graph().input()) {
    if (is_unread(info.name())) continue;
    const auto it = values.by_name.find(info.name());
    Value* initializer = it == values.by_name.end() ? nullptr : &graph.value(it->second);
    // Before version 4 of the format every initializer had to be listed as an input.
    if (initializer != nullptr && model.ir_version() < 4) continue;
    absl::StatusOr<ModelIo> io = TypeOfInput(info, ranks, initializer);
    if (!io.ok()) {
      RETURN_IF_ERROR(values.NoteOrReturn(
          absl::Status(io.status().code(),
                       absl::StrCat(Quoted("input", info.name()), ": ", io.status().message()))));
      if (!info.type().has_tensor_type()) no_tensor(info.name());
      RETURN_IF_ERROR(values.DefineUnread(info.name()));
      continue;
    }
    if (initializer != nullptr && io->text != (texts.KindOf(it->second) != TextKind::kNumbers)) {
      return absl::InvalidArgumentError(absl::StrCat(Quoted("input", io->name), " is declared ",
                                                     io->text ? "text" : "numbers",
                                                     ", its initializer is not"));
    }
    RETURN_IF_ERROR(
        initializer != nullptr
            ? MakeOverridable(*io, *initializer)
            : values.Define(info.name(), graph.AddInput(info.name(), io->dtype, io->dims)));
    if (io->text) texts.Mark(values.by_name.at(info.name()), TextKind::kText);
    values.model.inputs.push_back(*std::move(io));
  }
  return absl::OkStatus();
}

absl::Status AddOutputs(const onnx::GraphProto& graph,
                        absl::FunctionRef<bool(const std::string&)> is_sequence,
                        const TextWalk& texts, FileValues& values) {
  if (graph.output_size() == 0) return absl::InvalidArgumentError("the model has no output");
  for (const auto& info : graph.output()) {
    const std::string output = Quoted("output", info.name());
    if (is_sequence(info.name())) {
      return absl::UnimplementedError(
          absl::StrCat(output, ": is a sequence or an Optional, answers are tensors"));
    }
    const auto it = values.by_name.find(info.name());
    if (it == values.by_name.end()) {
      return absl::InvalidArgumentError(absl::StrCat(output, ": nothing defines it"));
    }
    for (const ModelIo& other : values.model.outputs) {
      if (other.name != info.name()) continue;
      return absl::InvalidArgumentError(absl::StrCat(output, " is listed twice"));
    }
    values.model.graph.AddOutput(it->second);
    // Declared types of outputs are informative: unreadable ones are left out.
    ModelIo io;
    if (!ReadType(info, io).ok()) io.dims.clear();
    const TextKind kind = texts.KindOf(it->second);
    if (kind == TextKind::kLookedUp) {
      return absl::UnimplementedError(
          absl::StrCat(output, ": numbers written as text can be looked up, not answered"));
    }
    if (io.text && kind == TextKind::kNumbers) {
      return absl::InvalidArgumentError(absl::StrCat(output, " is declared text, and is numbers"));
    }
    io.text = kind == TextKind::kText;
    if (io.text) io.dtype = DType::kInt64;
    values.model.outputs.push_back(std::move(io));
  }
  return absl::OkStatus();
}

}  // namespace reprise
