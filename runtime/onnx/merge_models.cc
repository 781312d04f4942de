#include "runtime/onnx/merge_models.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/status_macros.h"
#include "runtime/onnx/file/file_bytes.h"

namespace reprise {
namespace {

// A message of protobuf holds less than 2 GiB.
constexpr int64_t kMostMessageBytes = (int64_t{1} << 31) - (int64_t{1} << 20);

std::string TypeText(const onnx::ValueInfoProto& info) {
  const onnx::TypeProto::Tensor& type = info.type().tensor_type();
  std::vector<std::string> dims;
  for (const auto& dim : type.shape().dim()) {
    dims.push_back(dim.has_dim_value() ? absl::StrCat(dim.dim_value()) : dim.dim_param());
  }
  const auto dtype = static_cast<onnx::TensorProto::DataType>(type.elem_type());
  return absl::StrCat(onnx::TensorProto::DataType_Name(dtype), "[", absl::StrJoin(dims, ","), "]");
}

// Returns whether a value of one type may be given where the other is required.
bool Agree(const onnx::ValueInfoProto& made, const onnx::ValueInfoProto& wanted) {
  const auto& a = made.type().tensor_type();
  const auto& b = wanted.type().tensor_type();
  if (a.elem_type() != b.elem_type() && a.elem_type() != 0 && b.elem_type() != 0) return false;
  if (!a.has_shape() || !b.has_shape()) return true;
  if (a.shape().dim_size() != b.shape().dim_size()) return false;
  for (int i = 0; i < a.shape().dim_size(); ++i) {
    const auto &one = a.shape().dim(i), &other = b.shape().dim(i);
    if (one.has_dim_value() && other.has_dim_value() && one.dim_value() != other.dim_value()) {
      return false;
    }
  }
  return true;
}

class Merger {
 public:
  absl::Status Add(const ModelPart& part) {
    RETURN_IF_ERROR(AddVersions(part));
    RETURN_IF_ERROR(AddFunctions(part));
    const onnx::GraphProto& graph = part.model.graph();
    std::set<std::string> initializers;
    for (const auto& one : graph.initializer()) initializers.insert(one.name());
    for (const auto& one : graph.sparse_initializer()) initializers.insert(one.values().name());
    std::map<std::string, std::string> names;
    std::set<std::string> known;
    for (const onnx::ValueInfoProto& input : graph.input()) {
      if (initializers.contains(input.name())) continue;
      known.insert(input.name());
      RETURN_IF_ERROR(AddInput(part, input, names));
    }
    RETURN_IF_ERROR(CheckNames(part, "input", part.inputs, known));
    known.clear();
    std::vector<std::pair<std::string, std::string>> passed;  // inputs that are outputs
    for (const onnx::ValueInfoProto& output : graph.output()) {
      known.insert(output.name());
      const std::string merged = NameIn(part.outputs, output.name());
      if (const auto made = made_by_.find(merged); made != made_by_.end()) {
        return absl::InvalidArgumentError(absl::StrCat("'", part.label, "' and '", made->second,
                                                       "' both make '", merged,
                                                       "': map one of them to another name"));
      }
      if (inputs_.contains(merged)) {
        return absl::InvalidArgumentError(
            absl::StrCat("'", part.label, "' makes '", merged,
                         "', which is an input of the model: map it to another name"));
      }
      made_by_[merged] = part.label;
      onnx::ValueInfoProto info = output;
      info.set_name(merged);
      outputs_.emplace_back(merged, std::move(info));
      if (!names.emplace(output.name(), merged).second) passed.emplace_back(output.name(), merged);
    }
    RETURN_IF_ERROR(CheckNames(part, "output", part.outputs, known));
    label_ = part.label;
    names_ = std::move(names);
    Copy(graph);
    for (const auto& [from, to] : passed) {
      onnx::NodeProto& node = *merged_.mutable_graph()->add_node();
      node.set_op_type("Identity");
      node.set_name(absl::StrCat(part.label, "/", to));
      node.add_input(names_.at(from));
      node.add_output(to);
    }
    return absl::OkStatus();
  }

  absl::StatusOr<onnx::ModelProto> Finish(const std::vector<std::string>& wanted) {
    for (const std::string& name : wanted) {
      if (made_by_.contains(name)) continue;
      return absl::InvalidArgumentError(absl::StrCat("no part makes the output '", name, "'"));
    }
    const std::set<std::string> chosen(wanted.begin(), wanted.end());
    for (auto& [name, info] : outputs_) {
      const bool is_output = wanted.empty() ? !read_.contains(name) : chosen.contains(name);
      if (is_output) *merged_.mutable_graph()->add_output() = std::move(info);
    }
    merged_.set_producer_name("reprise merge");
    return std::move(merged_);
  }

 private:
  static std::string NameIn(const std::map<std::string, std::string>& map,
                            const std::string& name) {
    const auto found = map.find(name);
    return found == map.end() ? name : found->second;
  }

