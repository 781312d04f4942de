// Requests for models over x [n, m, 4], and answers compared with those alone.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <vector>

#include "runtime/engine/types/request.h"

namespace reprise {

struct SliceRequest {
  SliceRequest(int64_t rows, int64_t length, int seed) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    for (int64_t i = 0; i < rows * length * 4; ++i) values.push_back(normal(random));
    request.inputs = {{{rows, length, 4}, values.data()}};
  }
  SliceRequest(const SliceRequest&) = delete;
  std::vector<float> values;
  Request request;
};

inline void ExpectSame(const Response& actual, const Response& expected) {
  ASSERT_TRUE(actual.status.ok()) << actual.status;
  ASSERT_TRUE(expected.status.ok()) << expected.status;
  ASSERT_EQ(actual.outputs[0].shape, expected.outputs[0].shape);
  ASSERT_EQ(actual.outputs[0].bytes.size(), expected.outputs[0].bytes.size());
  const auto* got = reinterpret_cast<const float*>(actual.outputs[0].bytes.data());
  const auto* want = reinterpret_cast<const float*>(expected.outputs[0].bytes.data());
  for (size_t i = 0; i < expected.outputs[0].bytes.size() / sizeof(float); ++i) {
    ASSERT_NEAR(got[i], want[i], 1e-5) << "element " << i;
  }
}

}  // namespace reprise
