#include "runtime/engine/profile.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "runtime/base/format_text.h"
#include "runtime/engine/replay/time_launch.h"
#include "runtime/json/json_writer.h"

namespace reprise {
namespace {

constexpr int kBarWidth = 30;

int64_t MedianOf(std::vector<int64_t>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Returns "181.3 GF/s" or "20.1 GB/s", for the resource that bounds the launch.
std::string RateText(const LaunchWork& work, const LaunchFloor& floor, double ns) {
  if (floor.compute_ns >= floor.memory_ns && work.flops > 0) {
    return FormatText("%.1f GF/s", work.flops / ns);
  }
  return work.bytes > 0 ? FormatText("%.1f GB/s", work.bytes / ns) : "-";
}

std::string ShareText(double floor, double ns) {
  return floor > 0 ? FormatText("%.0f %%", 100 * floor / ns) : "-";
}

// Returns `ns` of `longest` as a bar: '#' for the part that the roofline takes, '.' for the rest.
std::string Bar(double floor, double ns, double longest) {
  const auto length = [&](double value) {
    return static_cast<size_t>(kBarWidth * value / longest + 0.5);
  };
  const size_t whole = length(ns);
  const size_t solid = std::min(whole, length(floor));
  return std::string(solid, '#') + std::string(whole - solid, '.');
}

// Returns the bytes of the launch's outputs, where they lie in `frame`.
std::vector<absl::Span<std::byte>> OutputsOf(const Recipe& recipe, const Frame& frame, int index) {
  const Launch& launch = recipe.launches[static_cast<size_t>(index)];
  const std::vector<OperandNote>& notes = recipe.operand_notes[static_cast<size_t>(index)];
  std::vector<absl::Span<std::byte>> outputs;
  for (size_t i = 0; i < launch.operands.size(); ++i) {
    if (notes[i].role != OperandNote::Role::kOutput) continue;
    auto* const data = static_cast<std::byte*>(Resolve(launch.operands[i], frame));
    outputs.emplace_back(data, data == nullptr ? 0 : notes[i].bytes);
  }
  return outputs;
}

struct Sum {
  int launches = 0;
  double ns = 0;
  double floor = 0;
};

}  // namespace

RecipeProfile ProfileRecipe(std::shared_ptr<const Recipe> recipe, const Frame& frame,
                            const std::function<void()>& replay, int repeats, const Clock& clock) {
  std::vector<std::vector<int64_t>> times(recipe->launches.size());
  std::vector<int64_t> whole;
  for (int repeat = 0; repeat < repeats; ++repeat) {
    for (size_t i = 0; i < recipe->launches.size(); ++i) {
      times[i].push_back(TimeLaunch(*recipe, frame, static_cast<int>(i), clock));
    }
    const int64_t start = clock.NowNs();
    replay();
    whole.push_back(clock.NowNs() - start);
  }
  RecipeProfile profile = {.recipe = std::move(recipe)};
  for (std::vector<int64_t>& one : times) profile.launch_ns.push_back(MedianOf(one));
  profile.replay_ns = MedianOf(whole);
  return profile;
}

absl::StatusOr<LaunchRun> RunLaunch(const Recipe& recipe, const Frame& frame, int launch,
                                    int repeats, const Clock& clock) {
  const auto launches = static_cast<int>(recipe.launches.size());
  if (launch < 0 || launch >= launches) {
    return absl::OutOfRangeError(absl::StrCat("there is no launch ", launch, ": the recipe has ",
                                              launches, ", counted from 0"));
  }
  for (int i = 0; i < launch; ++i) TimeLaunch(recipe, frame, i, clock);
  const std::vector<absl::Span<std::byte>> outputs = OutputsOf(recipe, frame, launch);
  const auto copy = [](absl::Span<const std::byte> bytes) {
    return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  };
  // An output may lie where an input does.
  std::vector<std::string> before;
  for (const auto& output : outputs) before.push_back(copy(output));
  LaunchRun run;
  for (int repeat = 0; repeat < repeats; ++repeat) {
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (!before[i].empty()) std::memcpy(outputs[i].data(), before[i].data(), before[i].size());
    }
    run.ns.push_back(TimeLaunch(recipe, frame, launch, clock));
  }
  for (const auto& output : outputs) run.outputs.push_back(copy(output));
  return run;
}

double FloorNs(const Recipe& recipe, const Roofline& roofline) {
  double sum = 0;
  for (const Launch& launch : recipe.launches) sum += FloorOf(launch.work, roofline).ns();
  return sum;
}

RecipeBytes BytesOf(const Recipe& recipe) {
  RecipeBytes bytes;
  for (const Launch& launch : recipe.launches) {
    bytes.weights += launch.work.weight_bytes;
    bytes.others = std::max(bytes.others, launch.work.bytes - launch.work.weight_bytes);
  }
  return bytes;
}

std::string ProfileTable(const RecipeProfile& profile, const Roofline& roofline) {
  const std::vector<Launch>& launches = profile.recipe->launches;
  double longest = 1, total = 0;
  for (const int64_t ns : profile.launch_ns) {
    longest = std::max(longest, static_cast<double>(ns));
    total += static_cast<double>(ns);
  }
  std::string table = FormatText("%4s  %-18s %9s %6s %12s %8s  %-*s  %s\n", "#", "kernel", "us",
                                 "share", "rate", "roofline", kBarWidth, "", "shapes");
  std::map<std::string, Sum> by_kernel;
  for (size_t i = 0; i < launches.size(); ++i) {
    const Launch& launch = launches[i];
    const double ns = std::max(static_cast<double>(profile.launch_ns[i]), 1.0);
    const LaunchFloor floor = FloorOf(launch.work, roofline);
    AppendText(&table, "%4d  %-18s %9.1f %5.1f%% %12s %8s  %-*s  %s\n", i, launch.kernel, ns / 1e3,
               100 * ns / std::max(total, 1.0), RateText(launch.work, floor, ns),
               ShareText(floor.ns(), ns), kBarWidth, Bar(floor.ns(), ns, longest), launch.detail);
    Sum& sum = by_kernel[launch.kernel];
    ++sum.launches;
    sum.ns += ns;
    sum.floor += floor.ns();
  }
  std::vector<std::pair<std::string, Sum>> sorted(by_kernel.begin(), by_kernel.end());
  std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
    return a.second.ns - a.second.floor > b.second.ns - b.second.floor;
  });
  AppendText(&table, "\n%-18s %8s %9s %9s %9s %8s\n", "kernel", "launches", "us", "floor us",
             "lost us", "roofline");
  double floor = 0;
  for (const auto& [kernel, sum] : sorted) {
    AppendText(&table, "%-18s %8d %9.1f %9.1f %9.1f %8s\n", kernel, sum.launches, sum.ns / 1e3,
               sum.floor / 1e3, (sum.ns - sum.floor) / 1e3, ShareText(sum.floor, sum.ns));
    floor += sum.floor;
  }
  const auto replay = static_cast<double>(std::max<int64_t>(profile.replay_ns, 1));
  AppendText(&table, "%-18s %8d %9.1f %9.1f %9.1f %8s\n", "whole replay", launches.size(),
             replay / 1e3, floor / 1e3, (replay - floor) / 1e3, ShareText(floor, replay));
  return table;
}

void WriteProfile(const RecipeProfile& profile, const Roofline& roofline, JsonWriter& json) {
  const std::vector<Launch>& launches = profile.recipe->launches;
  json.Member("recipe", profile.recipe->key.hex());
  json.Member("replay_us", static_cast<double>(profile.replay_ns) * 1e-3);
  json.Member("floor_us", FloorNs(*profile.recipe, roofline) * 1e-3);
  json.Array("launches", [&] {
    for (size_t i = 0; i < launches.size(); ++i) {
      const Launch& launch = launches[i];
      json.Object([&] {
        json.Member("launch", i);
        json.Member("kernel", launch.kernel);
        json.Member("node", launch.node);
        json.Member("shapes", launch.detail);
        json.Member("us", static_cast<double>(profile.launch_ns[i]) * 1e-3);
        json.Member("floor_us", FloorOf(launch.work, roofline).ns() * 1e-3);
        json.Member("flops", static_cast<double>(launch.work.flops));
        json.Member("bytes", static_cast<double>(launch.work.bytes));
      });
    }
  });
}

}  // namespace reprise
