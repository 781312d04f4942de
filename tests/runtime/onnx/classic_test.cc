// Ops of ai.onnx.ml: their rewritten forms, and the errors for those that have none.
#include <gmock/gmock.h>

#include "runtime/graph/graph.h"
#include "tests/runtime/onnx/import_test_util.h"

namespace reprise {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

using Ints = std::vector<int64_t>;
using Floats = std::vector<float>;
using Texts = std::vector<std::string>;

ModelBuilder Builder() {
  ModelBuilder builder;
  auto* import = builder.model().add_opset_import();
  import->set_domain(kClassicDomain);
  import->set_version(3);
  builder.Input("x", {"batch", "4"});
  return builder;
}

// Adds a tree of one question and two leaves.
onnx::NodeProto& Stump(ModelBuilder& builder) {
  auto& node =
      builder.Node("TreeEnsembleClassifier", {"x"}, {"label", "scores"}, "stump", kClassicDomain);
  SetAttribute(node, "nodes_treeids", Ints{0, 0, 0});
  SetAttribute(node, "nodes_nodeids", Ints{0, 1, 2});
  SetAttribute(node, "nodes_featureids", Ints{2, 0, 0});
  SetAttribute(node, "nodes_values", Floats{0.5f, 0, 0});
  SetAttribute(node, "nodes_modes", Texts{"BRANCH_LEQ", "LEAF", "LEAF"});
  SetAttribute(node, "nodes_truenodeids", Ints{1, 0, 0});
  SetAttribute(node, "nodes_falsenodeids", Ints{2, 0, 0});
  SetAttribute(node, "class_treeids", Ints{0, 0});
  SetAttribute(node, "class_nodeids", Ints{1, 2});
  SetAttribute(node, "class_ids", Ints{0, 0});
  SetAttribute(node, "class_weights", Floats{0.25f, 0.75f});
  SetAttribute(node, "classlabels_int64s", Ints{5, 6});
  builder.Output("label").Output("scores");
  return node;
}

void Replace(onnx::NodeProto& node, const std::string& name, const Ints& values) {
  for (auto& attribute : *node.mutable_attribute()) {
    if (attribute.name() != name) continue;
    attribute.clear_ints();
    for (const int64_t value : values) attribute.add_ints(value);
  }
}

TEST(ClassicTest, TreesAreAParameterWhoseBytesAreInNoKey) {
  ModelBuilder builder = Builder();
  Stump(builder);
  const std::string text = Text(builder);
  EXPECT_THAT(text, HasSubstr("reprise.TreeEnsemble(%x, "));
  EXPECT_THAT(text, HasSubstr("param %\"stump/forest\": u8["));
  EXPECT_THAT(text, HasSubstr("= reprise.ClassScores("));
  EXPECT_THAT(text, Not(HasSubstr("0.75")));
}

TEST(ClassicTest, IntegersAreCastBeforeTheyAreCompared) {
  ModelBuilder builder = Builder();
  builder.graph().mutable_input(0)->mutable_type()->mutable_tensor_type()->set_elem_type(
      onnx::TensorProto::INT64);
  Stump(builder);
  EXPECT_THAT(Text(builder), HasSubstr("= Cast(%x)"));
}

TEST(ClassicTest, AChildThatIsNotThereIsNamedWithItsTree) {
  ModelBuilder builder = Builder();
  Replace(Stump(builder), "nodes_truenodeids", {7, 0, 0});
  EXPECT_THAT(InvalidArgument(builder), AllOf(HasSubstr("tree 0"), HasSubstr("node 7")));
}

TEST(ClassicTest, ATreeWithoutARootHasACycle) {
  ModelBuilder builder = Builder();
  Replace(Stump(builder), "nodes_truenodeids", {0, 0, 0});
  EXPECT_THAT(InvalidArgument(builder), HasSubstr("cycle"));
}

TEST(ClassicTest, ListsOfOtherLengthsAreNamedWithBoth) {
  ModelBuilder builder = Builder();
  Replace(Stump(builder), "nodes_featureids", {2, 0});
  EXPECT_THAT(InvalidArgument(builder),
              AllOf(HasSubstr("nodes_featureids"), HasSubstr("2"), HasSubstr("3")));
}

TEST(ClassicTest, ATargetThatIsNotThereIsNamed) {
  ModelBuilder builder = Builder();
  Replace(Stump(builder), "class_ids", {0, 9});
  EXPECT_THAT(InvalidArgument(builder), AllOf(HasSubstr("9"), HasSubstr("2")));
}

TEST(ClassicTest, MapsAreRefusedByName) {
  ModelBuilder maps = Builder();
  maps.Output("y").Node("DictVectorizer", {"x"}, {"y"}, "vectors", kClassicDomain);
  EXPECT_THAT(Unimplemented(maps), AllOf(HasSubstr("vectors"), HasSubstr("maps")));
}

TEST(ClassicTest, AMapOfProbabilitiesIsTheirTensor) {
  ModelBuilder builder = Builder();
  builder.Output("maps").Node("ZipMap", {"x"}, {"maps"}, "n", kClassicDomain);
  EXPECT_THAT(Text(builder), HasSubstr("%maps: ? = Identity(%x)"));
}

TEST(ClassicTest, OneLineOfTwoClassesIsAProductAndItsScores) {
  ModelBuilder builder = Builder();
  auto& node = builder.Node("LinearClassifier", {"x"}, {"label", "scores"}, "line", kClassicDomain);
  SetAttribute(node, "coefficients", Floats{1, 2, 3, 4});
  SetAttribute(node, "intercepts", Floats{1});
  SetAttribute(node, "classlabels_ints", Ints{0, 1});
  builder.Output("label");
  const std::string text = Text(builder);
  EXPECT_THAT(text, HasSubstr("= Gemm(%x, "));
  EXPECT_THAT(text, HasSubstr("rule = 3"));
}

TEST(ClassicTest, SupportVectorsOfTheLinearKernelAreLines) {
  ModelBuilder builder = Builder();
  auto& node = builder.Node("SVMRegressor", {"x"}, {"y"}, "svr", kClassicDomain);
  SetAttribute(node, "support_vectors", Floats(12, 0.5f));
  SetAttribute(node, "coefficients", Floats{1, 2, 3});
  SetAttribute(node, "rho", Floats{1});
  SetAttribute(node, "n_supports", int64_t{3});
  builder.Output("y");
  const std::string text = Text(builder);
  EXPECT_THAT(text, HasSubstr("svr/lines"));
  EXPECT_THAT(text, Not(HasSubstr("svr/vectors")));
}

// Where large weights nearly cancel, single precision would lose the decision.
TEST(ClassicTest, LargeWeightsOfSupportVectorsAreSummedAsDoubles) {
  for (const float weight : {100.0f, 1e6f}) {
    ModelBuilder builder = Builder();
    auto& node = builder.Node("SVMRegressor", {"x"}, {"y"}, "svr", kClassicDomain);
    SetAttribute(node, "kernel_type", "RBF");
    SetAttribute(node, "kernel_params", Floats{0.5f, 0, 0});
    SetAttribute(node, "support_vectors", Floats(12, 0.5f));
    SetAttribute(node, "coefficients", Floats{weight, 1, -weight});
    SetAttribute(node, "rho", Floats{1});
    SetAttribute(node, "n_supports", int64_t{3});
    builder.Output("y");
    const std::string text = Text(builder);
    const auto sums_doubles = HasSubstr("Cast(%v3) {to = 11}");  // the kernels, to doubles
    if (weight > 1000) {
      EXPECT_THAT(text, sums_doubles);
    } else {
      EXPECT_THAT(text, Not(sums_doubles));
    }
  }
}

// Numbers whose sum wraps around to the right one would be written to far past the end.
TEST(ClassicTest, ClassesOfMoreVectorsThanCoefficientsAreRefused) {
  for (const Ints& supports :
       {Ints{1 << 20, 1, 1, 1},
        Ints{int64_t{1} << 62, int64_t{1} << 62, int64_t{1} << 62, (int64_t{1} << 62) + 1}}) {
    ModelBuilder builder = Builder();
    auto& node = builder.Node("SVMClassifier", {"x"}, {"label", "scores"}, "svc", kClassicDomain);
    SetAttribute(node, "support_vectors", Floats(4, 0.5f));
    SetAttribute(node, "coefficients", Floats{1, 2, 3});
    SetAttribute(node, "rho", Floats(6, 0.0f));
    SetAttribute(node, "vectors_per_class", supports);
    SetAttribute(node, "classlabels_ints", Ints{0, 1, 2, 3});
    builder.Output("label");
    EXPECT_THAT(InvalidArgument(builder),
                AllOf(HasSubstr("svc"), HasSubstr(absl::StrCat(supports[0])), HasSubstr("3 coef")));
  }
}

TEST(ClassicTest, MoreTargetsThanFitAreRefusedBeforeAnythingIsAllocated) {
  for (const int64_t targets : {int64_t{1} << 25, int64_t{1} << 62}) {
    ModelBuilder builder = Builder();
    auto& node = builder.Node("TreeEnsembleRegressor", {"x"}, {"y"}, "leaf", kClassicDomain);
    SetAttribute(node, "nodes_treeids", Ints{0});
    SetAttribute(node, "nodes_nodeids", Ints{0});
    SetAttribute(node, "nodes_featureids", Ints{0});
    SetAttribute(node, "nodes_values", Floats{0});
    SetAttribute(node, "nodes_modes", Texts{"LEAF"});
    SetAttribute(node, "nodes_truenodeids", Ints{0});
    SetAttribute(node, "nodes_falsenodeids", Ints{0});
    SetAttribute(node, "target_treeids", Ints{0});
    SetAttribute(node, "target_nodeids", Ints{0});
    SetAttribute(node, "target_ids", Ints{0});
    SetAttribute(node, "target_weights", Floats{1});
    SetAttribute(node, "n_targets", targets);
    builder.Output("y");
    EXPECT_THAT(InvalidArgument(builder),
                AllOf(HasSubstr("leaf"), HasSubstr(absl::StrCat("there are ", targets))));
  }
}

// One line, of the class that has all vectors against each other one, is as long as a vector: two
// classes of many and many of none.
TEST(ClassicTest, DecisionsOfMoreNumbersThanFitAreRefusedBeforeTheyAreMade) {
  for (const char* kernel : {"LINEAR", "RBF"}) {
    constexpr int64_t kClasses = 700, kPairs = kClasses * (kClasses - 1) / 2;
    constexpr int64_t kVectors = 1200, kColumns = 1200;  // times kPairs: more than 2^28
    ModelBuilder builder = Builder();
    auto& node = builder.Node("SVMClassifier", {"x"}, {"label", "scores"}, "svc", kClassicDomain);
    SetAttribute(node, "kernel_type", std::string(kernel));
    SetAttribute(node, "support_vectors", Floats(kVectors * kColumns, 0.5f));
    SetAttribute(node, "coefficients", Floats((kClasses - 1) * kVectors, 0.5f));
    SetAttribute(node, "rho", Floats(kPairs, 0.0f));
    Ints supports(kClasses, 0), labels(kClasses);
    supports[0] = kVectors - 1;
    supports[1] = 1;
    for (int64_t i = 0; i < kClasses; ++i) labels[i] = i;
    SetAttribute(node, "vectors_per_class", supports);
    SetAttribute(node, "classlabels_ints", labels);
    builder.Output("label");
    EXPECT_THAT(Error(builder, absl::StatusCode::kResourceExhausted),
                AllOf(HasSubstr("SVMClassifier 'svc'"), HasSubstr("1200 times 244650"),
                      HasSubstr("limit is 268435456")));
  }
}

TEST(ClassicTest, ColumnsThatAreNotThereAreRefused) {
  const auto extract = [](const Ints& columns) {
    ModelBuilder builder = Builder();
    builder.Initializer<int64_t>("columns", onnx::TensorProto::INT64,
                                 {static_cast<int64_t>(columns.size())}, columns);
    builder.Node("ArrayFeatureExtractor", {"x", "columns"}, {"y"}, "some", kClassicDomain);
    builder.Output("y");
    return builder;
  };
  EXPECT_THAT(Text(extract({3, 0})), HasSubstr("= Gather(%x, %columns)"));
  for (const int64_t column : {int64_t{4}, int64_t{-5}, int64_t{1} << 62}) {
    EXPECT_THAT(
        InvalidArgument(extract({0, column})),
        AllOf(HasSubstr("'some'"), HasSubstr(absl::StrCat("column ", column)), HasSubstr("has 4")));
  }
}

// A leaf without a weight is a number among others where there is one target to give it to.
TEST(ClassicTest, ALeafOfOneTargetWithoutAWeightGivesZero) {
  ModelBuilder builder = Builder();
  auto& node = builder.Node("TreeEnsembleRegressor", {"x"}, {"y"}, "stump", kClassicDomain);
  SetAttribute(node, "nodes_treeids", Ints{0, 0, 0});
  SetAttribute(node, "nodes_nodeids", Ints{0, 1, 2});
  SetAttribute(node, "nodes_featureids", Ints{2, 0, 0});
  SetAttribute(node, "nodes_values", Floats{0.5f, 0, 0});
  SetAttribute(node, "nodes_modes", Texts{"BRANCH_LEQ", "LEAF", "LEAF"});
  SetAttribute(node, "nodes_truenodeids", Ints{1, 0, 0});
  SetAttribute(node, "nodes_falsenodeids", Ints{2, 0, 0});
  SetAttribute(node, "target_treeids", Ints{0});
  SetAttribute(node, "target_nodeids", Ints{1});
  SetAttribute(node, "target_ids", Ints{0});
  SetAttribute(node, "target_weights", Floats{3});
  SetAttribute(node, "aggregate_function", std::string("MIN"));
  builder.Output("y");
  EXPECT_THAT(Text(builder), HasSubstr("entries = 2"));
}

// Minutes where each node looks at all before it.
TEST(ClassicTest, ManyNodesAreReadInTheTimeOfOneWalk) {
  constexpr int kNodes = 40000;
  ModelBuilder builder = Builder();
  std::string from = "x";
  for (int i = 0; i < kNodes; ++i) {
    const std::string to = absl::StrCat("v", i);
    auto& node = builder.Node("Scaler", {from}, {to}, to, kClassicDomain);
    SetAttribute(node, "scale", Floats{2});
    from = to;
  }
  builder.Output(from);
  const auto model = Import(builder);
  ASSERT_TRUE(model.ok()) << model.status();
  // Floats stay floats: none is cast.
  EXPECT_EQ(model->graph.num_nodes(), kNodes);
}

}  // namespace
}  // namespace reprise
