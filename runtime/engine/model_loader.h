// ModelLoader: from a file to a Model: import, axes, certificate, buckets.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/base/clock.h"
#include "runtime/device/device.h"
#include "runtime/engine/core_pool.h"
#include "runtime/engine/model.h"
#include "runtime/engine/stored_model.h"
#include "runtime/recipe/store.h"

namespace reprise {

struct LoaderContext {
  const Device* device = nullptr;
  const Clock* clock = nullptr;
  Observer* observer = nullptr;
  CorePool* cores = nullptr;
  MemoryBudget* parameter_budget = nullptr;
  RecipeStore* store = nullptr;  // null: everything is measured at each start
  std::function<void(const std::string&)> log;
};

class ModelLoader {
 public:
  explicit ModelLoader(const LoaderContext& context) : context_(context) {}

  // See Engine::Load.
  absl::StatusOr<std::unique_ptr<Model>> Load(ModelOptions options) const;
  // See Engine::ConfirmPadding.
  void Confirm(const Model& model) const;

 private:
  // `as_imported`: the graph before any pass, if requests may override initialisers.
  absl::Status Import(Model& model, Graph& as_imported) const;
  // A graph that data decides shapes in becomes what comes before that, and a tail.
  absl::Status CutAtData(Model& model) const;
  // Merges symbols and names the axes; an axis that only takes one size becomes a constant dim.
  absl::Status FindAxes(Model& model, Graph as_imported) const;
  // The sizes that the policy will have along an axis, as configured or by default.
  std::vector<int64_t> BucketSizes(const Model& model, const ModelAxis& axis) const;
  std::vector<std::vector<int64_t>> BucketsByAxis(const Model& model) const;
  // Fits the shapes of outputs; an axis that they do not follow simply is refused.
  absl::Status FitShapes(Model& model) const;
  // Of a model without axes: dtypes and shapes as they are.
  absl::Status DescribeOutputs(Model& model) const;
  // What became of the question to the store.
  struct StoreLookup {
    bool tried = false;
    bool found = false;
    StoreMiss miss = StoreMiss::kAbsent;  // where it was tried and not found
  };
  // Finds out what can only be measured: from the store where it is known, else by running the
  // model.
  absl::Status FindOut(Model& model, StoreLookup& lookup) const;
  // The key of a model whose findings are worth keeping.
  StoredModelKey KeyOf(const Model& model) const;
  // Takes the findings from the store where it knows them.
  StoreLookup Restore(const StoredModelKey& key, Model& model) const;
  // Keeps what was measured in `measure_ns`; `confirmed` replaces certificates, by axis.
  void Keep(const Model& model, const std::map<size_t, AxisCertificate>& confirmed,
            int64_t measure_ns) const;
  // What is known of the use of the model.
  void FindUsage(Model& model) const;
  // Measures the certificates; what fails leaves its axis uncertified.
  absl::Status Certify(Model& model) const;
  absl::Status SetPolicy(Model& model) const;
  // `policy`: what is in force first.
  void MakeLearner(Model& model, BucketPolicy policy) const;
  // Drops buckets at which the model cannot be specialised.
  void LimitBuckets(Model& model, BucketPolicy& policy) const;

  LoaderContext context_;
};

}  // namespace reprise
