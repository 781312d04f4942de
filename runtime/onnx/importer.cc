#include "runtime/onnx/importer.h"

#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/onnx/attributes.h"
#include "runtime/onnx/file_bytes.h"
#include "runtime/onnx/flatten.h"
#include "runtime/onnx/loop_check.h"
#include "runtime/onnx/onnx_proto.h"
#include "runtime/onnx/reasons.h"
#include "runtime/onnx/rewrites.h"
#include "runtime/onnx/sequences.h"
#include "runtime/onnx/slim_model.h"
#include "runtime/onnx/tensors.h"
#include "runtime/ops/onnx_types.h"
#include "runtime/ops/op.h"

namespace reprise {
namespace {

constexpr int64_t kNewestOpset = 28;
constexpr char kUnpackNibbles[] = "reprise.UnpackNibbles";

std::string Quoted(absl::string_view kind, absl::string_view name) {
  return absl::StrCat(kind, " '", name, "'");
}

// "Reshape", "com.microsoft.Gelu".
std::string OpName(const onnx::NodeProto& proto) {
  const std::string domain = CanonicalDomain(proto.domain());
  return domain.empty() ? proto.op_type() : absl::StrCat(domain, ".", proto.op_type());
}

// The walk over one model.
class ModelImporter {
 public:
  ModelImporter(const onnx::ModelProto& model, const SlimModel& slim, TensorReader tensors)
      : model_(model), slim_(slim), tensors_(std::move(tensors)) {}

  absl::StatusOr<ImportedModel> Run() {
    RETURN_IF_ERROR(Walk());
    RETURN_IF_ERROR(NoteOrReturn(AddOutputs()));
    if (!examined_.nodes.empty() || !reasons_.empty()) {
      for (RefusedNode& node : examined_.nodes) {
        node.reason.dtypes = DTypesText(result_.graph, node.inputs);
        reasons_.AddNode(node.code, std::move(node.reason));
      }
      return reasons_.ToStatus();
    }
    if (!result_.graph.Compact()) return absl::InternalError("the imported graph is cyclic");
    RETURN_IF_ERROR(CheckLoops(result_.graph));
    result_.files = tensors_.Files();
    return std::move(result_);
  }

  absl::StatusOr<ExaminedModel> Examine() {
    RETURN_IF_ERROR(Walk());
    for (const auto& info : model_.graph().value_info()) Declare(info);
    for (const auto& info : model_.graph().output()) Declare(info);
    examined_.graph = std::move(result_.graph);
    examined_.inputs = std::move(result_.inputs);
    examined_.others = std::move(reasons_);
    return std::move(examined_);
  }

 private:
  // Everything but the outputs. OK also when there are reasons.
  absl::Status Walk() {
    result_.producer =
        absl::StrCat(model_.producer_name(), model_.producer_version().empty() ? "" : " ",
                     model_.producer_version());
    if (!model_.has_graph()) return absl::InvalidArgumentError("the model has no graph");
    ASSIGN_OR_RETURN(const FlatModel flat, FlattenModel(model_));
    RETURN_IF_ERROR(CheckOpsets(flat));
    RETURN_IF_ERROR(AddInitializers());
    RETURN_IF_ERROR(AddInputs());
    for (const FlatNode& node : flat.nodes) RETURN_IF_ERROR(AddNode(node));
    return absl::OkStatus();
  }

  absl::Status CheckOpsets(const FlatModel& flat) {
    const OpsetMap& opsets = flat.opsets.front();
    examined_.versions = opsets;
    const auto it = opsets.find("");
    if (it != opsets.end() && it->second > kNewestOpset) {
      reasons_.Add(absl::StatusCode::kUnimplemented,
                   absl::StrCat("opset ", it->second, " is newer than ", kNewestOpset));
    }
    if (it != opsets.end() && it->second < 1) {
      return absl::InvalidArgumentError(absl::StrCat("there is no opset ", it->second));
    }
    return absl::OkStatus();
  }