  static absl::Status CheckNames(const ModelPart& part, absl::string_view what,
                                 const std::map<std::string, std::string>& map,
                                 const std::set<std::string>& known) {
    for (const auto& [name, merged] : map) {
      if (known.contains(name)) continue;
      return absl::InvalidArgumentError(absl::StrCat("'", part.label, "' has no ", what, " '", name,
                                                     "', only '", absl::StrJoin(known, "', '"),
                                                     "'"));
    }
    return absl::OkStatus();
  }

  absl::Status AddInput(const ModelPart& part, const onnx::ValueInfoProto& input,
                        std::map<std::string, std::string>& names) {
    const std::string merged = NameIn(part.inputs, input.name());
    names[input.name()] = merged;
    const onnx::ValueInfoProto* given = nullptr;
    for (const auto& [name, info] : outputs_) {
      if (name == merged) given = &info;
    }
    if (given != nullptr) read_.insert(merged);
    if (const auto shared = inputs_.find(merged); shared != inputs_.end()) given = &shared->second;
    if (given != nullptr) {
      if (Agree(*given, input)) return absl::OkStatus();
      return absl::InvalidArgumentError(absl::StrCat("'", merged, "' is ", TypeText(*given),
                                                     ", and input '", input.name(), "' of '",
                                                     part.label, "' is ", TypeText(input)));
    }
    onnx::ValueInfoProto& info = *merged_.mutable_graph()->add_input();
    info = input;
    info.set_name(merged);
    inputs_[merged] = info;
    return absl::OkStatus();
  }

  absl::Status AddVersions(const ModelPart& part) {
    merged_.set_ir_version(std::max(merged_.ir_version(), part.model.ir_version()));
    for (const auto& import : part.model.opset_import()) {
      const auto [it, added] =
          versions_.emplace(import.domain() == "ai.onnx" ? "" : import.domain(),
                            std::pair(import.version(), part.label));
      if (added) {
        *merged_.add_opset_import() = import;
      } else if (it->second.first != import.version()) {
        return absl::InvalidArgumentError(absl::StrCat("'", it->second.second, "' has version ",
                                                       it->second.first, " of operator set '",
                                                       it->first, "', and '", part.label, "' has ",
                                                       import.version(), ": export both with one"));
      }
    }
    return absl::OkStatus();
  }

  absl::Status AddFunctions(const ModelPart& part) {
    for (const onnx::FunctionProto& function : part.model.functions()) {
      const std::string key = absl::StrCat(function.domain(), ".", function.name());
      const std::string bytes = function.SerializeAsString();
      const auto [it, added] = functions_.emplace(key, bytes);
      if (added) {
        *merged_.add_functions() = function;
      } else if (it->second != bytes) {
        return absl::InvalidArgumentError(
            absl::StrCat("'", part.label, "' and a part before it have two functions '", key, "'"));
      }
    }
    return absl::OkStatus();
  }

  std::string NewName(const std::string& name) const {
    if (name.empty()) return name;
    const auto found = names_.find(name);
    return found == names_.end() ? absl::StrCat(label_, "/", name) : found->second;
  }

  // Names of nodes begin with '/' where their exporter writes scopes.
  std::string NewNodeName(const std::string& name) const {
    if (name.empty()) return name;
    return absl::StrCat("/", label_, name[0] == '/' ? "" : "/", name);
  }

  void Rename(onnx::NodeProto& node) const {
    node.set_name(NewNodeName(node.name()));
    for (std::string& name : *node.mutable_input()) name = NewName(name);
    for (std::string& name : *node.mutable_output()) name = NewName(name);
    for (onnx::AttributeProto& attribute : *node.mutable_attribute()) {
      if (attribute.has_g()) Rename(*attribute.mutable_g());
      for (onnx::GraphProto& graph : *attribute.mutable_graphs()) Rename(graph);
    }
  }

  void Rename(onnx::GraphProto& graph) const {
    for (onnx::NodeProto& node : *graph.mutable_node()) Rename(node);
    for (auto* infos :
         {graph.mutable_input(), graph.mutable_output(), graph.mutable_value_info()}) {
      for (onnx::ValueInfoProto& info : *infos) info.set_name(NewName(info.name()));
    }
    for (onnx::TensorProto& tensor : *graph.mutable_initializer()) {
      tensor.set_name(NewName(tensor.name()));
    }
    for (onnx::SparseTensorProto& tensor : *graph.mutable_sparse_initializer()) {
      tensor.mutable_values()->set_name(NewName(tensor.values().name()));
    }
    for (auto& note : *graph.mutable_quantization_annotation()) {
      note.set_tensor_name(NewName(note.tensor_name()));
    }
  }

