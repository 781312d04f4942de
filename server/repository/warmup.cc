#include "server/repository/warmup.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/format_text.h"
#include "runtime/base/status_macros.h"
#include "server/repository/warmup_sizes.h"

namespace reprise {
namespace {

// A warm-up of all buckets captures no more: some ten seconds of captures.
constexpr size_t kMostWarmedUp = 4096;

// Returns whether `large` is no smaller than `small` along any axis.
bool Covers(const AxisSizes& large, const AxisSizes& small) {
  return std::all_of(small.begin(), small.end(), [&](const auto& axis) {
    const auto it = large.find(axis.first);
    return it != large.end() && it->second >= axis.second;
  });
}

// Lengths and how often each came: a line "LENGTH [COUNT]".
absl::StatusOr<std::map<int64_t, int64_t>> ReadLengths(const std::string& path) {
  std::ifstream file(path);
  if (!file) return absl::NotFoundError(absl::StrCat("cannot read the lengths file '", path, "'"));
  std::map<int64_t, int64_t> counts;
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream words(line);
    int64_t length = 0, count = 1;
    const bool read = static_cast<bool>(words >> length);
    if (read && !words.eof()) words >> count;
    if (!read || words.fail() || length < 1 || count < 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", path, "' line ", number, " is not a length: \"", line, "\""));
    }
    counts[length] += count;
  }
  return counts;
}

// For the bucket of each length, the recipe for one row and the one for the most rows that fit;
// those whose requests compute most come first.
std::vector<AxisSizes> BindingsOfLengths(const Model& model, const std::string& axis,
                                         const std::map<int64_t, int64_t>& counts) {
  if (const Packing* packing = model.packing()) {
    // Tokens of one request of each length, and of a full replay.
    std::set<int64_t> tokens = {packing->buckets().back()};
    for (const auto& [length, count] : counts) {
      const auto fitted = packing->Fit({.tokens = length, .segments = 1});
      if (fitted.has_value() && length <= packing->longest()) tokens.insert(fitted->tokens);
    }
    std::vector<AxisSizes> bindings;
    for (auto it = tokens.rbegin(); it != tokens.rend(); ++it) {
      bindings.push_back({{kTokensAxis, *it}});
    }
    return bindings;
  }
  const std::shared_ptr<const BucketPolicy> buckets = model.buckets();
  const BucketPolicy& policy = *buckets;
  std::map<int64_t, int64_t> elements;  // keyed by bucket
  for (const auto& [length, count] : counts) {
    if (const auto bucket = policy.Fit(axis, length)) elements[*bucket] += *bucket * count;
  }
  std::vector<std::pair<int64_t, int64_t>> order(elements.begin(), elements.end());
  std::stable_sort(order.begin(), order.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  std::vector<AxisSizes> bindings;
  for (const auto& [bucket, weight] : order) {
    AxisSizes sizes = {{axis, bucket}};
    if (policy.batch_axis.empty()) {
      bindings.push_back(sizes);
      continue;
    }
    for (const int64_t rows : {int64_t{1}, policy.LargestBatch(sizes)}) {
      sizes[policy.batch_axis] = policy.Fit(policy.batch_axis, rows).value_or(rows);
      bindings.push_back(sizes);
    }
  }
  return bindings;
}

// Returns the bucket of `model` that `label` names. For a packed model it may be the label of
// a padded bucket as well: that is room for its rows and tokens.
std::optional<AxisSizes> BucketNamed(const Model& model, const std::string& label) {
  if (auto sizes = model.FindBucket(label)) return sizes;
  const Packing* packing = model.packing();
  if (packing == nullptr) return std::nullopt;
  const std::shared_ptr<const BucketPolicy> policy = model.buckets();
  if (policy->batch_axis.empty()) return std::nullopt;  // Packed, and never padded.
  const std::optional<AxisSizes> padded = policy->FindBucket(label);
  if (!padded.has_value()) return std::nullopt;
  PackedSizes wanted = {.tokens = 1, .segments = padded->at(policy->batch_axis)};
  for (const auto& [axis, size] : *padded) wanted.tokens *= size;
  const auto fitted = packing->Fit(wanted);
  if (!fitted.has_value()) return std::nullopt;
  return AxisSizes{{kTokensAxis, fitted->tokens}};
}

absl::StatusOr<std::vector<AxisSizes>> AllBindings(const Model& model) {
  if (model.axes().empty()) return std::vector<AxisSizes>{AxisSizes()};
  std::optional<std::vector<AxisSizes>> all = model.AllBuckets(kMostWarmedUp);
  if (all.has_value()) return *std::move(all);
  const std::shared_ptr<const BucketPolicy> policy = model.buckets();
  const auto axis_text = [](std::string* out, const AxisBuckets& axis) {
    absl::StrAppend(out, axis.axis, " ", axis.sizes.size());
  };
  return absl::InvalidArgumentError(absl::StrCat(
      "model '", model.id().name, "' has more than ", kMostWarmedUp,
      " buckets, too many to capture them all: its axes have ",
      absl::StrJoin(policy->axes, ", ", axis_text),
      " sizes, which multiply; name the buckets to capture, or fewer sizes in reprise.buckets.*"));
}

}  // namespace

absl::StatusOr<std::vector<AxisSizes>> BindingsOf(const Model& model,
                                                  const std::vector<std::string>& labels) {
  if (labels.empty()) return AllBindings(model);
  std::vector<AxisSizes> bindings;
  for (const std::string& label : labels) {
    std::optional<AxisSizes> bucket =
        model.axes().empty() ? std::nullopt : BucketNamed(model, label);
    if (!bucket.has_value()) {
      return absl::InvalidArgumentError(
          absl::StrCat("model '", model.id().name, "' has no bucket \"", label, "\""));
    }
    bindings.push_back(*std::move(bucket));
  }
  return bindings;
}

absl::StatusOr<std::vector<AxisSizes>> UsualBinding(const Model& model,
                                                    const WarmupSettings& settings) {
  if (settings.usual.empty()) return std::vector<AxisSizes>();
  AxisSizes sizes;
  for (const ModelAxis& axis : model.axes()) {
    const auto range = model.options().ranges.find(axis.label);
    const bool given = range != model.options().ranges.end() && range->second.usual.has_value();
    if (!given && !axis.is_batch) {
      return absl::InvalidArgumentError(absl::StrCat(
          "model '", model.id().name, "': reprise.range.", settings.usual.begin()->first,
          " has a usual size, so that it is captured first; reprise.range.", axis.label,
          " has none"));
    }
    sizes[axis.label] = given ? *range->second.usual : 1;
  }
  return BindingsOfSizes(model, {sizes});
}

bool WantsWarmup(const WarmupSettings& settings) {
  return !settings.usual.empty() || settings.all || !settings.buckets.empty() ||
         !settings.sizes.empty() || !settings.lengths_file.empty();
}

absl::StatusOr<std::vector<AxisSizes>> WarmupBindings(const Model& model,
                                                      const WarmupSettings& settings,
                                                      const std::string& folder) {
  if (!WantsWarmup(settings)) return std::vector<AxisSizes>();
  ASSIGN_OR_RETURN(std::vector<AxisSizes> exact, BindingsOfSizes(model, settings.sizes));
  if (!settings.all && settings.buckets.empty() && settings.lengths_file.empty()) return exact;
  for (const ModelAxis& axis : model.axes()) {
    if (axis.certificate.certified || model.packing() != nullptr) continue;
    model.Note(absl::StrCat("no warm-up of buckets: axis ", axis.label,
                            " is not certified, so the sizes that will come are not known; name "
                            "them, as in reprise.warmup: \"",
                            absl::StrJoin(model.axes(), ",",
                                          [](std::string* out, const ModelAxis& one) {
                                            absl::StrAppend(out, one.label, "=SIZE");
                                          }),
                            "\""));
    return exact;
  }
  std::vector<AxisSizes> bindings = std::move(exact);
  if (settings.all || !settings.buckets.empty()) {
    ASSIGN_OR_RETURN(const std::vector<AxisSizes> named, BindingsOf(model, settings.buckets));
    bindings.insert(bindings.end(), named.begin(), named.end());
  }
  if (settings.lengths_file.empty()) return bindings;
  std::vector<std::string> lengths;
  for (const ModelAxis& axis : model.axes()) {
    if (!axis.is_batch) lengths.push_back(axis.label);
  }
  if (lengths.size() != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("reprise.warmup_lengths needs a model with one axis besides the batch, '",
                     model.id().name, "' has ", lengths.size()));
  }
  ASSIGN_OR_RETURN(const auto counts,
                   ReadLengths((std::filesystem::path(folder) / settings.lengths_file).string()));
  for (AxisSizes& sizes : BindingsOfLengths(model, lengths[0], counts)) {
    bindings.push_back(std::move(sizes));
  }
  return bindings;
}

