#include "runtime/onnx/importer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <numeric>

#include "runtime/graph/text.h"
#include "runtime/graph/verifier.h"
#include "tests/runtime/onnx/model_builder.h"

namespace reprise {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

absl::StatusOr<ImportedModel> Import(const ModelBuilder& builder) {
  const std::string bytes = builder.Bytes();
  return ImportOnnxBytes(absl::string_view(bytes.data(), bytes.size()));
}

// The imported graph as text; a failure shows its message.
std::string Text(const ModelBuilder& builder) {
  auto model = Import(builder);
  if (!model.ok()) return std::string(model.status().ToString());
  EXPECT_TRUE(Verify(model->graph, false).ok()) << Verify(model->graph, false);
  return Print(model->graph);
}

std::string Error(const ModelBuilder& builder, absl::StatusCode code) {
  auto model = Import(builder);
  EXPECT_EQ(model.status().code(), code) << model.status();
  return std::string(model.status().message());
}
std::string InvalidArgument(const ModelBuilder& builder) {
  return Error(builder, absl::StatusCode::kInvalidArgument);
}
std::string Unimplemented(const ModelBuilder& builder) {
  return Error(builder, absl::StatusCode::kUnimplemented);
}

ModelBuilder ReluModel() {
  ModelBuilder builder;
  builder.Input("x", {"batch", "3"}).Output("y");
  builder.Node("Relu", {"x"}, {"y"}, "relu");
  return builder;
}

TEST(ImporterTest, DimsKeepSizesSymbolsAndGetNamesWhereTheyHaveNone) {
  ModelBuilder builder;
  builder.Input("x", {"batch", "0", "", "-1", "past + 1"}).Output("y");
  builder.Node("Relu", {"x"}, {"y"});
  const auto model = Import(builder);
  ASSERT_TRUE(model.ok()) << model.status();
  ASSERT_EQ(model->inputs.size(), 1u);
  EXPECT_THAT(model->inputs[0].dims, ElementsAre(Dim{-1, "batch"}, Dim{0, ""}, Dim{-1, "x:2"},
                                                 Dim{-1, "x:3"}, Dim{-1, "past + 1"}));
  EXPECT_EQ(model->outputs[0].name, "y");
}

TEST(ImporterTest, LargeFloatsAreParametersTheRestConstants) {
  ModelBuilder builder;
  builder.Input("x", {"n", "16"}).Output("y");
  std::vector<float> weights(256);
  std::iota(weights.begin(), weights.end(), 0.0f);
  builder.Floats("w", {16, 16}, weights);
  builder.Floats("b", {16}, std::vector<float>(16, 2.0f));
  builder.Node("Gemm", {"x", "w", "b"}, {"y"});
  const auto model = Import(builder);
  ASSERT_TRUE(model.ok()) << model.status();
  ASSERT_EQ(model->parameters.size(), 1u);
  EXPECT_THAT(model->parameters[0].Aligned().span<float>(), ::testing::ElementsAreArray(weights));
  const ValueId b = model->graph.FindValue("b");
  ASSERT_NE(b, kNone);
  EXPECT_EQ(model->graph.ConstantOf(b)->span<float>()[15], 2.0f);
}

TEST(ImporterTest, TypedFieldsHoldTheSameValuesAsRawBytes) {
  ModelBuilder builder;
  builder.Input("x", {"2"}, onnx::TensorProto::FLOAT16).Output("y");
  auto* half = builder.graph().add_initializer();
  half->set_name("h");
  half->set_data_type(onnx::TensorProto::FLOAT16);
  half->add_dims(2);
  half->add_int32_data(0x3C00);
  half->add_int32_data(0xC000);
  builder.Node("Add", {"x", "h"}, {"y"});
  const auto model = Import(builder);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_THAT(model->graph.ConstantOf(model->graph.FindValue("h"))->ToDoubles(),
              ElementsAre(1, -2));
}

TEST(ImporterTest, ListedInitializersAreOptionalInputsFromFormatVersionFour) {
  ModelBuilder builder = ReluModel();
  builder.graph().mutable_node(0)->set_op_type("Add");
  builder.graph().mutable_node(0)->add_input("b");
  builder.Floats("b", {3}, {1, 2, 3});
  builder.Input("b", {"3"});
  auto model = Import(builder);
  ASSERT_TRUE(model.ok()) << model.status();
  ASSERT_EQ(model->inputs.size(), 2u);
  EXPECT_TRUE(model->inputs[1].optional);
  EXPECT_TRUE(model->graph.value(model->graph.FindValue("b")).overridable);

  builder.model().set_ir_version(3);
  model = Import(builder);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->inputs.size(), 1u);
  EXPECT_FALSE(model->graph.value(model->graph.FindValue("b")).overridable);
}