  // Whether the walk can go on behind `status`, so that all reasons can be told at once.
  static bool IsReason(const absl::Status& status) {
    return absl::IsUnimplemented(status) || absl::IsInvalidArgument(status);
  }
  absl::Status NoteOrReturn(const absl::Status& status) {
    if (!IsReason(status)) return status;
    reasons_.Add(status.code(), std::string(status.message()));
    return absl::OkStatus();
  }

  // What the file says of a value: for dtypes behind a node that is refused.
  void Declare(const onnx::ValueInfoProto& info) {
    ModelIo io;
    if (ReadType(info, io).ok()) examined_.declared.emplace(info.name(), std::move(io));
  }

  // Stands for an initializer that could not be read while the walk goes on to collect reasons.
  absl::Status DefineUnread(const std::string& name) {
    unread_.insert(name);
    return Define(name, result_.graph.AddInput(name, DType::kUndefined, {}));
  }

  absl::Status Define(const std::string& name, ValueId value) {
    if (name.empty()) return absl::InvalidArgumentError("a value has no name");
    if (!values_.emplace(name, value).second) {
      return absl::InvalidArgumentError(absl::StrCat("value '", name, "' is defined twice"));
    }
    return absl::OkStatus();
  }

  ValueId AddTensor(const std::string& name, Tensor tensor) {
    if (!IsParameterLike(tensor.dtype(), tensor.num_elements())) {
      return result_.graph.AddConstant(name, std::move(tensor));
    }
    const int index = static_cast<int>(result_.parameters.size());
    const ValueId id = result_.graph.AddParameter(
        name, ParameterExpr::Leaf(index, tensor.dtype(), tensor.shape()));
    result_.parameters.push_back(std::move(tensor));
    return id;
  }

  // The large constants among the values from `first` on, which a rewrite added.
  void MakeParameters(ValueId first) {
    for (ValueId id = first; id < static_cast<ValueId>(result_.graph.num_values()); ++id) {
      const Tensor* constant = result_.graph.ConstantOf(id);
      if (constant == nullptr || !IsParameterLike(constant->dtype(), constant->num_elements())) {
        continue;
      }
      Tensor tensor = *constant;
      const int index = static_cast<int>(result_.parameters.size());
      result_.graph.ReplaceWithParameter(
          id, ParameterExpr::Leaf(index, tensor.dtype(), tensor.shape()));
      result_.parameters.push_back(std::move(tensor));
    }
  }

  absl::Status AddInitializers() {
    const onnx::GraphProto& graph = model_.graph();
    for (const auto& sparse : graph.sparse_initializer()) {
      reasons_.Add(absl::StatusCode::kUnimplemented,
                   absl::StrCat(Quoted("initializer", sparse.values().name()),
                                ": sparse tensors are not supported"));
      RETURN_IF_ERROR(DefineUnread(sparse.values().name()));
    }
    for (int i = 0; i < graph.initializer_size(); ++i) {
      const onnx::TensorProto& proto = graph.initializer(i);
      const absl::string_view raw =
          static_cast<size_t>(i) < slim_.raw_data.size() ? slim_.raw_data[i] : absl::string_view();
      if (TensorReader::HoldsNibbles(proto)) {
        RETURN_IF_ERROR(AddNibbles(proto, raw));
        continue;
      }
      auto tensor = tensors_.Read(proto, raw, Quoted("initializer", proto.name()));
      if (!tensor.ok()) {
        RETURN_IF_ERROR(NoteOrReturn(tensor.status()));
        RETURN_IF_ERROR(DefineUnread(proto.name()));
        continue;
      }
      RETURN_IF_ERROR(Define(proto.name(), AddTensor(proto.name(), *std::move(tensor))));
    }
    return absl::OkStatus();
  }

