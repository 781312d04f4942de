// reprise record: the shapes of requests that come, as a file for `warmup --requests`.

#include <signal.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <map>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cli/command.h"
#include "client/files/recorded_file.h"
#include "command_line/progress.h"
#include "runtime/base/status_macros.h"

namespace reprise::cli {
namespace {

constexpr std::chrono::milliseconds kRecordEvery(200);

std::atomic<bool> record_ends{false};

void EndRecord(int) { record_ends = true; }

struct RecordFlags {
  ServerFlags server;
  std::string model;
  std::string version;
  std::string out;
  double sample = 1;
  double seconds = 0;
  uint64_t requests = 0;
  bool json = false;
};

using SizesOfAxes = std::vector<int64_t>;

// The shapes that the server has seen of a model, and how often each.
struct Seen {
  std::vector<std::string> axes, inputs;
  std::map<SizesOfAxes, std::pair<uint64_t, std::vector<std::string>>> shapes;
};

absl::StatusOr<Seen> LookAt(client::Client& client, const RecordFlags& flags) {
  v1::GetDynamicityRequest request;
  request.set_model(flags.model);
  request.set_version(flags.version);
  ASSIGN_OR_RETURN(const v1::GetDynamicityResponse answer, client.GetDynamicity(request));
  Seen seen;
  for (const v1::ModelDynamicity& model : answer.models()) {
    for (const v1::AxisDynamicity& axis : model.axes()) seen.axes.push_back(axis.axis());
    seen.inputs.assign(model.inputs().begin(), model.inputs().end());
    for (const v1::RequestShape& shape : model.shapes()) {
      seen.shapes[{shape.sizes().begin(), shape.sizes().end()}] = {
          shape.requests(), {shape.inputs().begin(), shape.inputs().end()}};
    }
  }
  return seen;
}

// The requests that came between two looks.
struct Recording {
  std::vector<client::RecordedShape> shapes;
  uint64_t came = 0, recorded = 0;
};

// Returns the share `sample` of the requests between two looks, counted over all shapes, so that
// rare ones are as likely as their share says.
Recording Between(const Seen& before, const Seen& after, double sample) {
  Recording recording;
  double owed = 0;
  for (const auto& [sizes, seen] : after.shapes) {
    const auto known = before.shapes.find(sizes);
    const uint64_t earlier = known == before.shapes.end() ? 0 : known->second.first;
    if (seen.first <= earlier) continue;
    const uint64_t came = seen.first - earlier;
    recording.came += came;
    owed += static_cast<double>(came) * sample;
    const auto count = static_cast<uint64_t>(std::floor(owed + 1e-9));
    if (count == 0) continue;
    owed -= static_cast<double>(count);
    client::RecordedShape& shape = recording.shapes.emplace_back();
    shape.count = count;
    recording.recorded += count;
    for (size_t i = 0; i < std::min(sizes.size(), after.axes.size()); ++i) {
      shape.sizes[after.axes[i]] = sizes[i];
    }
    for (size_t i = 0; i < std::min(seen.second.size(), after.inputs.size()); ++i) {
      shape.inputs[after.inputs[i]] = seen.second[i];
    }
  }
  return recording;
}

absl::Status RunRecord(const RecordFlags& flags) {
  ASSIGN_OR_RETURN(auto client, flags.server.Connect());
  ASSIGN_OR_RETURN(const Seen before, LookAt(*client, flags));
  signal(SIGINT, EndRecord);
  signal(SIGTERM, EndRecord);
  // Not sooner: a model that the server does not have leaves an earlier file as it is, and once
  // there is a file, requests are recorded and Ctrl-C ends the recording.
  std::ofstream file(flags.out);
  if (!file) {
    return absl::PermissionDeniedError(absl::StrCat("'", flags.out, "' cannot be written"));
  }
  const auto start = std::chrono::steady_clock::now();
  Recording recording;
  {
    command_line::Progress progress(absl::StrCat("recording ", flags.model));
    for (bool ends = false; !ends;) {
      if (!record_ends) std::this_thread::sleep_for(kRecordEvery);
      ends = record_ends;  // Read first: the look then has all that came until Ctrl-C.
      ASSIGN_OR_RETURN(const Seen now, LookAt(*client, flags));
      recording = Between(before, now, flags.sample);
      const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
      if (flags.requests > 0 && recording.came >= flags.requests) break;
      if (flags.seconds > 0 && passed.count() >= flags.seconds) break;
      progress.Show(flags.seconds > 0 ? passed.count() / flags.seconds : 0,
                    absl::StrCat(recording.came, " requests"));
    }
  }
  for (const client::RecordedShape& shape : recording.shapes) {
    file << client::RecordedLine(flags.model, shape);
  }
  file.flush();
  if (!file) return absl::UnavailableError(absl::StrCat("'", flags.out, "' could not be written"));
  if (flags.json) {
    return PrintJson({{"file", flags.out},
                      {"requests", recording.came},
                      {"recorded", recording.recorded},
                      {"shapes", recording.shapes.size()}});
  }
  std::printf("%s: %llu of %llu requests, %zu shapes\n", flags.out.c_str(),
              static_cast<unsigned long long>(recording.recorded),
              static_cast<unsigned long long>(recording.came), recording.shapes.size());
  return absl::OkStatus();
}

}  // namespace

void AddRecord(CLI::App& app, Action& action) {
  auto flags = std::make_shared<RecordFlags>();
  CLI::App* command = app.add_subcommand(
      "record", "Record the shapes of requests that come, for `warmup --requests`");
  flags->server.Add(*command);
  command->add_option("model", flags->model, "Name of the model")->required();
  command->add_option("--version", flags->version, "Version; the newest if left out");
  AddOption(*command, "--out", flags->out, "FILE", "File to write, a line for each shape")
      ->required();
  command->add_option("--seconds", flags->seconds, "Time to record for; until Ctrl-C if left out")
      ->check(CLI::NonNegativeNumber);
  command->add_option("--requests", flags->requests, "End once as many have come");
  command->add_option("--sample", flags->sample, "Share of the requests that are recorded")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  AddJson(*command, flags->json);
  command->callback([flags, &action] { action = [flags] { return RunRecord(*flags); }; });
}

}  // namespace reprise::cli
