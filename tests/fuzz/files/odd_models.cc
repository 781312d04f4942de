#include "tests/fuzz/files/odd_models.h"

#include <google/protobuf/text_format.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "runtime/base/status_macros.h"
#include "runtime/onnx/file/onnx_proto.h"

namespace reprise::fuzz {
namespace {

constexpr char kInput[] =
    R"(input { name: "x" type { tensor_type { elem_type: 1 shape { dim { dim_param: "n" }
       dim { dim_value: 2 } } } } })";
constexpr char kOutput[] = R"(output { name: "y" type { tensor_type { elem_type: 1 } } })";
constexpr char kOpset[] = R"(ir_version: 8 opset_import { version: 17 } )";

std::string InOddGraph(absl::string_view parts) {
  return absl::StrCat(kOpset, "graph { name: \"g\" ", kInput, parts, kOutput, " }");
}

// `tensor` as an initializer and as the value of a Constant.
void AddTensor(absl::string_view tensor, std::vector<std::string>& texts) {
  texts.push_back(InOddGraph(absl::StrCat("initializer { name: \"c\" ", tensor, R"( }
    node { op_type: "Identity" input: "c" output: "y" })")));
  texts.push_back(InOddGraph(absl::StrCat(R"(node { op_type: "Constant" output: "y" attribute {
    name: "value" type: TENSOR t { )",
                                          tensor, " } } }")));
}

void AddTensors(std::vector<std::string>& texts) {
  for (
      const char* tensor :
      {"dims: 2 data_type: 1 float_data: [ 1, -0.5 ]",
       "dims: 2 data_type: 11 double_data: [ 1, nan ]",
       "dims: 1 data_type: 7 int64_data: 7",
       "dims: 1 data_type: 12 uint64_data: 7",
       "dims: 1 data_type: 13 uint64_data: 18446744073709551615",
       "data_type: 6 int32_data: -7",
       "dims: 1 data_type: 2 int32_data: 255",
       "dims: 1 data_type: 3 int32_data: -128",
       "dims: 1 data_type: 4 int32_data: 65535",
       "dims: 1 data_type: 5 int32_data: -1",
       "dims: 2 data_type: 9 int32_data: [ 0, 1 ]",
       "dims: 1 data_type: 10 int32_data: 15360",
       "dims: 1 data_type: 16 int32_data: 16256",
       "dims: 3 data_type: 21 int32_data: [ 33, 3 ]",
       "dims: 3 data_type: 22 raw_data: \"\\041\\003\"",
       "dims: 1 data_type: 22 int32_data: [ 1, 2 ]",
       "dims: 2 data_type: 17 int32_data: [ 56, 184 ]",
       "dims: 1 data_type: 19 raw_data: \"\\074\"",
       "dims: 2 data_type: 8 string_data: [ \"a\", \"b\" ]",
       "dims: 2 data_type: 8 string_data: \"a\"",
       "dims: 1 data_type: 1 raw_data: \"\\000\\000\\200\\077\"",
       "dims: 1 data_type: 1 raw_data: \"abc\"",
       "dims: 2 data_type: 1 float_data: 1",
       "dims: -1 data_type: 1",
       "dims: 0 data_type: 1",
       "dims: 4611686018427387904 dims: 4 data_type: 1",
       "dims: 1 data_type: 14 float_data: [ 1, 2 ]",
       "dims: 1 data_type: 99",
       "dims: 1 data_type: 1 segment { begin: 0 end: 1 } float_data: 1",
       R"(dims: 1 data_type: 1 data_location: EXTERNAL external_data { key: "location" value: "w" }
           external_data { key: "offset" value: "4" } external_data { key: "length" value: "4" })",
       R"(dims: 1 data_type: 1 data_location: EXTERNAL external_data { key: "location" value: "../w" })",
       R"(dims: 1 data_type: 1 data_location: EXTERNAL external_data { key: "location" value: "." })",
       R"(dims: 1 data_type: 1 data_location: EXTERNAL
           external_data { key: "location" value: "model.onnx" })",
       R"(dims: 1 data_type: 1 data_location: EXTERNAL
           external_data { key: "location" value: "model.onnx" }
           external_data { key: "offset" value: "99999" })",
       R"(dims: 1 data_type: 1 data_location: EXTERNAL external_data { key: "offset" value: "-4" })"}) {
    AddTensor(tensor, texts);
  }
  constexpr char kValues[] = R"(values { name: "c" dims: 2 data_type: 1 float_data: [ 5, 7 ] })";
  for (const char* rest :
       {"dims: [ 2, 3 ] indices { dims: 2 data_type: 7 int64_data: [ 1, 5 ] }",
        "dims: [ 2, 3 ] indices { dims: [ 2, 2 ] data_type: 7 int64_data: [ 0, 1, 1, 2 ] }",
        "dims: [ 2, 3 ] indices { dims: 2 data_type: 7 int64_data: [ 1, 6 ] }",
        "dims: [ 2, 3 ] indices { dims: 2 data_type: 6 int32_data: [ 1, 2 ] }",
        "dims: [ 65536, 65536 ] indices { dims: 2 data_type: 7 int64_data: [ 1, 2 ] }",
        "dims: [ 2, -3 ] indices { dims: 2 data_type: 7 int64_data: [ 1, 2 ] }"}) {
    const std::string sparse = absl::StrCat(kValues, " ", rest);
    texts.push_back(InOddGraph(absl::StrCat("sparse_initializer { ", sparse, R"( }
      node { op_type: "Identity" input: "c" output: "y" })")));
    texts.push_back(InOddGraph(absl::StrCat(R"(node { op_type: "Constant" output: "y" attribute {
      name: "sparse_value" type: SPARSE_TENSOR sparse_tensor { )",
                                            sparse, " } } }")));
  }
  texts.push_back(
      InOddGraph(R"(sparse_initializer { values { dims: 1 data_type: 8 string_data: "a" } })"));
}

void AddAttributes(std::vector<std::string>& texts) {
  for (const char* attribute :
       {R"(name: "value_int" i: 3)", R"(name: "value_float" f: 3)",
        R"(name: "value_ints" ints: [ 3, 4 ])", R"(name: "value_floats" floats: [ 3, 4 ])",
        R"(name: "value_string" s: "a")", R"(name: "value_strings" strings: [ "a", "b" ])",
        R"(name: "value_strings" type: STRINGS)",
        R"(name: "value" t { dims: 1 data_type: 1 float_data: 1 })",
        R"(name: "sparse_value" sparse_tensor { values { dims: 1 data_type: 1 float_data: 1 }
           indices { dims: 1 data_type: 7 int64_data: 0 } dims: 2 })",
        R"(name: "value" type: TYPE_PROTO tp {})", R"(name: "value" ref_attr_name: "a")",
        R"(name: "value_int" i: 3 } attribute { name: "value_int" i: 3)",
        R"(name: "other" i: 1)"}) {
    texts.push_back(InOddGraph(
        absl::StrCat(R"(node { op_type: "Constant" output: "y" attribute { )", attribute, " } }")));
  }
}