  // An initializer of int4 or uint4 becomes one of int8 or uint8, by the prepare program where it
  // is large.
  absl::Status AddNibbles(const onnx::TensorProto& proto, absl::string_view raw) {
    auto bytes = tensors_.ReadNibbles(proto, raw, Quoted("initializer", proto.name()));
    if (!bytes.ok()) {
      RETURN_IF_ERROR(NoteOrReturn(bytes.status()));
      return DefineUnread(proto.name());
    }
    const bool is_signed = proto.data_type() == ops::kOnnxInt4;
    const std::vector<int64_t> dims(proto.dims().begin(), proto.dims().end());
    Attributes attributes = {{"shape", dims}, {"signed", int64_t{is_signed}}};
    ValueId id = kNone;
    if (IsParameterLike(bytes->dtype(), bytes->num_elements())) {
      const int index = static_cast<int>(result_.parameters.size());
      const DType dtype = is_signed ? DType::kInt8 : DType::kUInt8;
      id = result_.graph.AddParameter(
          proto.name(),
          ParameterExpr::Apply(kUnpackNibbles, std::move(attributes),
                               {ParameterExpr::Leaf(index, DType::kUInt8, bytes->shape())}, dtype,
                               Shape(dims.begin(), dims.end())));
      result_.parameters.push_back(*std::move(bytes));
    } else {
      Node node;
      node.op = kUnpackNibbles;
      node.attributes = std::move(attributes);
      node.inputs = {0};
      node.outputs = {1};
      ASSIGN_OR_RETURN(std::vector<Tensor> results,
                       Evaluate(node, {*std::move(bytes)}, 2 * kMinParameterElements));
      id = AddTensor(proto.name(), std::move(results[0]));
    }
    nibbles_.insert(id);
    return Define(proto.name(), id);
  }

  // What would round or saturate to four bits, or hand them on.
  absl::Status CheckNibbles(const NodeDraft& draft) const {
    if (draft.op == "DequantizeLinear" || draft.op == "Cast") return absl::OkStatus();
    for (size_t i = 0; i < draft.inputs.size(); ++i) {
      if (!nibbles_.contains(draft.inputs[i])) continue;
      return absl::UnimplementedError(
          absl::StrCat("input ", i,
                       " has numbers of four bits: of them there are only DequantizeLinear and "
                       "Cast"));
    }
    return absl::OkStatus();
  }

  // The declared dtype and dims of an input or output.
  static absl::Status ReadType(const onnx::ValueInfoProto& info, ModelIo& io) {
    io.name = info.name();
    if (!info.type().has_tensor_type()) {
      return absl::UnimplementedError(info.type().value_case() == onnx::TypeProto::VALUE_NOT_SET
                                          ? "is not a tensor"
                                          : "is a sequence, a map or an Optional, and no tensor");
    }
    const auto& type = info.type().tensor_type();
    ASSIGN_OR_RETURN(io.dtype, ops::DTypeFromOnnx(type.elem_type()));
    if (!type.has_shape()) return absl::UnimplementedError("has no declared rank");
    for (int i = 0; i < type.shape().dim_size(); ++i) {
      const auto& proto = type.shape().dim(i);
      Dim dim;
      if (proto.has_dim_value() && proto.dim_value() >= 0) {
        dim.size = proto.dim_value();
      } else {
        dim.symbol = std::string(absl::StripAsciiWhitespace(
            absl::string_view(proto.dim_param().data(), proto.dim_param().size())));
        if (dim.symbol.empty()) dim.symbol = absl::StrCat(info.name(), ":", i);
      }
      io.dims.push_back(std::move(dim));
    }
    return absl::OkStatus();
  }

