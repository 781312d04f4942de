// Requests for tokens under load: the measurement of `reprise bench --generate`.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/client.h"

namespace reprise::cli {

// One finished request. Times are milliseconds.
struct GenerateSample {
  int64_t prompt = 0;           // tokens
  int64_t tokens = 0;           // new ones
  double first = 0;             // its first token came; counted from when it was to be sent
  double total = 0;             // its last one
  std::vector<double> between;  // the time between each token and the next
  std::string error;            // code and message; empty: it was answered
};

struct GenerateLoadOptions {
  std::string model;
  std::string version;
  // Each request takes the next of both; they start over at the end.
  std::vector<int64_t> prompts;
  std::vector<int64_t> outputs;
  int64_t shared_prefix = 0;  // first tokens of a prompt that all have in common
  int64_t max_id = 1000;
  uint64_t seed = 1;
  double temperature = 0;
  int concurrency = 1;  // requests under way, at most
  // Requests a second at random times (a Poisson process), whether or not others are answered; a
  // request that cannot be sent in time counts from its planned time. 0: each client asks when it
  // was answered.
  double rate = 0;
  int64_t requests = 0;  // whichever comes first ends the load; zero: no limit
  std::chrono::milliseconds duration{0};
};

struct GenerateLoadResult {
  std::vector<GenerateSample> samples;  // ordered by when requests started
  double seconds = 0;                   // first start to last answer
};

// `progress` is called about ten times a second with the number of finished requests.
absl::StatusOr<GenerateLoadResult> RunGenerateLoad(client::Client& client,
                                                   const GenerateLoadOptions& options,
                                                   const std::function<void(int64_t)>& progress);

}  // namespace reprise::cli
