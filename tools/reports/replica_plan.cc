#include "tools/reports/replica_plan.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <nlohmann/json.hpp>
#include <queue>
#include <random>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"

namespace reprise::cli {
namespace {

constexpr double kMsPerSecond = 1000;

// One server: its requests under way, those of them that run on streams, and those that wait.
struct Server {
  size_t under_way = 0;
  int running = 0;
  std::deque<size_t> waiting;  // numbers of requests, in the order in which they came
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
  const double per_ms = traffic.rate / kMsPerSecond;
  const double streams = per_ms * MeanMs(traffic) / traffic.streams / replicas;
  if (traffic.cores == 0) return streams;
  return std::max(
      streams, per_ms * (MeanMs(traffic) + traffic.overhead_ms) * traffic.slowdown / traffic.cores);
}

// Returns the smallest value that is not below the share of `values`, which are reordered.
double Percentile(std::vector<double>& values, double share) {
  const auto at = static_cast<ptrdiff_t>(share * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), values.begin() + at, values.end());
  return values[static_cast<size_t>(at)];
}

int CoresOf(const ReplicaTraffic& traffic, int replicas) {
  return traffic.cores > 0 ? traffic.cores : replicas * traffic.streams;
}

// Returns a number in (0, 1), the same on every platform.
double Uniform(std::mt19937_64& random) {
  return (static_cast<double>(random() >> 11) + 0.5) / 9007199254740992.0;
}

// Requests from their arrivals to their ends.
class Simulation {
 public:
  Simulation(const ReplicaTraffic& traffic, int replicas)
      : traffic_(traffic), draws_(traffic), servers_(static_cast<size_t>(replicas)) {}

  // Returns the time of each request, in the order of their ends, without the first tenth.
  std::vector<double> Run() {
    double arrival = NextArrival();
    while (arrived_ < traffic_.requests || !jobs_.empty()) {
      const bool comes = arrived_ < traffic_.requests &&
                         (jobs_.empty() || arrival <= now_ + (jobs_.top().end - work_) / Speed());
      if (comes) {
        Advance(arrival);
        Arrive();
        arrival += NextArrival();
      } else {
        const Job job = jobs_.top();
        Advance(now_ + (job.end - work_) / Speed());
        work_ = job.end;  // it has no error of a division
        jobs_.pop();
        job.in_stream ? EndStream(job.request) : EnterServer(job.request);
      }
    }
    return std::move(times_);
  }

 private:
  struct Request {
    double came, ms;
    size_t server;
  };
  // Work on a core, until the work of every one that runs so has grown to `end`.
  struct Job {
    double end;
    size_t request;
    bool in_stream;
    bool operator>(const Job& other) const { return end > other.end; }
  };

  double NextArrival() { return -std::log(Uniform(random_)) * kMsPerSecond / traffic_.rate; }

  // Returns the work of a job in a millisecond: less where there are more jobs than cores.
  double Speed() const {
    if (traffic_.cores == 0) return 1;
    const auto jobs = static_cast<double>(jobs_.size());
    const double cores = traffic_.cores;
    const double others = cores == 1 ? 0 : std::max(0.0, std::min(jobs, cores) - 1) / (cores - 1);
    return std::min(1.0, cores / jobs) / (1 + (traffic_.slowdown - 1) * others);
  }
  void Advance(double to) {
    if (!jobs_.empty()) work_ += (to - now_) * Speed();
    now_ = to;
  }

  void Arrive() {
    // Equal servers take turns, as proxies do.
    size_t best = turn_ % servers_.size();
    for (size_t k = 1; k < servers_.size() && servers_[best].under_way > 0; ++k) {
      const size_t other = (turn_ + k) % servers_.size();
      if (servers_[other].under_way < servers_[best].under_way) best = other;
    }
    turn_ = best + 1;
    ++servers_[best].under_way;
    const auto number = static_cast<size_t>(arrived_++);
    requests_.push_back({now_, draws_.At(Uniform(random_)), best});
    if (traffic_.overhead_ms > 0) {
      jobs_.push({work_ + traffic_.overhead_ms, number, false});
    } else {
      EnterServer(number);
    }
  }

