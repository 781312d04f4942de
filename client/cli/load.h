// A closed loop of clients: the measurement of `reprise bench`.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/client.h"

namespace reprise::cli {

// One finished request.
struct Sample {
  int64_t length = 0;   // tokens a row
  int64_t tokens = -1;  // tokens of texts, as the server counted them; -1: ids were sent
  int64_t batch = 1;    // rows
  double milliseconds = 0;
  std::string error;  // code and message; empty: it was answered
  std::string bucket;
  std::string capture;
  int64_t replay = -1;      // `reprise.batch`
  int64_t batch_size = -1;  // rows of the replay that served it
};

struct LoadOptions {
  std::string model;
  std::string version;
  int concurrency = 1;
  int64_t batch = 1;
  int64_t max_id = 1000;
  uint64_t seed = 1;
  // Lengths are sent in order, each request takes the next; they start over at the end. A model
  // whose requests have no length is sent rows.
  std::vector<int64_t> lengths;
  // Sent in the place of ids where there are any, `batch` of them with each request, in order; they
  // start over at the end.
  std::vector<std::string> texts;
  // Whichever comes first ends the load; zero: no limit. At least one must be set.
  int64_t requests = 0;
  std::chrono::milliseconds duration{0};
};

struct LoadResult {
  std::vector<Sample> samples;  // ordered by when requests started
  double seconds = 0;           // first start to last answer
  bool has_length = true;       // else requests have rows and no length
};

// `progress` is called about ten times a second with the number of finished requests, from the
// calling thread. Answers that are errors become samples; an error of this function means that
// nothing could be sent.
absl::StatusOr<LoadResult> RunLoad(client::Client& client, const LoadOptions& options,
                                   const std::function<void(int64_t)>& progress);

}  // namespace reprise::cli
