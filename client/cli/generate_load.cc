#include "client/cli/generate_load.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <condition_variable>
#include <map>
#include <mutex>
#include <random>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"

namespace reprise::cli {
namespace {

using SteadyClock = std::chrono::steady_clock;

double MillisecondsSince(SteadyClock::time_point start) {
  return std::chrono::duration<double, std::milli>(SteadyClock::now() - start).count();
}

std::vector<int64_t> PromptOf(const GenerateLoadOptions& options, int64_t index) {
  const int64_t length = options.prompts[static_cast<size_t>(index) % options.prompts.size()];
  std::vector<int64_t> ids;
  std::mt19937_64 shared(options.seed),
      own(options.seed * 1'000'003 + static_cast<uint64_t>(index));
  for (int64_t i = 0; i < length; ++i) {
    std::mt19937_64& random = i < options.shared_prefix ? shared : own;
    ids.push_back(static_cast<int64_t>(random() % static_cast<uint64_t>(options.max_id + 1)));
  }
  return ids;
}

GenerateSample AskOne(client::Client& client, const GenerateLoadOptions& options, int64_t index,
                      SteadyClock::time_point due) {
  client::GenerateRequest request = {
      .model = options.model, .version = options.version, .ids = PromptOf(options, index)};
  const int64_t wanted = options.outputs[static_cast<size_t>(index) % options.outputs.size()];
  request.parameters = {{"max_tokens", wanted},
                        {"ignore_eos", true},
                        {"temperature", options.temperature},
                        {"seed", index}};
  GenerateSample sample = {.prompt = static_cast<int64_t>(request.ids.size())};
  double last = 0;
  const absl::Status status = client.Generate(request, [&](const client::GeneratedTokens& tokens) {
    const double now = MillisecondsSince(due);
    for (size_t i = 0; i < tokens.ids.size(); ++i) {
      if (sample.tokens++ == 0) {
        sample.first = now;
      } else {
        sample.between.push_back(now - last);
      }
      last = now;
    }
    return true;
  });
  sample.total = last;
  if (!status.ok()) {
    sample.error = absl::StrCat(absl::StatusCodeToString(status.code()), ": ", status.message());
  }
  return sample;
}

// When each request is to be sent, from the begin of the load.
class Arrivals {
 public:
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

}  // namespace

absl::StatusOr<GenerateLoadResult> RunGenerateLoad(client::Client& client,
                                                   const GenerateLoadOptions& options,
                                                   const std::function<void(int64_t)>& progress) {
  if (options.prompts.empty() || options.outputs.empty()) {
    return absl::InvalidArgumentError("no lengths to ask for");
  }
  std::atomic<int64_t> finished = 0;
  std::mutex mutex;
  std::condition_variable ended;
  int running = options.concurrency;
  std::map<int64_t, GenerateSample> samples;
  Arrivals arrivals(options.rate, options.seed);
  const auto start = SteadyClock::now();
  const auto work = [&] {
    std::vector<std::pair<int64_t, GenerateSample>> own;
    while (true) {
      const auto [index, at] = arrivals.Next();
      const auto due = options.rate > 0 ? start + at : SteadyClock::now();
      if (options.requests > 0 && index >= options.requests) break;
      if (options.duration.count() > 0 && due - start >= options.duration) break;
      std::this_thread::sleep_until(due);
      own.emplace_back(index, AskOne(client, options, index, due));
      ++finished;
    }
    std::lock_guard lock(mutex);
    for (auto& [index, sample] : own) samples.emplace(index, std::move(sample));
    --running;
    ended.notify_all();
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < options.concurrency; ++i) threads.emplace_back(work);
  {
    std::unique_lock lock(mutex);
    while (!ended.wait_for(lock, std::chrono::milliseconds(100), [&] { return running == 0; })) {
      progress(finished);
    }
  }
  const std::chrono::duration<double> took = SteadyClock::now() - start;
  for (std::thread& thread : threads) thread.join();
  progress(finished);
  GenerateLoadResult result{.seconds = took.count()};
  for (auto& [index, sample] : samples) result.samples.push_back(std::move(sample));
  return result;
}

}  // namespace reprise::cli