std::vector<AxisSizes> LargestOf(const std::vector<AxisSizes>& bindings) {
  std::vector<AxisSizes> largest;
  for (const AxisSizes& one : bindings) {
    const bool covered = std::any_of(bindings.begin(), bindings.end(), [&](const AxisSizes& other) {
      return other != one && Covers(other, one);
    });
    if (!covered) largest.push_back(one);
  }
  return largest;
}

Warmup::Warmup(Engine& engine, std::shared_ptr<const Model> model, const WarmupSettings& settings,
               std::shared_ptr<WarmupProgress> progress, const ServerState& state)
    : engine_(engine),
      model_(std::move(model)),
      settings_(settings),
      progress_(std::move(progress)),
      state_(state),
      started_ns_(engine.options().clock->NowNs()) {}

void Warmup::Request(const std::vector<AxisSizes>& bindings) {
  {
    MutexLock lock(mutex_);
    started_ns_ = engine_.options().clock->NowNs();
  }
  Add(bindings, CaptureUrgency::kBehind);
}

void Warmup::Add(const std::vector<AxisSizes>& bindings, CaptureUrgency urgency) {
  int64_t added = 0;
  bool runs = false;
  {
    MutexLock lock(mutex_);
    const bool urgent = urgency == CaptureUrgency::kUrgent;
    for (const AxisSizes& sizes : bindings) {
      if (!known_.insert(sizes).second) continue;
      (urgent ? urgent_ : behind_).push_back(sizes);
      ++added;
    }
    runs = std::exchange(urgent ? urgent_runs_ : behind_runs_, true);
  }
  progress_->Change([&](WarmupProgress::State& state) {
    if (added == 0) return;
    // Bindings that a limit left out are dropped, unless they are among the added ones.
    state.wanted += added - std::exchange(state.left_out, 0);
    state.stopped.clear();
  });
  if (!runs) Next(urgency);
}

