#include "tools/reports/replica_plan.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <queue>
#include <random>
#include <tuple>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"

namespace reprise::cli {
namespace {

constexpr double kMsPerSecond = 1000;

// One server: when each of its streams is free, and when its requests under way end.
struct Server {
  using Times = std::priority_queue<double, std::vector<double>, std::greater<>>;

  Times streams_free;
  Times ends;

  size_t UnderWay(double now) {
    while (!ends.empty() && ends.top() <= now) ends.pop();
    return ends.size();
  }
  // Takes a request, and returns when it ends.
  double Take(double now, double ms) {
    const double begin = std::max(now, streams_free.top());
    streams_free.pop();
    streams_free.push(begin + ms);
    ends.push(begin + ms);
    return begin + ms;
  }
};

double MeanMs(const ReplicaTraffic& traffic) {
  double sum = 0, weight = 0;
  for (const WeightedSize& length : traffic.lengths) {
    sum += length.weight * traffic.ms(length.size);
    weight += length.weight;
  }
  return sum / weight;
}

// Times of requests, drawn as often as lengths have them.
class Draws {
 public:
  explicit Draws(const ReplicaTraffic& traffic) {
    for (const WeightedSize& length : traffic.lengths) {
      ms_.push_back(traffic.ms(length.size));
      up_to_.push_back((up_to_.empty() ? 0 : up_to_.back()) + length.weight);
    }
  }

  // `share`: from 0 to 1.
  double At(double share) const {
    const auto it = std::upper_bound(up_to_.begin(), up_to_.end(), share * up_to_.back());
    return ms_[std::min(static_cast<size_t>(it - up_to_.begin()), ms_.size() - 1)];
  }

 private:
  std::vector<double> ms_;
  std::vector<double> up_to_;  // sums of weights
};

double UtilizationOf(const ReplicaTraffic& traffic, int replicas) {
  return traffic.rate * MeanMs(traffic) / kMsPerSecond / traffic.streams / replicas;
}

// Returns the smallest value that is not below the share of `values`, which are reordered.
double Percentile(std::vector<double>& values, double share) {
  const auto at = static_cast<ptrdiff_t>(share * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), values.begin() + at, values.end());
  return values[static_cast<size_t>(at)];
}

// A number in (0, 1), the same on every platform.
double Uniform(std::mt19937_64& random) {
  return (static_cast<double>(random() >> 11) + 0.5) / 9007199254740992.0;
}

}  // namespace

ReplicaLoad SimulateReplicas(const ReplicaTraffic& traffic, int replicas) {
  std::vector<Server> servers(static_cast<size_t>(replicas));
  for (Server& server : servers) {
    for (int i = 0; i < traffic.streams; ++i) server.streams_free.push(0);
  }
  const Draws draws(traffic);
  std::mt19937_64 random(1);
  std::vector<double> times;
  const int64_t skipped = traffic.requests / 10;
  double now = 0;
  size_t turn = 0;  // the next one of equal servers, as proxies do
  for (int64_t i = 0; i < traffic.requests; ++i) {
    now -= std::log(Uniform(random)) * kMsPerSecond / traffic.rate;
    const double ms = draws.At(Uniform(random));
    size_t best = turn % servers.size();
    size_t fewest = servers[best].UnderWay(now);
    for (size_t k = 1; k < servers.size() && fewest > 0; ++k) {
      const size_t other = (turn + k) % servers.size();
      const size_t count = servers[other].UnderWay(now);
      if (count < fewest) std::tie(best, fewest) = std::pair(other, count);
    }
    turn = best + 1;
    const double end = servers[best].Take(now, ms);
    if (i >= skipped) times.push_back(end - now);
  }
  ReplicaLoad load = {.replicas = replicas, .utilization = UtilizationOf(traffic, replicas)};
  load.p50_ms = Percentile(times, 0.5);
  load.p99_ms = Percentile(times, 0.99);
  return load;
}

