// Inputs that have the batch axis in two dims: each request is a block on the diagonal.
#include <gtest/gtest.h>

#include <vector>

#include "tests/runtime/onnx/model_builder.h"
#include "tests/testing/engine_fixture.h"
#include "tests/testing/temp_folder.h"

namespace reprise {
namespace {

TEST(SquareInputsTest, RequestsInCompanyGetTheirOwnBlocks) {
  ModelBuilder builder;
  builder.Input("x", {"n", "n"}).Output("y");
  builder.Node("Neg", {"x"}, {"y"});
  const TempFolder folder;
  EngineFixture fixture;
  const auto model = fixture.engine.Load(
      {.id = {"square", 1}, .path = folder.Write("model.onnx", builder.Bytes())});
  ASSERT_TRUE(model.ok()) << model.status();
  ASSERT_TRUE((*model)->batches_requests());

  const std::vector<float> one = {1}, four = {2, 3, 4, 5}, nine = {6, 7, 8, 9, 10, 11, 12, 13, 14};
  BatchPlan plan(**model);
  std::vector<Request> requests(3);
  std::vector<const Request*> pointers;
  int64_t n = 0;
  for (const std::vector<float>* values : {&one, &four, &nine}) {
    requests[n].inputs = {{{n + 1, n + 1}, values->data()}};
    const auto shape = (*model)->Measure(requests[n]);
    ASSERT_TRUE(shape.ok()) << shape.status();
    ASSERT_TRUE(plan.TryAdd(*shape));
    pointers.push_back(&requests[n++]);
  }
  const std::vector<Response> responses = fixture.engine.Run(plan, pointers, *fixture.stream);
  n = 0;
  for (const std::vector<float>* values : {&one, &four, &nine}) {
    ASSERT_TRUE(responses[n].status.ok()) << responses[n].status;
    const OutputTensor& output = responses[n].outputs[0];
    EXPECT_EQ(output.shape, Shape({n + 1, n + 1}));
    const auto* answer = reinterpret_cast<const float*>(output.bytes.data());
    for (size_t i = 0; i < values->size(); ++i)
      EXPECT_EQ(answer[i], -(*values)[i]) << n << ", " << i;
    ++n;
  }
}

}  // namespace
}  // namespace reprise