  absl::Status AddInputs() {
    for (const auto& info : model_.graph().input()) {
      if (unread_.contains(info.name())) continue;
      const auto initializer = values_.find(info.name());
      // Before version 4 of the format every initializer had to be listed as an input.
      if (initializer != values_.end() && model_.ir_version() < 4) continue;
      ModelIo io;
      absl::Status status = ReadType(info, io);
      if (initializer != values_.end() && info.type().has_tensor_type() &&
          !info.type().tensor_type().has_shape()) {
        status = absl::OkStatus();  // Its value has a shape.
        for (int64_t size : *result_.graph.value(initializer->second).shape) {
          io.dims.push_back({.size = size});
        }
      }
      if (!status.ok()) {
        status = absl::Status(status.code(),
                              absl::StrCat(Quoted("input", info.name()), ": ", status.message()));
        RETURN_IF_ERROR(NoteOrReturn(status));
        if (!info.type().has_tensor_type()) sequences_.DefineUnknown(info.name());
        RETURN_IF_ERROR(
            Define(info.name(), result_.graph.AddInput(info.name(), DType::kUndefined, {})));
        continue;
      }
      if (initializer == values_.end()) {
        RETURN_IF_ERROR(
            Define(info.name(), result_.graph.AddInput(info.name(), io.dtype, io.dims)));
      } else {
        Value& value = result_.graph.value(initializer->second);
        if (value.overridable || value.kind == Value::Kind::kInput) {
          return absl::InvalidArgumentError(
              absl::StrCat("value '", info.name(), "' is defined twice"));
        }
        if (value.dtype != io.dtype) {
          return absl::InvalidArgumentError(
              absl::StrCat(Quoted("input", info.name()), " is declared ", DTypeName(io.dtype),
                           ", its initializer is ", DTypeName(value.dtype)));
        }
        value.overridable = true;
        value.dims = io.dims;
        io.optional = true;
      }
      result_.inputs.push_back(std::move(io));
    }
    return absl::OkStatus();
  }

  absl::Status AddNode(const FlatNode& flat) {
    const onnx::NodeProto& proto = *flat.proto;
    const std::string domain = CanonicalDomain(proto.domain());
    NodeDraft draft;
    draft.types = &types_;
    draft.op = OpName(proto);
    draft.name = proto.name();
    const auto version = flat.opsets->find(domain);
    draft.version = version == flat.opsets->end() ? 1 : version->second;
    for (const std::string& name : proto.input()) {
      // What is no tensor is looked up by the walk over sequences.
      const auto it = values_.find(name);
      draft.inputs.push_back(it == values_.end() ? kNone : it->second);
    }
    while (!draft.inputs.empty() && draft.inputs.back() == kNone) draft.inputs.pop_back();
    draft.outputs.assign(proto.output().begin(), proto.output().end());
    while (!draft.outputs.empty() && draft.outputs.back().empty()) draft.outputs.pop_back();

    const std::vector<ValueId> inputs = draft.inputs;
    const std::vector<std::string> outputs = draft.outputs;
    const NodeId first = static_cast<NodeId>(result_.graph.num_nodes());
    const absl::Status status =
        version == flat.opsets->end() && domain.empty() && !flat.is_control
            ? absl::InvalidArgumentError("the model imports no opset of this domain")
        : sequences_.Concerns(flat) ? AddOverSequences(flat)
        : flat.is_control           ? AddControl(proto, draft)
                                    : Convert(proto, draft);
    LabelSteps(first, flat.source == nullptr ? proto : *flat.source);
    if (status.ok()) return absl::OkStatus();
    if (!IsReason(status)) {
      return absl::Status(
          status.code(),
          absl::StrCat(proto.op_type(), " ",
                       NodeName(proto.name(), outputs.empty() ? "" : outputs.front()), ": ",
                       status.message()));
    }
    examined_.nodes.push_back(
        {.code = status.code(),
         .reason = {.op = proto.op_type(),
                    .domain = domain,
                    .version = version == flat.opsets->end() ? 0 : version->second,
                    .node = NodeName(proto.name(), outputs.empty() ? "" : outputs.front()),
                    .why = std::string(status.message())},
         .inputs = inputs});
    // The import fails in the end; the results are defined so that the walk can go on.
    if (sequences_.Concerns(flat)) sequences_.DefineUnknownResults(flat);
    for (const std::string& name : outputs) {
      if (name.empty() || values_.contains(name)) continue;
      RETURN_IF_ERROR(Define(name, result_.graph.AddInput(name, DType::kUndefined, {})));
    }
    return absl::OkStatus();
  }

