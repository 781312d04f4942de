#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/graph/graph.h"
#include "tests/runtime/onnx/import_test_util.h"

namespace reprise {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// Values `values` at `indices` of a tensor of `dims`.
template <typename T>
void SetSparse(onnx::SparseTensorProto& sparse, const std::string& name, int type,
               const std::vector<T>& values, const std::vector<int64_t>& indices_shape,
               const std::vector<int64_t>& indices, const std::vector<int64_t>& dims) {
  auto& v = *sparse.mutable_values();
  v.set_name(name);
  v.set_data_type(type);
  v.add_dims(static_cast<int64_t>(values.size()));
  v.set_raw_data(values.data(), values.size() * sizeof(T));
  auto& i = *sparse.mutable_indices();
  i.set_data_type(onnx::TensorProto::INT64);
  for (int64_t dim : indices_shape) i.add_dims(dim);
  i.set_raw_data(indices.data(), indices.size() * sizeof(int64_t));
  for (int64_t dim : dims) sparse.add_dims(dim);
}

ModelBuilder WithSparse(const std::vector<int64_t>& indices_shape,
                        const std::vector<int64_t>& indices, const std::vector<int64_t>& dims) {
  ModelBuilder b;
  b.Input("x", {"2", "3"}).Output("y");
  SetSparse<float>(*b.graph().add_sparse_initializer(), "w", onnx::TensorProto::FLOAT, {5, 7},
                   indices_shape, indices, dims);
  b.Node("Add", {"x", "w"}, {"y"});
  return b;
}

TEST(SparseTest, InitializersAreDense) {
  const std::string dense = "const %w: f32[2, 3] = {0, 5, 0, 0, 0, 7}";
  EXPECT_THAT(Text(WithSparse({2}, {1, 5}, {2, 3})), HasSubstr(dense));
  EXPECT_THAT(Text(WithSparse({2, 2}, {0, 1, 1, 2}, {2, 3})), HasSubstr(dense));
}

TEST(SparseTest, LargeOnesAreParameters) {
  auto model = Import(WithSparse({2}, {1, 299}, {100, 3}));
  ASSERT_TRUE(model.ok()) << model.status();
  ASSERT_EQ(model->parameters.size(), 1u);
  const std::vector<double> values = model->parameters[0].ToDoubles();
  EXPECT_EQ(values[1], 5);
  EXPECT_EQ(values[299], 7);
  EXPECT_EQ(values[2], 0);
}

TEST(SparseTest, ConstantsAndSubgraphsHoldThemToo) {
  ModelBuilder b;
  b.Input("x", {"3"}).Input("c", {}, onnx::TensorProto::BOOL).Output("y");
  auto& constant = b.Node("Constant", {}, {"k"});
  auto* attribute = constant.add_attribute();
  attribute->set_name("sparse_value");
  attribute->set_type(onnx::AttributeProto::SPARSE_TENSOR);
  SetSparse<float>(*attribute->mutable_sparse_tensor(), "", onnx::TensorProto::FLOAT, {9}, {1}, {2},
                   {3});
  auto& choice = b.Node("If", {"c"}, {"y"});
  onnx::GraphProto& first = AddBranch(choice, "then_branch");
  SetSparse<float>(*first.add_sparse_initializer(), "s", onnx::TensorProto::FLOAT, {4}, {1}, {0},
                   {3});
  AddBranchNode(first, "Max", {"x", "s"}, "r");
  first.add_output()->set_name("r");
  onnx::GraphProto& second = AddBranch(choice, "else_branch");
  AddBranchNode(second, "Max", {"x", "k"}, "r");
  second.add_output()->set_name("r");
  EXPECT_THAT(Text(b), AllOf(HasSubstr("f32[3] = {0, 0, 9}"), HasSubstr("f32[3] = {4, 0, 0}")));
}

TEST(SparseTest, WhatDoesNotFitIsRefusedByName) {
  EXPECT_THAT(InvalidArgument(WithSparse({2}, {1, 6}, {2, 3})),
              AllOf(HasSubstr("initializer 'w'"), HasSubstr("index 6"), HasSubstr("[0, 5]")));
  EXPECT_THAT(InvalidArgument(WithSparse({2, 2}, {0, 1, -1, 2}, {2, 3})), HasSubstr("index -1"));
  EXPECT_THAT(InvalidArgument(WithSparse({1}, {1}, {2, 3})), HasSubstr("do not fit"));
  EXPECT_THAT(InvalidArgument(WithSparse({2}, {1, 5}, {2, -3})), HasSubstr("-3"));
  // A few bytes must not become many.
  EXPECT_THAT(Unimplemented(WithSparse({2}, {1, 5}, {1 << 20, 1 << 20})),
              AllOf(HasSubstr("1048576, 1048576"), HasSubstr("more than 2684")));
  EXPECT_THAT(Unimplemented(WithSparse({2}, {1, 5}, {2, 1 << 28})), HasSubstr("zeros included"));
}

}  // namespace
}  // namespace reprise