TEST(ImporterTest, NodesInAnyOrderAreSorted) {
  ModelBuilder builder;
  builder.Input("x", {"2"}).Output("z");
  builder.Node("Neg", {"y"}, {"z"});
  builder.Node("Abs", {"x"}, {"y"});
  EXPECT_EQ(Text(builder), R"(graph {
  input %x: f32[2]
  %y: ? = Abs(%x) @n
  %z: ? = Neg(%y) @n
  output %z
}
)");
}

TEST(ImporterTest, ConstantNodesOfEveryFormBecomeConstants) {
  ModelBuilder builder;
  builder.Input("x", {"2"}).Output("y");
  SetAttribute(builder.Node("Constant", {}, {"a"}), "value_float", 2.0f);
  SetAttribute(builder.Node("Constant", {}, {"i"}), "value_ints", std::vector<int64_t>{2});
  builder.Node("Reshape", {"x", "i"}, {"r"});
  builder.Node("Mul", {"r", "a"}, {"y"});
  const std::string text = Text(builder);
  EXPECT_THAT(text, HasSubstr("const %a: f32[]"));
  EXPECT_THAT(text, HasSubstr("const %i: i64[1] = {2}"));
}

TEST(ImporterTest, TrailingLeftOutOperandsVanish) {
  ModelBuilder builder;
  builder.Input("x", {"2"}).Output("y");
  builder.Node("Clip", {"x", "", ""}, {"y"});
  EXPECT_THAT(Text(builder), HasSubstr("= Clip(%x) @n"));
}

// --- Older forms. ---

TEST(RewriteTest, AttributesThatBecameInputsAreInputs) {
  ModelBuilder builder(11);
  builder.Input("x", {"2", "1"}).Output("y");
  SetAttribute(builder.Node("Squeeze", {"x"}, {"a"}), "axes", std::vector<int64_t>{1});
  SetAttribute(builder.Node("Unsqueeze", {"a"}, {"b"}), "axes", std::vector<int64_t>{0});
  auto& sum = builder.Node("ReduceSum", {"b"}, {"c"});
  SetAttribute(sum, "axes", std::vector<int64_t>{-1});
  SetAttribute(sum, "keepdims", int64_t{1});
  auto& split = builder.Node("Split", {"b"}, {"d", "e"});
  SetAttribute(split, "axis", int64_t{1});
  SetAttribute(split, "split", std::vector<int64_t>{1, 1});
  builder.Node("Concat", {"c", "d", "e"}, {"y"});
  SetAttribute(*builder.graph().mutable_node(4), "axis", int64_t{1});
  const std::string text = Text(builder);
  EXPECT_THAT(text, HasSubstr("Squeeze(%x, %\"n/axes\") @n"));
  EXPECT_THAT(text, HasSubstr("Unsqueeze(%a, "));
  EXPECT_THAT(text, HasSubstr("{keepdims = 1}"));
  EXPECT_THAT(text, HasSubstr("Split(%b, %\"n/split\") {axis = 1}"));
}

TEST(RewriteTest, SliceClipPadOfOldOpsets) {
  ModelBuilder builder(9);
  builder.Input("x", {"4"}).Output("y");
  auto& slice = builder.Node("Slice", {"x"}, {"a"}, "s");
  SetAttribute(slice, "starts", std::vector<int64_t>{1});
  SetAttribute(slice, "ends", std::vector<int64_t>{3});
  SetAttribute(builder.Node("Clip", {"a"}, {"b"}, "c"), "max", 6.0f);
  auto& pad = builder.Node("Pad", {"b"}, {"y"}, "p");
  SetAttribute(pad, "pads", std::vector<int64_t>{1, 1});
  SetAttribute(pad, "value", 7.0f);
  const std::string text = Text(builder);
  EXPECT_THAT(text, HasSubstr("Slice(%x, %\"s/starts\", %\"s/ends\") @s"));
  EXPECT_THAT(text, HasSubstr("Clip(%a, _, %\"c/max\") @c"));
  EXPECT_THAT(text, HasSubstr("Pad(%b, %\"p/pads\", %\"p/value\") @p"));
}

