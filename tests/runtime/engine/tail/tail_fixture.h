// Tests of cut models share this: a model that is loaded and run, and elements of its answers.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/runtime/onnx/model_builder.h"
#include "tests/testing/engine_fixture.h"
#include "tests/testing/temp_folder.h"

namespace reprise {

class TailTest : public testing::Test {
 protected:
  void Load(const ModelBuilder& builder, ModelOptions options = {}) {
    options.id = {"m", 1};
    const TempFolder folder;
    options.path = folder.Write("model.onnx", builder.Bytes());
    auto loaded = fixture_.engine.Load(std::move(options));
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    model_ = *std::move(loaded);
  }
  Response Run(std::vector<InputTensor> inputs, std::vector<bool> wanted = {}) {
    return fixture_.engine.RunOne(
        *model_, {.inputs = std::move(inputs), .wanted_outputs = std::move(wanted)},
        *fixture_.stream);
  }
  size_t compiles() { return fixture_.observer.of("m").compiles.size(); }

  EngineFixture fixture_;
  std::shared_ptr<Model> model_;
};

template <typename T>
std::vector<T> Elements(const Response& response, size_t output = 0) {
  if (!response.status.ok()) {
    ADD_FAILURE() << response.status;
    return {};
  }
  const std::string& bytes = response.outputs[output].bytes;
  std::vector<T> values(bytes.size() / sizeof(T));
  std::copy(bytes.begin(), bytes.end(), reinterpret_cast<char*>(values.data()));
  return values;
}

inline void AddOutput(ModelBuilder& b, const std::string& name, int type,
                      const std::vector<std::string>& dims) {
  ModelBuilder::SetType(b.graph().add_output(), name, type, dims);
}

}  // namespace reprise
