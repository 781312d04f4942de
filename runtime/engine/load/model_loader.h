// ModelLoader: from a file to a Model: import and axes; the findings of running it are the
// Certifier's part, the first buckets are PolicyMaker's.
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

  // Loads as Engine::Load says. `given`: the model itself, which comes from no file then.
  absl::StatusOr<std::unique_ptr<Model>> Load(
      ModelOptions options, std::optional<ImportedModel> given = std::nullopt) const;

 private:
  // Imports the model. `as_imported`: the graph before any pass, if requests may override
  // initialisers; `plain`: the same without promoted constants, empty where there are none.
  // `budget`: set to the limits of all that follows the import, whose own limits come from the
  // file.
  absl::Status Import(ModelDraft& model, std::optional<ImportedModel> given, Graph& as_imported,
                      Graph& plain, std::optional<LoadBudget>& budget) const;
  // Promotes the constants that the options name.
  absl::Status PromoteConstants(ModelDraft& model, ImportedModel& imported, Graph& plain) const;
  // Refuses promoted constants where padding or packing is lost by them. `plain`: the graph without
  // them.
  absl::Status CheckCertificates(ModelDraft& model, const Graph& plain) const;
  // Makes a graph in which data decides shapes the part before that, and a tail.
  absl::Status CutAtData(ModelDraft& model) const;
  // Prepares for sizes at which certificates have to be checked again.
  static void MakeSlices(ModelDraft& model);
  // Logs along which axes requests are padded, in the form of the model that is loaded, and why.
  // `deferred`: that is measured later.
  void LogAxes(const ModelView& model) const;
  // Logs how many products round, where the model's precision lets them: as captures will have it.
  // That is not known of a model whose shapes depend on the values of inputs.
  void LogCertificates(const ModelView& model) const;
  void LogRounding(const ModelView& model) const;

  LoaderContext context_;
};

}  // namespace reprise