TEST(RewriteTest, OldSoftmaxFlattensUnlessItsAxisIsTheLast) {
  ModelBuilder builder(11);
  builder.Input("x", {"2", "3", "4"}).Output("y").Output("z");
  SetAttribute(builder.Node("Softmax", {"x"}, {"y"}), "axis", int64_t{-1});
  builder.Node("Softmax", {"x"}, {"z"});
  const std::string text = Text(builder);
  EXPECT_THAT(text, HasSubstr("%y: ? = Softmax(%x) {axis = -1}"));
  EXPECT_THAT(text, HasSubstr("Flatten(%x) {axis = 1}"));
  EXPECT_THAT(text, HasSubstr("%z: ? = Reshape("));
}

TEST(RewriteTest, FunctionsOfTheModelAreInlined) {
  ModelBuilder builder;
  auto* import = builder.model().add_opset_import();
  import->set_domain("mine");
  import->set_version(1);
  auto* function = builder.model().add_functions();
  function->set_name("Leaky");
  function->set_domain("mine");
  function->add_input("a");
  function->add_output("b");
  function->add_attribute("slope");
  auto* node = function->add_node();
  node->set_op_type("LeakyRelu");
  node->add_input("a");
  node->add_output("t");
  auto* attribute = node->add_attribute();
  attribute->set_name("alpha");
  attribute->set_ref_attr_name("slope");
  attribute->set_type(onnx::AttributeProto::FLOAT);
  node = function->add_node();
  node->set_op_type("Neg");
  node->add_input("t");
  node->add_output("b");
  builder.Input("x", {"2"}).Output("y");
  SetAttribute(builder.Node("Leaky", {"x"}, {"y"}, "call", "mine"), "slope", 0.5f);
  const std::string text = Text(builder);
  EXPECT_THAT(text, HasSubstr("LeakyRelu(%x) {alpha = 0.5}"));
  EXPECT_THAT(text, HasSubstr("%y: ? = Neg("));
}

TEST(RewriteTest, SwishAndSwiGluAreGatesOfTheirInput) {
  ModelBuilder builder(28);
  builder.Input("x", {"2"}).Input("y", {"2"}).Output("a").Output("b");
  builder.Node("Swish", {"x"}, {"a"});
  SetAttribute(builder.Node("SwiGLU", {"x", "y"}, {"b"}), "alpha", 0.5f);
  const std::string text = Text(builder);
  EXPECT_THAT(text, HasSubstr("%a: ? = com.microsoft.QuickGelu(%x) {alpha = 1.0}"));
  EXPECT_THAT(text, HasSubstr("com.microsoft.QuickGelu(%x) {alpha = 0.5}"));
  EXPECT_THAT(text, HasSubstr("%b: ? = Mul("));
}

// --- Refusals. ---

TEST(ImporterErrorTest, EveryUnknownOpIsNamedAtOnce) {
  ModelBuilder builder;
  builder.Input("x", {"2"}).Output("z");
  builder.Node("Frobnicate", {"x"}, {"y"}, "first");
  builder.Node("Loop", {"y"}, {"z"}, "second");
  const std::string message = Unimplemented(builder);
  EXPECT_EQ(message,
            "op 'Frobnicate' (domain 'ai.onnx', version 17, node 'first', dtypes (f32)): is not "
            "supported; op 'Loop' (domain 'ai.onnx', version 17, node 'second', dtypes (?)): is "
            "not supported");
}

TEST(ImporterErrorTest, ReasonsOfEveryKindAreToldTogether) {
  ModelBuilder builder;
  builder.Input("x", {"2"}).Input("s", {"2"}, onnx::TensorProto::STRING).Output("z");
  builder.Floats("w", {4}, {1, 2, 3});
  builder.Node("Relu", {"x", "w"}, {"y"}, "arity");
  builder.Node("Frobnicate", {"y", "s"}, {"z"}, "", "com.example");
  const std::string message = InvalidArgument(builder);
  EXPECT_THAT(message, HasSubstr("initializer 'w': has 12 bytes"));
  EXPECT_THAT(message, HasSubstr("input 's': dtype string"));
  EXPECT_THAT(message, HasSubstr("node 'arity', dtypes (f32, ?)): has 2 inputs"));
  EXPECT_THAT(message, HasSubstr("op 'Frobnicate' (domain 'com.example', version ?, node '' -> "
                                 "'z', dtypes (?, ?)): is not supported"));
}

TEST(ImporterErrorTest, InternalOpsCannotBeNamedByAModel) {
  ModelBuilder builder = ReluModel();
  builder.graph().mutable_node(0)->set_op_type("Linear");
  builder.graph().mutable_node(0)->set_domain("reprise");
  EXPECT_THAT(Unimplemented(builder), HasSubstr("domain 'reprise'"));
}

