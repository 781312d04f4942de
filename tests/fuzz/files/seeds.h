// Seeds of the fuzzers: whole files that are taken, made when they are asked for.
#pragma once

#include <string>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/device/cpu/cpu_device.h"
#include "runtime/engine/load/stored_model.h"
#include "runtime/engine/types/observer.h"
#include "runtime/graph/graph.h"
#include "runtime/recipe/compiler.h"
#include "runtime/recipe/record_name.h"

namespace reprise::fuzz {

// Random models, each as the bytes of an ONNX file.
std::vector<std::string> OnnxSeeds(int count);
// Small decoders of each family.
std::vector<std::string> GgufSeeds();
std::vector<std::string> GraphTextSeeds(int count);
std::vector<std::string> RecordSeeds();

// A small model whose recipe is stored, and the parts needed to bind it again.
class StoredRecipeOfATest {
 public:
  StoredRecipeOfATest();

  const Graph& graph() const { return graph_; }
  const RecipeKey& key() const { return key_; }
  const CpuDevice& device() const { return device_; }
  const ModelId& id() const { return id_; }
  RecordName name() const;
  StoredModelKey model_key() const;
  CompileOptions options(CompiledPlan* plan = nullptr) const;
  std::string payload() const;
  std::string findings() const;
  std::string usage() const;

 private:
  const ModelId id_ = {.name = "model", .version = 3};
  const CpuDevice device_;
  const SteadyClock clock_;
  Graph graph_;
  RecipeKey key_;
};

}  // namespace reprise::fuzz