void Warmup::RunUntilReady(const std::vector<AxisSizes>& usual,
                           const std::vector<AxisSizes>& bindings,
                           const std::vector<AxisSizes>& used) {
  if (usual.empty() && bindings.empty() && used.empty()) return;
  Add(usual, CaptureUrgency::kUrgent);
  Add(settings_.ready_when_all ? bindings : LargestOf(bindings), CaptureUrgency::kUrgent);
  // Recipes that can serve all others come first, then the most used.
  Add(LargestOf(used), CaptureUrgency::kUrgent);
  Add(used, CaptureUrgency::kUrgent);
  {
    MutexLock lock(mutex_);
    while (urgent_runs_) finished_.Wait(mutex_);
  }
  if (progress_->state().stopped.empty()) Add(bindings, CaptureUrgency::kBehind);
}

void Warmup::Next(CaptureUrgency urgency) {
  const std::string limit = Limit();
  std::optional<AxisSizes> next;
  int64_t left_out = 0;
  {
    MutexLock lock(mutex_);
    const bool urgent = urgency == CaptureUrgency::kUrgent;
    std::deque<AxisSizes>& queue = urgent ? urgent_ : behind_;
    if (!limit.empty()) {
      left_out = static_cast<int64_t>(queue.size());
      for (const AxisSizes& one : queue) known_.erase(one);
      queue.clear();
    }
    if (queue.empty()) {
      (urgent ? urgent_runs_ : behind_runs_) = false;
      finished_.NotifyAll();
    } else {
      next = std::move(queue.front());
      queue.pop_front();
    }
  }
  if (left_out > 0) {
    progress_->Change([&](WarmupProgress::State& state) {
      state.stopped = limit;
      state.left_out += left_out;
    });
    model_->Note(absl::StrCat("warm-up ends early, ", left_out, " recipes are left out: ", limit));
  }
  if (!next.has_value()) return;
  engine_.CaptureAhead(*model_, *next, CompileReason::kWarmup, urgency,
                       [self = shared_from_this(), sizes = *next, urgency](absl::Status status) {
                         self->Behind(sizes, urgency, status);
                       });
}