TEST(ImporterErrorTest, UnsupportedDtypesAreNamed) {
  ModelBuilder builder;
  builder.Input("x", {"2"}, onnx::TensorProto::STRING).Output("y");
  builder.Node("Identity", {"x"}, {"y"});
  EXPECT_THAT(Unimplemented(builder), HasSubstr("input 'x': dtype string"));
}

TEST(ImporterErrorTest, CyclicGraphIsNamed) {
  ModelBuilder builder;
  builder.Input("x", {"2"}).Output("y");
  builder.Node("Add", {"x", "b"}, {"a"}, "one");
  builder.Node("Relu", {"a"}, {"b"}, "two");
  builder.Node("Relu", {"a"}, {"y"}, "three");
  EXPECT_THAT(InvalidArgument(builder), HasSubstr("cyclic: node Add 'one'"));
}

TEST(ImporterErrorTest, DanglingInputNamesNodeAndValue) {
  ModelBuilder builder = ReluModel();
  builder.graph().mutable_node(0)->set_input(0, "nowhere");
  EXPECT_THAT(InvalidArgument(builder), HasSubstr("Relu 'relu' uses value 'nowhere'"));
}

TEST(ImporterErrorTest, DanglingOutputIsNamed) {
  ModelBuilder builder = ReluModel();
  builder.Output("nowhere");
  EXPECT_THAT(InvalidArgument(builder), HasSubstr("output 'nowhere'"));
}

TEST(ImporterErrorTest, ValueDefinedTwiceIsNamed) {
  ModelBuilder builder = ReluModel();
  builder.Node("Neg", {"x"}, {"y"}, "again");
  EXPECT_THAT(InvalidArgument(builder), HasSubstr("value 'y' is defined twice"));
  ModelBuilder inputs;
  inputs.Input("x", {"2"}).Input("x", {"2"}).Output("y");
  inputs.Node("Relu", {"x"}, {"y"});
  EXPECT_THAT(InvalidArgument(inputs), HasSubstr("value 'x' is defined twice"));
}

TEST(ImporterErrorTest, MissingOpsetImportIsNamed) {
  ModelBuilder builder = ReluModel();
  builder.model().clear_opset_import();
  EXPECT_THAT(InvalidArgument(builder), HasSubstr("imports no opset"));
}

TEST(ImporterErrorTest, NewerOpsetIsRefused) {
  ModelBuilder builder = ReluModel();
  builder.model().mutable_opset_import(0)->set_version(28);
  EXPECT_TRUE(Import(builder).ok());
  builder.model().mutable_opset_import(0)->set_version(29);
  EXPECT_THAT(Unimplemented(builder), HasSubstr("opset 29 is newer than 28"));
}

TEST(ImporterErrorTest, WrongByteCountOfAnInitializerIsNamed) {
  ModelBuilder builder = ReluModel();
  builder.Floats("w", {4}, {1, 2, 3});
  EXPECT_THAT(InvalidArgument(builder),
              HasSubstr("initializer 'w': has 12 bytes of data, expected 16"));
}

TEST(ImporterErrorTest, NegativeAndOverflowingDimsAreNamed) {
  ModelBuilder negative = ReluModel();
  negative.Floats("w", {-1, 4}, {1});
  EXPECT_THAT(InvalidArgument(negative), HasSubstr("initializer 'w': the dims [-1, 4]"));
  ModelBuilder huge = ReluModel();
  huge.Floats("w", {INT64_MAX, INT64_MAX}, {1});
  EXPECT_THAT(InvalidArgument(huge), HasSubstr("initializer 'w': the dims"));
}

TEST(ImporterErrorTest, WrongArityIsNamed) {
  ModelBuilder builder = ReluModel();
  builder.graph().mutable_node(0)->add_input("x");
  EXPECT_THAT(InvalidArgument(builder), HasSubstr("has 2 inputs, takes 1 to 1"));
}

TEST(ImporterErrorTest, FunctionThatCallsItselfIsRefused) {
  ModelBuilder builder = ReluModel();
  auto* function = builder.model().add_functions();
  function->set_name("Again");
  function->set_domain("mine");
  function->add_input("a");
  function->add_output("b");
  auto* node = function->add_node();
  node->set_op_type("Again");
  node->set_domain("mine");
  node->add_input("a");
  node->add_output("b");
  builder.graph().mutable_node(0)->set_op_type("Again");
  builder.graph().mutable_node(0)->set_domain("mine");
  EXPECT_THAT(InvalidArgument(builder), HasSubstr("function 'Again' calls itself"));
}

