// ModelLoader: from a file to a Model: import and axes; what running it shows is the Certifier's
// part, the first buckets are PolicyMaker's.
#pragma once

#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "runtime/base/load_budget.h"
#include "runtime/engine/load/loader_context.h"
#include "runtime/engine/load/model_draft.h"
#include "runtime/engine/model/model.h"
#include "runtime/onnx/importer.h"

namespace reprise {

class ModelLoader {
 public:
  explicit ModelLoader(const LoaderContext& context) : context_(context) {}

  // See Engine::Load. `given`: the model itself, which comes from no file then.
  absl::StatusOr<std::unique_ptr<Model>> Load(
      ModelOptions options, std::optional<ImportedModel> given = std::nullopt) const;

 private:
  // `as_imported`: the graph before any pass, if requests may override initialisers; `plain`: the
  // same without promoted constants, empty where there are none. `budget`: set
  // to that of all that follows the import, whose own is that of the file.
  absl::Status Import(ModelDraft& model, std::optional<ImportedModel> given, Graph& as_imported,
                      Graph& plain, std::optional<LoadBudget>& budget) const;
  // Promotes the constants that the options name.
  absl::Status PromoteConstants(ModelDraft& model, ImportedModel& imported, Graph& plain) const;
  // Promoted constants are refused where padding or packing is lost by that. `plain`: the graph
  // without them.
  absl::Status CheckCertificates(ModelDraft& model, const Graph& plain) const;
  // A graph that data decides shapes in becomes what comes before that, and a tail.
  absl::Status CutAtData(ModelDraft& model) const;
  // Prepares for sizes at which certificates have to be looked at anew.
  static void MakeSlices(ModelDraft& model);
  // Logs how many products round, where the model's precision lets them: as captures will have it,
  // which is not known of a model whose shapes depend on the values of inputs.
  void LogCertificates(const ModelView& model) const;
  void LogRounding(const ModelView& model) const;

  LoaderContext context_;
};

}  // namespace reprise