  // What `proto` was brought to, the nodes from `first` on, goes by its name and op.
  void LabelSteps(NodeId first, const onnx::NodeProto& proto) {
    const NodeId end = static_cast<NodeId>(result_.graph.num_nodes());
    const std::string op = OpName(proto);
    if (first == end || (end - first == 1 && result_.graph.node(first).op == op)) return;
    std::string name = proto.name();
    for (int i = 0; name.empty() && i < proto.output_size(); ++i) name = proto.output(i);
    for (NodeId id = first; id < end; ++id) result_.graph.SetSource(id, op, name);
  }

  absl::Status Convert(const onnx::NodeProto& proto, NodeDraft& draft) {
    if (draft.op == "Constant") {
      ASSIGN_OR_RETURN(const Attributes attributes, ReadAttributes(proto, tensors_));
      ASSIGN_OR_RETURN(Tensor value, ConstantValue(attributes));
      if (draft.outputs.size() != 1) return absl::InvalidArgumentError("has not one output");
      return Define(draft.outputs[0], AddTensor(draft.outputs[0], std::move(value)));
    }
    // Ops that we lack are refused before their attributes are read.
    if (Row(draft.op) == nullptr && !HasRewrite(draft)) {
      return absl::UnimplementedError("is not supported");
    }
    RETURN_IF_ERROR(CheckNibbles(draft));
    ASSIGN_OR_RETURN(draft.attributes, ReadAttributes(proto, tensors_));
    const size_t known = result_.graph.num_values();
    const bool rewritten = HasRewrite(draft);
    RETURN_IF_ERROR(RewriteToNewest(draft, result_.graph));
    MakeParameters(static_cast<ValueId>(known));
    // A rewrite may end in an op of ours.
    const OpRow* row = rewritten ? FindOp(draft.op) : Row(draft.op);
    if (row == nullptr) return absl::UnimplementedError("is not supported");
    RETURN_IF_ERROR(CheckCount("inputs", draft.inputs.size(), row->min_inputs, row->max_inputs));
    RETURN_IF_ERROR(CheckCount("outputs", draft.outputs.size(), 0, row->max_outputs));
    const NodeId node = result_.graph.AddNodeWithOutputs(
        draft.op, std::move(draft.inputs), std::move(draft.attributes), draft.outputs, draft.name);
    for (size_t i = 0; i < draft.outputs.size(); ++i) {
      if (draft.outputs[i].empty()) continue;
      RETURN_IF_ERROR(Define(draft.outputs[i], result_.graph.node(node).outputs[i]));
    }
    return absl::OkStatus();
  }

  // A node that flattening made, in the form of the op table.
  absl::Status AddControl(const onnx::NodeProto& proto, NodeDraft& draft) {
    ASSIGN_OR_RETURN(draft.attributes, ReadAttributes(proto, tensors_));
    const NodeId node = result_.graph.AddNodeWithOutputs(
        draft.op, std::move(draft.inputs), std::move(draft.attributes), draft.outputs, draft.name);
    for (size_t i = 0; i < draft.outputs.size(); ++i) {
      if (draft.outputs[i].empty()) continue;
      RETURN_IF_ERROR(Define(draft.outputs[i], result_.graph.node(node).outputs[i]));
    }
    return absl::OkStatus();
  }

  absl::Status AddOverSequences(const FlatNode& flat) {
    ASSIGN_OR_RETURN(const std::vector<SequenceWalk::Named> results, sequences_.Resolve(flat));
    for (const auto& [name, id] : results) RETURN_IF_ERROR(Define(name, id));
    return absl::OkStatus();
  }

  static const OpRow* Row(absl::string_view op) {
    const OpRow* row = FindOp(op);
    return row != nullptr && row->Has(kInternal) ? nullptr : row;
  }