// --- Files. ---

class ImporterFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(::testing::TempDir()) /
              ::testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_ / "model");
    path_ = (folder_ / "model" / "model.onnx").string();
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  static void Write(const std::filesystem::path& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
  }

  // A model whose initializer of 256 floats is in the external file `location`.
  ModelBuilder External(const std::string& location, const std::string& offset = "0",
                        const std::string& length = "1024") {
    ModelBuilder builder;
    builder.Input("x", {"256"}).Output("y");
    builder.Node("Add", {"x", "w"}, {"y"});
    auto* tensor = builder.graph().add_initializer();
    tensor->set_name("w");
    tensor->set_data_type(onnx::TensorProto::FLOAT);
    tensor->add_dims(256);
    tensor->set_data_location(onnx::TensorProto::EXTERNAL);
    for (const auto& [key, value] : std::map<std::string, std::string>{
             {"location", location}, {"offset", offset}, {"length", length}}) {
      auto* entry = tensor->add_external_data();
      entry->set_key(key);
      entry->set_value(value);
    }
    return builder;
  }
  std::string Weights() {
    std::vector<float> values(256, 1.5f);
    return std::string(reinterpret_cast<const char*>(values.data()), 1024);
  }
  std::string ImportError(const ModelBuilder& builder) {
    Write(path_, builder.Bytes());
    const auto model = ImportOnnxFile(path_);
    EXPECT_EQ(model.status().code(), absl::StatusCode::kInvalidArgument) << model.status();
    return std::string(model.status().message());
  }

  std::filesystem::path folder_;
  std::string path_;
};