  void EnterServer(size_t number) {
    Server& server = servers_[requests_[number].server];
    if (server.running == traffic_.streams) return server.waiting.push_back(number);
    ++server.running;
    jobs_.push({work_ + requests_[number].ms, number, true});
  }

  void EndStream(size_t number) {
    const Request& request = requests_[number];
    if (static_cast<int64_t>(number) >= traffic_.requests / 10)
      times_.push_back(now_ - request.came + traffic_.latency_ms);
    Server& server = servers_[request.server];
    --server.under_way;
    --server.running;
    if (server.waiting.empty()) return;
    const size_t next = server.waiting.front();
    server.waiting.pop_front();
    EnterServer(next);
  }

  const ReplicaTraffic& traffic_;
  const Draws draws_;
  std::vector<Server> servers_;
  std::mt19937_64 random_{1};
  std::priority_queue<Job, std::vector<Job>, std::greater<>> jobs_;
  std::vector<Request> requests_;
  std::vector<double> times_;
  double now_ = 0, work_ = 0;
  int64_t arrived_ = 0;
  size_t turn_ = 0;
};

}  // namespace

ReplicaLoad SimulateReplicas(const ReplicaTraffic& traffic, int replicas) {
  std::vector<double> times = Simulation(traffic, replicas).Run();
  ReplicaLoad load = {.replicas = replicas, .utilization = UtilizationOf(traffic, replicas)};
  load.p50_ms = Percentile(times, 0.5);
  load.p99_ms = Percentile(times, 0.99);
  return load;
}

absl::StatusOr<std::vector<ReplicaLoad>> PlanReplicas(const ReplicaTraffic& traffic, double p99_ms,
                                                      int most) {
  const double least = Draws(traffic).At(0.99) + traffic.overhead_ms + traffic.latency_ms;
  if (least > p99_ms) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "no number of servers keeps the 99th percentile at %g ms: 1 of 100 requests takes %.4g ms "
        "by itself",
        p99_ms, least));
  }
  if (const double busy = UtilizationOf(traffic, most); traffic.cores > 0 && busy >= 1) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "%g requests a second keep %d cores busy for %.0f %% of the time: no number of servers on "
        "them does",
        traffic.rate, traffic.cores, 100 * busy));
  }
  const double needed = traffic.rate * MeanMs(traffic) / kMsPerSecond / traffic.streams;
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
                        const ReplicaQuestion& question) {
  std::string text =
      absl::StrFormat("%d requests, %g a second, %.4g ms each on one of %d streams of a server",
                      traffic.requests, traffic.rate, MeanMs(traffic), traffic.streams);
  if (traffic.overhead_ms > 0) {
    absl::StrAppendFormat(&text, ", %.4g ms outside of it", traffic.overhead_ms);
  }
  if (traffic.cores > 0) absl::StrAppendFormat(&text, ", all on %d cores", traffic.cores);
  absl::StrAppendFormat(&text, "\n\nservers  %s busy   half within    99 %% within\n",
                        traffic.cores > 0 ? "  cores" : "streams");
  for (const ReplicaLoad& load : loads) {
    absl::StrAppendFormat(&text, "%7d  %10.1f %%  %9.4g ms  %9.4g ms\n", load.replicas,
                          100 * load.utilization, load.p50_ms, load.p99_ms);
  }
  if (question.p99_ms == 0) return text;
  const int answer = loads[loads.size() - 2].replicas;
  absl::StrAppendFormat(&text, "\n%d servers keep 99 %% within %g ms: %d cores", answer,
                        question.p99_ms, CoresOf(traffic, answer));
  if (question.memory_mb > 0) {
    absl::StrAppendFormat(&text, ", %.4g MiB", answer * question.memory_mb);
  }
  absl::StrAppend(&text, ".\n");
  return text;
}

std::string ReplicaJson(const std::vector<ReplicaLoad>& loads, const ReplicaTraffic& traffic,
                        const ReplicaQuestion& question) {
  nlohmann::ordered_json json;
  const int answer = loads[question.p99_ms == 0 ? 0 : loads.size() - 2].replicas;
  json["replicas"] = answer;
  json["cores"] = CoresOf(traffic, answer);
  if (question.memory_mb > 0) json["memory_mb"] = answer * question.memory_mb;
  json["rate"] = traffic.rate;
  if (question.p99_ms > 0) json["p99_ms"] = question.p99_ms;
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