absl::StatusOr<std::vector<ReplicaLoad>> PlanReplicas(const ReplicaTraffic& traffic, double p99_ms,
                                                      int most) {
  const double least = Draws(traffic).At(0.99);
  if (least > p99_ms) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "no number of servers keeps the 99th percentile at %g ms: 1 of 100 requests takes %.4g ms "
        "by itself",
        p99_ms, least));
  }
  const double needed = UtilizationOf(traffic, 1);
  if (needed >= most) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%g requests a second take %.0f servers, more than %d", traffic.rate,
                        std::ceil(needed), most));
  }
  std::vector<ReplicaLoad> loads;
  for (int replicas = static_cast<int>(needed) + 1; replicas <= most; ++replicas) {
    loads.push_back(SimulateReplicas(traffic, replicas));
    if (loads.back().p99_ms > p99_ms) continue;
    loads.push_back(SimulateReplicas(traffic, replicas + 1));
    return loads;
  }
  return absl::InvalidArgumentError(absl::StrFormat(
      "%d servers have a 99th percentile of %.4g ms, above %g", most, loads.back().p99_ms, p99_ms));
}

absl::StatusOr<std::function<double(int64_t)>> ParseTimes(absl::string_view text) {
  std::vector<std::pair<double, double>> points = {{0, 0}};
  for (const absl::string_view point : absl::StrSplit(text, ',')) {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(point, absl::MaxSplits(':', 1));
    int64_t length = 0;
    double ms = 0;
    if (!absl::SimpleAtoi(parts.first, &length) || !absl::SimpleAtod(parts.second, &ms) ||
        length <= points.back().first || ms <= 0 || !std::isfinite(ms)) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", point, "' in '", text,
                       "' is not LENGTH:MILLISECONDS with a larger length than the one before it"));
    }
    points.emplace_back(static_cast<double>(length), ms);
  }
  return [points = std::move(points)](int64_t length) {
    const auto x = static_cast<double>(length);
    size_t i = 1;
    while (i + 1 < points.size() && points[i].first < x) ++i;
    const auto& [x0, y0] = points[i - 1];
    const auto& [x1, y1] = points[i];
    return std::max(0.0, y0 + (y1 - y0) * (x - x0) / (x1 - x0));
  };
}

std::string ReplicaText(const std::vector<ReplicaLoad>& loads, const ReplicaTraffic& traffic,
                        double p99_ms, double memory_mb) {
  std::string text = absl::StrFormat(
      "%d requests, %g a second, %.4g ms each on one of %d streams of a server\n\n"
      "servers  streams busy   half within    99 %% within\n",
      traffic.requests, traffic.rate, MeanMs(traffic), traffic.streams);
  for (const ReplicaLoad& load : loads) {
    absl::StrAppendFormat(&text, "%7d  %10.1f %%  %9.4g ms  %9.4g ms\n", load.replicas,
                          100 * load.utilization, load.p50_ms, load.p99_ms);
  }
  const int answer = loads[loads.size() - 2].replicas;
  absl::StrAppendFormat(&text, "\n%d servers keep 99 %% within %g ms: %d cores", answer, p99_ms,
                        answer * traffic.streams);
  if (memory_mb > 0) absl::StrAppendFormat(&text, ", %.4g MiB", answer * memory_mb);
  absl::StrAppend(&text, ".\n");
  return text;
}

std::string ReplicaJson(const std::vector<ReplicaLoad>& loads, const ReplicaTraffic& traffic,
                        double p99_ms, double memory_mb) {
  nlohmann::ordered_json json;
  const int answer = loads[loads.size() - 2].replicas;
  json["replicas"] = answer;
  json["cores"] = answer * traffic.streams;
  if (memory_mb > 0) json["memory_mb"] = answer * memory_mb;
  json["rate"] = traffic.rate;
  json["p99_ms"] = p99_ms;
  json["mean_ms"] = MeanMs(traffic);
  for (const ReplicaLoad& load : loads) {
    json["loads"].push_back({{"replicas", load.replicas},
                             {"utilization", load.utilization},
                             {"p50_ms", load.p50_ms},
                             {"p99_ms", load.p99_ms}});
  }
  return json.dump(2) + "\n";
}

}  // namespace reprise::cli
