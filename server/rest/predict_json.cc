#include "server/rest/predict_json.h"

#include <simdjson.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/status_macros.h"
#include "server/protocol/answers.h"
#include "server/requests/tokenize.h"
#include "server/rest/json_document.h"
#include "server/rest/json_numbers.h"
#include "server/rest/json_tensor.h"
#include "server/rest/reply.h"
#include "server/wire/datatype.h"

namespace reprise {
namespace {

using simdjson::SUCCESS;
using simdjson::dom::array;
using simdjson::dom::element;
using simdjson::dom::object;

constexpr char kSignature[] = "serving_default";

absl::string_view NameView(std::string_view text) { return {text.data(), text.size()}; }

std::string Shown(const element& json) { return simdjson::minify(json).substr(0, 40); }

// array::size() ends at 16,777,215.
int64_t SizeOf(const array& list) { return std::distance(list.begin(), list.end()); }

// Returns whether `json` is a text in base64, and not inputs by their names.
bool IsBase64(const element& json) {
  object members;
  return json.get(members) == SUCCESS && members.size() == 1 &&
         (*members.begin()).key == std::string_view("b64");
}

bool HasNames(const element& json) { return json.is_object() && !IsBase64(json); }

// Returns the sizes of the lists that `json` begins with.
std::vector<int64_t> ShapeOf(element json) {
  std::vector<int64_t> shape;
  for (array list; json.get(list) == SUCCESS; json = list.at(0).value_unsafe()) {
    shape.push_back(SizeOf(list));
    if (shape.back() == 0) break;
  }
  return shape;
}

bool BeginsWithText(element json) {
  for (array list; json.get(list) == SUCCESS; json = list.at(0).value_unsafe()) {
    if (list.size() == 0) return false;
  }
  return IsBase64(json) || (json.is_string() && !OddNumber(json).has_value());
}

std::string ShapeText(absl::Span<const int64_t> shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ","), "]");
}

// Returns the inputs that a request has to have.
std::vector<const ModelIo*> NeededInputs(const Signature& signature) {
  std::vector<const ModelIo*> needed;
  for (size_t i = 0; i < signature.inputs.size(); ++i) {
    const ModelIo& io = signature.inputs[i];
    if (!signature.hidden.input(i) && !io.optional) needed.push_back(&io);
  }
  return needed;
}

// Returns the name and the datatype of the input `name`; empty: of the only one.
absl::StatusOr<std::pair<absl::string_view, absl::string_view>> FindInput(
    absl::string_view name, const element& value, const Signature& signature) {
  const std::vector<const ModelIo*> needed = NeededInputs(signature);
  if (name.empty() && needed.size() == 1 &&
      (needed[0]->text || needed[0]->dtype == DType::kUndefined || !BeginsWithText(value))) {
    return std::pair<absl::string_view, absl::string_view>(needed[0]->name,
                                                           ProtocolName(*needed[0]));
  }
  for (const ModelIo& io : signature.inputs) {
    if (io.name == name) {
      return std::pair<absl::string_view, absl::string_view>(io.name, ProtocolName(io));
    }
  }
  if (name == kTextInput || (name.empty() && BeginsWithText(value))) {
    return std::pair<absl::string_view, absl::string_view>(kTextInput, kTextDatatype);
  }
  std::vector<absl::string_view> names;
  names.reserve(needed.size());
  for (const ModelIo* io : needed) names.push_back(io->name);
  const std::string has = absl::StrCat("the model has the inputs ", absl::StrJoin(names, ", "));
  return absl::InvalidArgumentError(name.empty()
                                        ? absl::StrCat(has, ", which must be named")
                                        : absl::StrCat("there is no input \"", name, "\"; ", has));
}

}  // namespace