TEST_F(ImporterFileTest, MissingFileIsNotFound) {
  EXPECT_EQ(ImportOnnxFile(path_).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(ImporterFileTest, EmptyFileAndFolderAreRefused) {
  Write(path_, "");
  EXPECT_EQ(ImportOnnxFile(path_).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ImportOnnxFile(folder_.string()).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(ImporterFileTest, ExternalDataIsReadAtItsOffset) {
  Write(folder_ / "model" / "weights.bin", "12345678" + Weights());
  Write(path_, External("weights.bin", "8").Bytes());
  const auto model = ImportOnnxFile(path_);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->parameters[0].Aligned().span<float>()[255], 1.5f);
}

TEST_F(ImporterFileTest, ParametersAtOddAddressesStayInTheFileUntilTheyAreRead) {
  Write(folder_ / "model" / "weights.bin", "123" + Weights());
  Write(path_, External("weights.bin", "3").Bytes());
  const auto model = ImportOnnxFile(path_);
  ASSERT_TRUE(model.ok()) << model.status();
  const Tensor& stored = model->parameters[0];
  EXPECT_FALSE(stored.aligned());
  EXPECT_EQ(model->files.back().bytes.data() + 3, stored.data());
  EXPECT_EQ(stored.Aligned(),
            Tensor::FromVector(DType::kFloat32, stored.shape(), std::vector<float>(256, 1.5f)));
}

TEST_F(ImporterFileTest, LinkToTheModelFindsDataBesideTheModel) {
  Write(folder_ / "model" / "weights.bin", Weights());
  Write(path_, External("weights.bin").Bytes());
  std::filesystem::create_symlink(path_, folder_ / "link.onnx");
  EXPECT_TRUE(ImportOnnxFile((folder_ / "link.onnx").string()).ok());
}

TEST_F(ImporterFileTest, ExternalDataOutsideTheFolderIsRefused) {
  Write(folder_ / "weights.bin", Weights());
  EXPECT_THAT(ImportError(External("../weights.bin")), HasSubstr("'../weights.bin'"));
  EXPECT_THAT(ImportError(External((folder_ / "weights.bin").string())),
              HasSubstr("is not inside the model's folder"));
  std::filesystem::create_symlink(folder_ / "weights.bin", folder_ / "model" / "link.bin");
  EXPECT_THAT(ImportError(External("link.bin")), HasSubstr("leads out of the model's folder"));
}

TEST_F(ImporterFileTest, ExternalDataBeyondTheFileIsRefused) {
  Write(folder_ / "model" / "weights.bin", Weights());
  EXPECT_THAT(ImportError(External("weights.bin", "1")), HasSubstr("of 1024 bytes"));
  EXPECT_THAT(ImportError(External("weights.bin", "9223372036854775807")), HasSubstr("outside"));
  EXPECT_THAT(ImportError(External("weights.bin", "0", "512")),
              HasSubstr("has 512 bytes of data, expected 1024"));
  EXPECT_THAT(ImportError(External("weights.bin", "-4")), HasSubstr("offset '-4'"));
  EXPECT_THAT(ImportError(External("absent.bin")), HasSubstr("'absent.bin' does not exist"));
}

TEST_F(ImporterFileTest, ParametersOutliveTheImport) {
  ModelBuilder builder;
  builder.Input("x", {"1024"}).Output("y");
  std::vector<int8_t> bytes(1024);
  std::iota(bytes.begin(), bytes.end(), int8_t{0});
  builder.Initializer("q", onnx::TensorProto::INT8, {1024}, bytes);
  SetAttribute(builder.Node("Cast", {"q"}, {"w"}), "to", int64_t{onnx::TensorProto::FLOAT});
  builder.Node("Mul", {"x", "w"}, {"y"});
  Write(path_, builder.Bytes());
  auto model = ImportOnnxFile(path_);
  ASSERT_TRUE(model.ok()) << model.status();
  const Tensor parameter = model->parameters.at(0);
  *model = ImportedModel();
  EXPECT_EQ(parameter.span<int8_t>()[1023], -1);
}

// y = c ? Relu(x) + k : (c ? h : Exp(x)), where h = Neg(x) is outside.
ModelBuilder BranchModel() {
  ModelBuilder builder;
  builder.Input("c", {}, onnx::TensorProto::BOOL).Input("x", {"n"}).Output("y");
  builder.Node("Neg", {"x"}, {"h"}, "neg");
  auto& node = builder.Node("If", {"c"}, {"y"}, "branch");
  onnx::GraphProto& first = AddBranch(node, "then_branch");
  auto* k = first.add_initializer();
  k->set_name("k");
  k->set_data_type(onnx::TensorProto::FLOAT);
  k->add_float_data(2);
  AddBranchNode(first, "Relu", {"x"}, "t");
  AddBranchNode(first, "Add", {"t", "k"}, "r");
  first.add_output()->set_name("r");
  onnx::GraphProto& second = AddBranch(node, "else_branch");
  auto& inner = AddBranchNode(second, "If", {"c"}, "t");
  AddBranch(inner, "then_branch").add_output()->set_name("h");
  onnx::GraphProto& last = AddBranch(inner, "else_branch");
  AddBranchNode(last, "Exp", {"x"}, "e");
  last.add_output()->set_name("e");
  second.add_output()->set_name("t");
  return builder;
}

TEST(ImporterTest, BranchesLieBesideTheirIfAndSeeWhatIsAround) {
  const auto model = Import(BranchModel());
  ASSERT_TRUE(model.ok()) << model.status();
  const Graph& graph = model->graph;
  std::vector<std::string> ops;
  std::vector<std::vector<std::string>> operands;  // of each If
  for (const NodeId id : graph.NodeIds()) {
    ops.push_back(graph.node(id).op);
    if (ops.back() != "If") continue;
    operands.emplace_back();
    for (const ValueId input : graph.node(id).inputs) {
      operands.back().push_back(graph.value(input).name);
    }
  }
  EXPECT_THAT(ops, ElementsAre("Neg", "Relu", "Add", "Exp", "If", "If"));
  EXPECT_THAT(operands, ElementsAre(ElementsAre("c", "h", "branch#1/#3/e"),
                                    ElementsAre("c", "branch#0/r", "branch#1/t")));
}

TEST(ImporterTest, ABrokenBranchIsNamed) {
  ModelBuilder missing = BranchModel();
  missing.graph().mutable_node(1)->mutable_attribute()->RemoveLast();
  EXPECT_THAT(InvalidArgument(missing), HasSubstr("If 'branch': else_branch is missing"));
  ModelBuilder uneven = BranchModel();
  uneven.graph().mutable_node(1)->mutable_attribute(0)->mutable_g()->add_output()->set_name("t");
  EXPECT_THAT(InvalidArgument(uneven), HasSubstr("then_branch has 2 results, the node 1"));
  ModelBuilder unknown = BranchModel();
  unknown.graph().mutable_node(1)->mutable_attribute(0)->mutable_g()->mutable_node(0)->set_input(
      0, "nobody");
  EXPECT_THAT(InvalidArgument(unknown), HasSubstr("'nobody', which nothing defines"));
}

}  // namespace
}  // namespace reprise
