// The lengths that came to a server, and their cost there, for `reprise plan --from`.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/client.h"
#include "runtime/bucket/cost_model.h"
#include "runtime/bucket/histogram.h"

namespace reprise::cli {

struct ServerLengths {
  std::string model;
  std::string version;
  std::vector<WeightedSize> lengths;  // weight in rows, ascending
  // The mean over the recipes that are ready; 0: not known.
  double bytes_per_element = 0;  // an element is a position of a row
  double capture_ms = 0;
  // Times of replays; nothing was measured where the model has several axes besides the batch,
  // or packs its requests.
  ReplayCost cost;
};

// Sizes along `axis`. `model` may be empty where one model had requests. Errors: errors of
// the server; NOT_FOUND lists the models, or the axes; FAILED_PRECONDITION where no request
// came.
absl::StatusOr<ServerLengths> FindServerLengths(client::Client& client, const std::string& model,
                                                const std::string& version,
                                                const std::string& axis);

// Returns the lengths of a server's answers.
absl::StatusOr<ServerLengths> LengthsAlong(const v1::ModelDynamicity& report,
                                           const v1::ListRecipesResponse& recipes,
                                           const v1::BucketLearning& learnt,
                                           const std::string& axis);

}  // namespace reprise::cli