// Inputs, outputs, versions and edges of a graph.
void AddGraphs(std::vector<std::string>& texts) {
  constexpr char kNode[] = R"(node { op_type: "Neg" input: "x" output: "y" })";
  constexpr char kC[] = R"(initializer { name: "c" dims: 1 data_type: 1 float_data: 1 })";
  for (
      const char* parts :
      {R"(input { name: "s" type { sequence_type { elem_type { tensor_type { elem_type: 1 } } } } })",
       R"(input { name: "s" type { map_type { key_type: 7 } } })",
       R"(input { name: "s" })",
       R"(input { name: "s" type { tensor_type { elem_type: 8 shape {} } } })",
       R"(input { name: "s" type { tensor_type { elem_type: 1 } } })",
       R"(input { name: "s" type { tensor_type { elem_type: 14 shape {} } } })",
       R"(input { name: "s" type { tensor_type { elem_type: 1 shape { dim {} dim { dim_value: -1 }
           dim { dim_param: " a b " } } } } })",
       R"(input { name: "c" type { tensor_type { elem_type: 1 } } })",
       R"(input { name: "c" type { tensor_type { elem_type: 7 shape { dim { dim_value: 1 } } } } })",
       R"(input { name: "c" type { tensor_type { elem_type: 8 shape {} } } })",
       R"(input { name: "x" type { tensor_type { elem_type: 1 shape {} } } })",
       R"(output { name: "x" type { tensor_type { elem_type: 8 } } })",
       R"(output { name: "y" })",
       R"(output { name: "nobody" })",
       R"(node { op_type: "Neg" input: "nobody" output: "z" })",
       R"(node { op_type: "Neg" input: "x" output: "y" })",
       R"(node { op_type: "Add" input: "a" input: "x" output: "b" }
           node { op_type: "Neg" input: "b" output: "a" })",
       R"(node { op_type: "Neg" output: "z" })",
       R"(node { op_type: "Neg" input: "x" input: "x" output: "z" })",
       R"(node { op_type: "Mine" domain: "a.b" input: "x" output: "z" })",
       R"(node { op_type: "microsoft.Gelu" domain: "com" input: "x" output: "z" })",
       R"(node { op_type: "Dropout" input: "x" output: "" output: "mask" })"}) {
    texts.push_back(InOddGraph(absl::StrCat(kC, parts, kNode)));
  }
  for (const char* version :
       {"version: 99", "version: 0", "domain: \"ai.onnx.ml\" version: 3", "version: 6"}) {
    texts.push_back(absl::StrCat("ir_version: 3 opset_import { ", version, " } graph { ", kInput,
                                 R"(input { name: "c" })", kC, kNode, kOutput, " }"));
  }
  texts.push_back("ir_version: 8");
  texts.push_back(absl::StrCat(kOpset, "graph { ", kInput, kNode, " }"));
}

