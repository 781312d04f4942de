#include "runtime/certify/probe_run.h"

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"

namespace reprise {

absl::StatusOr<std::vector<Tensor>> RunOnce(const ProbeRunner& runner,
                                            const std::vector<Numbers>& inputs, size_t outputs) {
  std::vector<Tensor> tensors;
  for (const Numbers& input : inputs) tensors.push_back(ToTensor(input));
  ASSIGN_OR_RETURN(std::vector<Tensor> results, runner(tensors));
  if (results.size() != outputs) {
    return absl::InternalError(
        absl::StrCat("the model has ", outputs, " outputs, a run of it returned ", results.size()));
  }
  return results;
}

std::string OutputWords(const ProbeOptions& options, const std::string& output) {
  if (!options.watched.contains(output)) return absl::StrCat("output '", output, "'");
  return absl::StrCat("value '", output, "', which answers show coarsely,");
}

}  // namespace reprise