void Warmup::Behind(const AxisSizes& sizes, CaptureUrgency urgency, const absl::Status& status) {
  CapturePool* const pool = engine_.options().captures;
  if (!status.ok() || model_->tail() == nullptr || pool == nullptr) {
    return Done(sizes, urgency, status);
  }
  // The part after its cuts has sizes that data decide: a run with made-up values captures it.
  const bool added =
      pool->Add(urgency, [self = shared_from_this(), sizes, urgency](Stream* stream) {
        self->Done(sizes, urgency,
                   stream == nullptr ? absl::UnavailableError("the server is stopping")
                                     : Rehearse(self->engine_, *self->model_, sizes, *stream));
      });
  if (!added) Done(sizes, urgency, absl::UnavailableError("no capture thread takes it"));
}

void Warmup::Done(const AxisSizes& sizes, CaptureUrgency urgency, const absl::Status& status) {
  std::string bucket = model_->LabelOfBucket(sizes);
  if (!model_->FindBucket(bucket).has_value()) {
    bucket = absl::StrJoin(sizes, ",", absl::PairFormatter("="));  // exact
  }
  const int64_t elapsed_ns = ElapsedNs();
  const WarmupProgress::State now = progress_->Change([&](WarmupProgress::State& state) {
    ++(status.ok() ? state.done : state.failed);
    state.elapsed_ns = elapsed_ns;
  });
  if (!status.ok()) {
    model_->Note(absl::StrCat("warm-up: ", bucket, " failed: ", std::string(status.message())));
  }
  model_->Note(FormatText("warm-up: %d of %d recipes after %.1f s (%s)", now.done, now.wanted,
                          static_cast<double>(now.elapsed_ns) * 1e-9, bucket));
  Next(urgency);
}

int64_t Warmup::ElapsedNs() const {
  MutexLock lock(mutex_);
  return engine_.options().clock->NowNs() - started_ns_;
}

std::string Warmup::Limit() const {
  if (state_.state() == ServerState::State::kDraining) return "the server is stopping";
  if (settings_.max_seconds > 0 && ElapsedNs() > settings_.max_seconds * 1'000'000'000) {
    return absl::StrCat(settings_.max_seconds, " s are over (reprise.warmup_seconds)");
  }
  int64_t bytes = 0, frame = 0, recipe = 0;
  const auto snapshot = model_->ready().Snapshot();
  for (const std::shared_ptr<const Recipe>& ready : *snapshot) {
    bytes += ready->memory_bytes();
    recipe = std::max(recipe, ready->memory_bytes());
    frame = std::max(frame, static_cast<int64_t>(ready->frame_bytes()));
  }
  if (settings_.max_bytes > 0 && bytes + frame > settings_.max_bytes) {
    return absl::StrCat("recipes and their arena take ", bytes + frame, " bytes, the limit is ",
                        settings_.max_bytes, " (reprise.warmup_memory_mb)");
  }
  // One more of the largest so far must not evict recipes that were captured before it.
  if (engine_.cache_bytes() + recipe > engine_.options().cache_bytes) {
    return absl::StrCat("recipes take ", engine_.cache_bytes(), " of ",
                        engine_.options().cache_bytes, " bytes (--recipe-cache-memory-mb)");
  }
  return "";
}

}  // namespace reprise
