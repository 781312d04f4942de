/* example.Reverse: the elements of a vector of floats in the other order. */
#include "runtime/ops/custom/reprise_op.h"

static int Shape(const reprise_op_api* api, reprise_op_call* call, int32_t inputs,
                 const reprise_tensor* input) {
  (void)inputs;
  if (input[0].dtype != REPRISE_FLOAT32) return api->fail(call, "takes floats");
  if (input[0].rank != 1) return api->fail(call, "takes a vector");
  return api->set_output(call, 0, input[0].dtype, input[0].rank, input[0].dims);
}

static int Compute(const reprise_op_api* api, reprise_op_call* call, int32_t inputs,
                   const reprise_tensor* input, int32_t outputs, const reprise_tensor* output) {
  const float* from = (const float*)input[0].data;
  float* to = (float*)output[0].data;
  const int64_t count = input[0].dims[0];
  (void)api, (void)call, (void)inputs, (void)outputs;
  for (int64_t i = 0; i < count; ++i) to[i] = from[count - 1 - i];
  return 0;
}

static const reprise_op kReverse = {
    sizeof(reprise_op), "example", "Reverse", 1, 1, 1, 1, /*elementwise=*/0, Shape, Compute};
static const reprise_op* const kOps[] = {&kReverse, NULL};

const reprise_op* const* reprise_op_library(uint32_t version) {
  return version == REPRISE_OP_VERSION ? kOps : NULL;
}