absl::Status PredictJson::Decode(const HttpRequest& request, absl::string_view model,
                                 absl::string_view version, MemoryBudget& parsing) {
  view_.model = model;
  view_.version = version;
  JsonDocument document(parsing);
  ASSIGN_OR_RETURN(const object root, document.ParseObject(request.body));
  element signature_name;
  if (root.at_key("signature_name").get(signature_name) == SUCCESS) {
    std::string_view text;
    if (signature_name.get(text) != SUCCESS || (!text.empty() && text != kSignature)) {
      return absl::InvalidArgumentError(absl::StrCat("\"signature_name\" is ",
                                                     Shown(signature_name),
                                                     ", models have \"serving_default\" alone"));
    }
  }
  element instances, inputs;
  const bool has_rows = root.at_key("instances").get(instances) == SUCCESS;
  const bool has_inputs = root.at_key("inputs").get(inputs) == SUCCESS;
  if (has_rows == has_inputs) {
    return absl::InvalidArgumentError(has_rows ? "\"instances\" and \"inputs\" exclude each other"
                                               : "\"instances\" is missing, and so is \"inputs\"");
  }
  ASSIGN_OR_RETURN(const Repository::Found found,
                   repository_.Find(std::string(model), std::string(version)));
  const Signature& signature = found.servable->signature;
  if (has_inputs) return DecodeInputs(inputs, signature);
  array rows;
  if (instances.get(rows) != SUCCESS) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"instances\" is ", Shown(instances), ", expected a list"));
  }
  return DecodeRows(rows, signature);
}

absl::Status PredictJson::DecodeRows(const array& rows, const Signature& signature) {
  predictions_ = true;
  rows_ = SizeOf(rows);
  if (*rows_ == 0) return absl::InvalidArgumentError("\"instances\" is empty");
  const std::vector<element> values(rows.begin(), rows.end());
  if (!HasNames(values[0])) return AddInput("", values, true, signature);
  object first;
  RETURN_IF_ERROR(values[0].get(first) == SUCCESS ? absl::OkStatus()
                                                  : absl::InternalError("an object is none"));
  for (const auto& [name, ignored] : first) {
    std::vector<element> column(values.size());
    for (size_t i = 0; i < values.size(); ++i) {
      object row;
      if (values[i].get(row) != SUCCESS || row.size() != first.size() ||
          row.at_key(name).get(column[i]) != SUCCESS) {
        return absl::InvalidArgumentError(
            absl::StrCat("instance ", i, " is ", Shown(values[i]),
                         ", expected an object with the names of the first one"));
      }
    }
    RETURN_IF_ERROR(AddInput(NameView(name), column, true, signature));
  }
  return absl::OkStatus();
}

absl::Status PredictJson::DecodeInputs(const element& inputs, const Signature& signature) {
  array list;
  if (inputs.get(list) == SUCCESS && list.size() > 0 && HasNames(list.at(0).value_unsafe())) {
    return DecodeRows(list, signature);  // as KServe's clients may send instances
  }
  outputs_ = true;
  object named;
  if (!HasNames(inputs) || inputs.get(named) != SUCCESS) {
    predictions_ = inputs.is_array();
    return AddInput("", {inputs}, false, signature);
  }
  for (const auto& [name, value] : named) {
    RETURN_IF_ERROR(AddInput(NameView(name), {value}, false, signature));
  }
  return absl::OkStatus();
}

