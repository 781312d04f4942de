// The number of servers that a traffic needs: a simulation of requests over several equal servers.
//
// Requests come at random (Poisson) and go to the server with the fewest under way, as the proxies
// of deploy/proxies have it. A server runs as many at a time as it has streams, in the order in
// which they came. Where servers share cores, and more requests run than there are, all of them run
// slower alike. Batches are not simulated: they only save time, and packed models compute tokens
// one by one.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/bucket/histogram.h"

namespace reprise::cli {

struct ReplicaTraffic {
  std::vector<WeightedSize> lengths;  // drawn from, each as often as its weight; not empty
  std::function<double(int64_t)> ms;  // time of a request of a length on one stream
  double rate = 1;                    // requests a second
  int streams = 1;                    // those of each server
  double overhead_ms = 0;  // core time of a request outside of streams: clients, proxy, protocol
  double latency_ms = 0;   // that a request takes outside of servers, on no core: the network
  int cores = 0;           // that all servers and the overhead share; 0: each stream has its own
  // How many times longer a request takes while all shared cores are busy than while one is: they
  // share memory, and may be threads of one core.
  double slowdown = 1;
  int64_t requests = 200'000;  // simulated ones; the first tenth is not counted
};

// The load of `replicas` servers, and the times of their requests.
struct ReplicaLoad {
  int replicas = 0;
  double utilization = 0;  // share of the streams' or the cores' time; above 1 no queue ends
  double p50_ms = 0, p99_ms = 0;
};

// Returns the same load for the same traffic. `replicas` is 1 or more.
ReplicaLoad SimulateReplicas(const ReplicaTraffic& traffic, int replicas);

// Returns the loads from the fewest servers that can serve the rate at all to the fewest that keep
// the 99th percentile at `p99_ms`, and one server more. Errors: INVALID_ARGUMENT where no number of
// servers does, since single requests take longer or the shared cores are too few, or where more
// than `most` are needed.
absl::StatusOr<std::vector<ReplicaLoad>> PlanReplicas(const ReplicaTraffic& traffic, double p99_ms,
                                                      int most = 1024);

// Reads "8:0.9,128:11.8,512:53.8": lengths and their times in milliseconds, ascending. The function
// is linear between them, through the origin below the first and on the last two's line beyond.
absl::StatusOr<std::function<double(int64_t)>> ParseTimes(absl::string_view text);

// The question that loads answer.
struct ReplicaQuestion {
  double p99_ms = 0;     // 0: none; the one load of `loads` was asked for
  double memory_mb = 0;  // that one server takes; 0: not known
};

// Returns a table of the loads, and the answer where `question` has a goal: servers, cores, memory.
std::string ReplicaText(const std::vector<ReplicaLoad>& loads, const ReplicaTraffic& traffic,
                        const ReplicaQuestion& question);
std::string ReplicaJson(const std::vector<ReplicaLoad>& loads, const ReplicaTraffic& traffic,
                        const ReplicaQuestion& question);

}  // namespace reprise::cli
