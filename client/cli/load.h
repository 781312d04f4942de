// Clients that send requests and measure them: the closed loop of `reprise bench`, and the threads
// of every load.
#pragma once

#include <atomic>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <utility>
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

// When each request is to be sent, from the begin of the load.
class Arrivals {
 public:
  // `rate`: requests a second, at random times; 0: each at once.
  Arrivals(double rate, uint64_t seed) : rate_(rate), random_(seed) {}

  std::pair<int64_t, std::chrono::nanoseconds> Next() {
    std::lock_guard lock(mutex_);
    if (rate_ > 0 && next_ > 0) {
      const double uniform = (static_cast<double>(random_() >> 11) + 0.5) * 0x1.0p-53;
      at_ += -std::log(uniform) / rate_;
    }
    return {next_++, std::chrono::nanoseconds(static_cast<int64_t>(at_ * 1e9))};
  }

 private:
  const double rate_;
  std::mutex mutex_;
  std::mt19937_64 random_;  // guarded by mutex_, as are the next ones
  int64_t next_ = 0;
  double at_ = 0;  // seconds
};

template <typename Sample>
struct Measured {
  double seconds = 0;
  std::vector<Sample> samples;  // ordered like their requests
};

// Sends requests until there are `options.requests`, or `options.duration` is over; `rate` as for
// Arrivals. `ask(index, due)` sends one and returns its sample. `progress` is called about ten
// times a second with the number of finished requests, from the calling thread.
template <typename Options, typename Ask>
auto RunWorkers(const Options& options, double rate, const Ask& ask,
                const std::function<void(int64_t)>& progress) {
  using Clock = std::chrono::steady_clock;
  using Sample = decltype(ask(int64_t{}, Clock::time_point()));
  std::atomic<int64_t> finished = 0;
  std::mutex mutex;
  std::condition_variable ended;
  int running = options.concurrency;
  std::map<int64_t, Sample> samples;
  Arrivals arrivals(rate, options.seed);
  const auto start = Clock::now();
  const auto work = [&] {
    std::vector<std::pair<int64_t, Sample>> own;
    while (true) {
      const std::pair<int64_t, std::chrono::nanoseconds> next = arrivals.Next();
      const Clock::time_point due = rate > 0 ? start + next.second : Clock::now();
      if (options.requests > 0 && next.first >= options.requests) break;
      if (options.duration.count() > 0 && due - start >= options.duration) break;
      std::this_thread::sleep_until(due);
      own.emplace_back(next.first, ask(next.first, due));
      ++finished;
    }
    std::lock_guard lock(mutex);
    for (auto& [index, sample] : own) samples.emplace(index, std::move(sample));
    --running;
    ended.notify_all();
  };
  std::vector<std::thread> threads;
  threads.reserve(static_cast<size_t>(options.concurrency));
  for (int i = 0; i < options.concurrency; ++i) threads.emplace_back(work);
  {
    std::unique_lock lock(mutex);
    while (!ended.wait_for(lock, std::chrono::milliseconds(100), [&] { return running == 0; })) {
      progress(finished);
    }
  }
  const std::chrono::duration<double> took = Clock::now() - start;
  for (std::thread& thread : threads) thread.join();
  progress(finished);
  Measured<Sample> measured = {.seconds = took.count()};
  for (auto& [index, sample] : samples) measured.samples.push_back(std::move(sample));
  return measured;
}

}  // namespace reprise::cli