absl::Status PredictJson::AddInput(absl::string_view name, absl::Span<const element> values,
                                   bool is_rows, const Signature& signature) {
  ASSIGN_OR_RETURN(const auto input, FindInput(name, values[0], signature));
  const std::vector<int64_t> row = ShapeOf(values[0]);
  std::string& bytes = tensors_.emplace_back();
  for (size_t i = 0; i < values.size(); ++i) {
    if (const std::vector<int64_t> shape = ShapeOf(values[i]); shape != row) {
      return absl::InvalidArgumentError(absl::StrCat(
          "input \"", input.first, "\": instance ", i, " has the shape ", ShapeText(shape),
          ", the first one ", ShapeText(row), ": send instances of other shapes apart"));
    }
    const absl::Status status = AppendNestedElements(values[i], input.second, row, bytes);
    if (!status.ok()) {
      return absl::Status(status.code(), absl::StrCat("input \"", input.first, "\"",
                                                      is_rows ? absl::StrCat(", instance ", i) : "",
                                                      ": ", status.message()));
    }
  }
  std::vector<int64_t>& shape = shapes_.emplace_back();
  if (is_rows) shape.push_back(static_cast<int64_t>(values.size()));
  shape.insert(shape.end(), row.begin(), row.end());
  view_.inputs.push_back({.name = names_.emplace_back(input.first),
                          .datatype = names_.emplace_back(input.second),
                          .shape = shape,
                          .bytes = bytes});
  return absl::OkStatus();
}

absl::StatusOr<int64_t> PredictJson::RowsOf(const InferResult& result) const {
  int64_t rows = rows_.value_or(-1);
  for (const int position : result.outputs) {
    const OutputTensor& tensor = result.response.outputs[position];
    if (rows < 0 && !tensor.shape.empty()) rows = tensor.shape[0];
    if (tensor.shape.empty() || tensor.shape[0] != rows) {
      return absl::InvalidArgumentError(absl::StrCat(
          "output \"", result.model.servable->signature.outputs[position].name, "\" has the shape ",
          ShapeText(tensor.shape), ", not a row for each of ", std::max<int64_t>(rows, 0),
          " instances: ask with \"inputs\" by their names"));
    }
  }
  return rows;
}

void PredictJson::WriteRows(const InferResult& result, int64_t rows, JsonWriter& json) {
  std::vector<absl::string_view> left;  // elements of each output that are not written
  for (const int position : result.outputs) {
    left.push_back(result.response.outputs[position].bytes);
  }
  const auto write = [&](size_t i) {
    const OutputTensor& tensor = result.response.outputs[result.outputs[i]];
    const absl::Span<const int64_t> shape = absl::MakeConstSpan(tensor.shape).subspan(1);
    int64_t elements = 1;
    for (const int64_t dim : shape) elements *= dim;
    const absl::string_view datatype = DatatypeOfAnswer(result, i);
    const absl::string_view bytes = TakeElements(datatype, elements, left[i]);
    json.Raw([&](std::string& text) { AppendNestedJson(bytes, datatype, shape, text); });
  };
  json.Array("predictions", [&] {
    for (int64_t row = 0; row < rows; ++row) {
      if (result.outputs.size() == 1) {
        write(0);
        continue;
      }
      json.Object([&] {
        for (size_t i = 0; i < result.outputs.size(); ++i) {
          json.Key(result.model.servable->signature.outputs[result.outputs[i]].name);
          write(i);
        }
      });
    }
  });
}

void PredictJson::WriteOutputs(const InferResult& result, JsonWriter& json) {
  const auto write = [&](size_t i) {
    const OutputTensor& tensor = result.response.outputs[result.outputs[i]];
    json.Raw([&](std::string& text) {
      AppendNestedJson(tensor.bytes, DatatypeOfAnswer(result, i), tensor.shape, text);
    });
  };
  json.Key("outputs");
  if (result.outputs.size() == 1) return write(0);
  json.Object([&] {
    for (size_t i = 0; i < result.outputs.size(); ++i) {
      json.Key(result.model.servable->signature.outputs[result.outputs[i]].name);
      write(i);
    }
  });
}

HttpReply PredictJson::Encode(const InferResult& result) const {
  const absl::StatusOr<int64_t> rows = RowsOf(result);
  // An input that was sent whole may be no rows.
  if (!rows.ok() && !outputs_) return StatusReply(rows.status());
  JsonWriter json;
  json.Object([&] {
    if (outputs_) WriteOutputs(result, json);
    if (predictions_ && rows.ok()) WriteRows(result, *rows, json);
  });
  return {.content_type = "application/json", .body = json.Take()};
}

}  // namespace reprise