  static absl::Status CheckCount(absl::string_view what, size_t have, int min, int max) {
    if (static_cast<int>(have) >= min && (max < 0 || static_cast<int>(have) <= max)) {
      return absl::OkStatus();
    }
    return absl::InvalidArgumentError(
        absl::StrCat("has ", have, " ", what, ", takes ", min, " to ",
                     max < 0 ? std::string("any number") : absl::StrCat(max)));
  }

  absl::Status AddOutputs() {
    if (model_.graph().output_size() == 0) {
      return absl::InvalidArgumentError("the model has no output");
    }
    for (const auto& info : model_.graph().output()) {
      const auto it = values_.find(info.name());
      if (sequences_.Holds(info.name())) {
        return absl::UnimplementedError(absl::StrCat(
            Quoted("output", info.name()), ": is a sequence or an Optional, answers are tensors"));
      }
      if (it == values_.end()) {
        return absl::InvalidArgumentError(
            absl::StrCat(Quoted("output", info.name()), ": nothing defines it"));
      }
      for (const ModelIo& other : result_.outputs) {
        if (other.name == info.name()) {
          return absl::InvalidArgumentError(
              absl::StrCat(Quoted("output", info.name()), " is listed twice"));
        }
      }
      ModelIo io;
      // Declared types of outputs are informative: what cannot be read is left out.
      if (!ReadType(info, io).ok()) io.dims.clear();
      result_.graph.AddOutput(it->second);
      result_.outputs.push_back(std::move(io));
    }
    return absl::OkStatus();
  }

  const onnx::ModelProto& model_;
  const SlimModel& slim_;
  TensorReader tensors_;
  ImportedModel result_;
  absl::flat_hash_map<std::string, ValueId> values_;
  GrowingTypes types_;  // of the graph so far
  SequenceWalk sequences_{result_.graph, values_};
  absl::flat_hash_set<std::string> unread_;  // initializers
  absl::flat_hash_set<ValueId> nibbles_;     // those of four bits
  Reasons reasons_;                          // but those of nodes
  ExaminedModel examined_;                   // nodes that are refused, versions, declarations
};

// Calls `use(importer)` with an importer of `file`.
template <typename Use>
auto WithImporter(const std::string& path, FileBytes file, Use use)
    -> decltype(use(std::declval<ModelImporter&>())) {
  ASSIGN_OR_RETURN(const SlimModel slim, SlimDown(file.bytes));
  onnx::ModelProto model;
  if (!model.ParseFromString(slim.bytes)) {
    return absl::InvalidArgumentError("the model file is damaged or no ONNX file");
  }
  ModelImporter importer(model, slim, TensorReader(path, std::move(file)));
  return use(importer);
}

absl::StatusOr<ImportedModel> Import(const std::string& path, FileBytes file) {
  return WithImporter(path, std::move(file),
                      [](ModelImporter& importer) { return importer.Run(); });
}

}  // namespace

std::string DTypesText(const Graph& graph, const std::vector<ValueId>& values) {
  std::string text = "(";
  for (const ValueId id : values) {
    if (text.size() > 1) text += ", ";
    const DType dtype = id == kNone ? DType::kUndefined : graph.value(id).dtype;
    absl::StrAppend(&text, id == kNone ? "_" : dtype == DType::kUndefined ? "?" : DTypeName(dtype));
  }
  return text + ")";
}

absl::StatusOr<ImportedModel> ImportOnnxFile(const std::string& path) {
  ASSIGN_OR_RETURN(FileBytes file, MapFile(path));
  return Import(path, std::move(file));
}

absl::StatusOr<ExaminedModel> ExamineOnnxFile(const std::string& path) {
  ASSIGN_OR_RETURN(FileBytes file, MapFile(path));
  return WithImporter(path, std::move(file),
                      [](ModelImporter& importer) { return importer.Examine(); });
}

absl::StatusOr<ImportedModel> ImportOnnxBytes(absl::string_view bytes) {
  return Import("", CopyBytes(bytes));
}

}  // namespace reprise