// Lists that grow in a Loop, and are joined after it.
void AddGrownLists(std::vector<std::string>& texts) {
  constexpr char kBody[] = R"(attribute { name: "body" type: GRAPH g {
    input { name: "i" type { tensor_type { elem_type: 7 shape {} } } }
    input { name: "go" type { tensor_type { elem_type: 9 shape {} } } }
    input { name: "list" type { sequence_type { elem_type { tensor_type { elem_type: 1 } } } } }
    node { op_type: "Identity" input: "go" output: "on" }
    node { op_type: "SequenceInsert" input: "list" input: "x" output: "longer" }
    output { name: "on" } output { name: "longer" } } })";
  for (const char* empty : {"", "attribute { name: \"dtype\" i: 1 type: INT }"}) {
    for (const char* join :
         {"axis\" i: 0 type: INT", "axis\" i: 1 type: INT",
          "new_axis\" i: 1 type: INT } attribute { name: \"axis\" i: 0 type: INT"}) {
      texts.push_back(InOddGraph(absl::StrCat(
          R"(initializer { name: "m" data_type: 7 int64_data: 3 }
             node { op_type: "SequenceEmpty" output: "none" )",
          empty, R"( }
             node { op_type: "Loop" input: "m" input: "" input: "none" output: "all" )",
          kBody, R"( }
             node { op_type: "ConcatFromSequence" input: "all" output: "y" attribute { name: ")",
          join, " } }")));
    }
  }
}

// Bodies of If, Loop and Scan, and functions.
void AddBodies(std::vector<std::string>& texts) {
  constexpr char kBranch[] =
      R"( type: GRAPH g { sparse_initializer { values { name: "v" dims: 1 data_type: 1 float_data: 1 }
          indices { dims: 1 data_type: 7 int64_data: 0 } dims: 2 }
          initializer { name: "w" dims: 1 data_type: 1 float_data: 1 }
          node { op_type: "Add" input: "v" input: "w" output: "r" } output { name: "r" } } } )";
  constexpr char kCondition[] = R"(initializer { name: "k" data_type: 9 int32_data: 1 })";
  const auto node = [&](absl::string_view op, absl::string_view inputs,
                        absl::string_view attributes) {
    texts.push_back(InOddGraph(absl::StrCat(kCondition, "node { op_type: \"", op, "\" ", inputs,
                                            " output: \"y\" ", attributes, " }")));
  };
  const std::string both = absl::StrCat("attribute { name: \"then_branch\"", kBranch,
                                        "attribute { name: \"else_branch\"", kBranch);
  node("If", "input: \"k\"", both);
  node("If", "input: \"k\" input: \"k\"", both);
  node("If", "input: \"k\"", absl::StrCat("attribute { name: \"then_branch\"", kBranch));
  node("If", "input: \"k\" output: \"more\"", both);
  node("If", "input: \"k\"",
       R"(attribute { name: "then_branch" type: GRAPH g { input { name: "i" } } }
    attribute { name: "else_branch" type: GRAPH g {} })");
  constexpr char kBody[] = R"(attribute { name: "body" type: GRAPH g {
    input { name: "i" type { tensor_type { elem_type: 7 shape {} } } }
    input { name: "go" type { tensor_type { elem_type: 9 shape {} } } }
    input { name: "s" type { tensor_type { elem_type: 1 } } }
    node { op_type: "Neg" input: "s" output: "t" } node { op_type: "Identity" input: "go" output: "on" }
    output { name: "on" } output { name: "t" } output { name: "t" } } })";
  constexpr char kCount[] = R"(initializer { name: "m" data_type: 7 int64_data: 3 })";
  for (const char* inputs :
       {"input: \"m\" input: \"k\" input: \"x\"", "input: \"\" input: \"\" input: \"x\"",
        "input: \"m\" input: \"k\"", "input: \"m\" input: \"k\" input: \"x\" input: \"x\""}) {
    texts.push_back(InOddGraph(absl::StrCat(kCondition, kCount, "node { op_type: \"Loop\" ", inputs,
                                            " output: \"y\" output: \"all\" ", kBody, " }")));
  }
  constexpr char kScan[] =
      R"(attribute { name: "body" type: GRAPH g { input { name: "a" } input { name: "b" }
    node { op_type: "Add" input: "a" input: "b" output: "c" } output { name: "c" } output { name: "c" } } })";
  for (const char* more : {"", "attribute { name: \"scan_input_axes\" ints: 0 }",
                           "attribute { name: \"scan_input_axes\" ints: [ 0, 1 ] }",
                           "attribute { name: \"scan_input_directions\" ints: 1 }",
                           "attribute { name: \"scan_input_directions\" ints: 2 }",
                           "attribute { name: \"num_scan_inputs\" i: 9 }",
                           "attribute { name: \"scan_output_axes\" ints: -1 }"}) {
    node("Scan", "input: \"x\" input: \"x\"",
         absl::StrCat(
             "output: \"all\" ", kScan, more,
             more[0] != '\0' && absl::string_view(more).find("num") != absl::string_view::npos
                 ? ""
                 : "attribute { name: \"num_scan_inputs\" i: 1 }"));
  }
  for (
      const char* function :
      {R"(node { op_type: "Elu" input: "a" output: "b" attribute { name: "alpha" ref_attr_name: "alpha" type: FLOAT } })",
       R"(node { op_type: "f" domain: "d" input: "a" output: "b" })",
       R"(node { op_type: "Identity" input: "a" output: "c" })"}) {
    texts.push_back(absl::StrCat(
        kOpset,
        R"(opset_import { domain: "d" version: 1 } functions { name: "f" domain: "d" input: "a"
        output: "b" attribute: "alpha" opset_import { version: 17 } opset_import { domain: "d" version: 1 } )",
        function, " } graph { ", kInput,
        R"(node { op_type: "f" domain: "d" input: "x" output: "y" attribute { name: "alpha" f: 0.5 type: FLOAT } })",
        kOutput, " }"));
  }
  texts.push_back(absl::StrCat(
      kOpset,
      R"(opset_import { domain: "d" version: 1 } functions { name: "f" domain: "d" input: "a" output: "a"
      opset_import { version: 17 } } graph { )",
      kInput, R"(node { op_type: "f" domain: "d" input: "x" input: "x" output: "y" })", kOutput,
      " }"));
}

}  // namespace

std::vector<std::string> OddModels() {
  std::vector<std::string> texts;
  AddTensors(texts);
  AddAttributes(texts);
  AddGraphs(texts);
  AddBodies(texts);
  AddGrownLists(texts);
  std::vector<std::string> models;
  for (const std::string& text : texts) {
    onnx::ModelProto model;
    REPRISE_CHECK(google::protobuf::TextFormat::ParseFromString(text, &model));
    models.push_back(model.SerializeAsString());
  }
  return models;
}

}  // namespace reprise::fuzz