  void Copy(onnx::GraphProto graph) {
    Rename(graph);
    onnx::GraphProto& to = *merged_.mutable_graph();
    if (to.name().empty()) to.set_name("merged");
    for (auto& node : *graph.mutable_node()) *to.add_node() = std::move(node);
    for (auto& tensor : *graph.mutable_initializer()) *to.add_initializer() = std::move(tensor);
    for (auto& tensor : *graph.mutable_sparse_initializer()) {
      *to.add_sparse_initializer() = std::move(tensor);
    }
    for (auto& info : *graph.mutable_value_info()) *to.add_value_info() = std::move(info);
    for (auto& note : *graph.mutable_quantization_annotation()) {
      *to.add_quantization_annotation() = std::move(note);
    }
  }

  onnx::ModelProto merged_;
  std::map<std::string, onnx::ValueInfoProto> inputs_;
  std::vector<std::pair<std::string, onnx::ValueInfoProto>> outputs_;
  std::map<std::string, std::string> made_by_;  // labels, by output
  std::set<std::string> read_;                  // outputs that a later part reads
  std::map<std::string, std::pair<int64_t, std::string>> versions_;
  std::map<std::string, std::string> functions_;
  // The part that is copied.
  std::string label_;
  std::map<std::string, std::string> names_;
};

// Puts the bytes of a tensor that lie in another file of `folder` into the message.
absl::Status TakeIn(const std::filesystem::path& folder, onnx::TensorProto& tensor,
                    int64_t& all_bytes) {
  if (tensor.data_location() != onnx::TensorProto::EXTERNAL) return absl::OkStatus();
  std::string location;
  int64_t offset = 0, length = -1;
  for (const auto& entry : tensor.external_data()) {
    if (entry.key() == "location") location = entry.value();
    if (entry.key() == "offset" && !absl::SimpleAtoi(entry.value(), &offset)) offset = -1;
    if (entry.key() == "length" && !absl::SimpleAtoi(entry.value(), &length)) length = -1;
  }
  const auto of_tensor = [&](absl::string_view what) {
    return absl::InvalidArgumentError(
        absl::StrCat("tensor '", tensor.name(), "' of file '", location, "': ", what));
  };
  const std::filesystem::path file(location);
  if (location.empty() || file.is_absolute() || absl::StrContains(location, "..")) {
    return of_tensor("the file must lie in the folder of the model");
  }
  ASSIGN_OR_RETURN(const FileBytes bytes, MapFile((folder / file).string()));
  const auto size = static_cast<int64_t>(bytes.bytes.size());
  if (length < 0) length = size - offset;
  if (offset < 0 || length < 0 || offset > size || length > size - offset) {
    return of_tensor(absl::StrCat("bytes ", offset, " to ", offset + length, " of ", size));
  }
  all_bytes += length;
  if (all_bytes > kMostMessageBytes) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "the weights take more than ", kMostMessageBytes, " bytes, which one file holds"));
  }
  tensor.set_raw_data(
      std::string(bytes.bytes.substr(static_cast<size_t>(offset), static_cast<size_t>(length))));
  tensor.clear_external_data();
  tensor.clear_data_location();
  return absl::OkStatus();
}

absl::Status TakeInAll(const std::filesystem::path& folder, onnx::GraphProto& graph,
                       int64_t& all_bytes) {
  for (onnx::TensorProto& tensor : *graph.mutable_initializer()) {
    RETURN_IF_ERROR(TakeIn(folder, tensor, all_bytes));
  }
  for (onnx::NodeProto& node : *graph.mutable_node()) {
    for (onnx::AttributeProto& attribute : *node.mutable_attribute()) {
      if (attribute.has_t()) RETURN_IF_ERROR(TakeIn(folder, *attribute.mutable_t(), all_bytes));
      if (attribute.has_g()) RETURN_IF_ERROR(TakeInAll(folder, *attribute.mutable_g(), all_bytes));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<onnx::ModelProto> MergeModels(const std::vector<ModelPart>& parts,
                                             const std::vector<std::string>& outputs) {
  Merger merger;
  for (const ModelPart& part : parts) RETURN_IF_ERROR(merger.Add(part));
  return merger.Finish(outputs);
}

absl::StatusOr<onnx::ModelProto> ReadWholeModel(const std::string& path) {
  ASSIGN_OR_RETURN(const FileBytes file, MapFile(path));
  if (static_cast<int64_t>(file.bytes.size()) > kMostMessageBytes) {
    return absl::ResourceExhaustedError(absl::StrCat("'", path, "' has ", file.bytes.size(),
                                                     " bytes, more than one message holds"));
  }
  onnx::ModelProto model;
  if (!model.ParseFromArray(file.bytes.data(), static_cast<int>(file.bytes.size()))) {
    return absl::InvalidArgumentError(absl::StrCat("'", path, "' is not an ONNX model"));
  }
  auto all_bytes = static_cast<int64_t>(file.bytes.size());
  std::error_code ignored;
  const std::filesystem::path resolved = std::filesystem::weakly_canonical(path, ignored);
  RETURN_IF_ERROR(TakeInAll(resolved.parent_path(), *model.mutable_graph(), all_bytes));
  return model;
}

}  // namespace reprise
