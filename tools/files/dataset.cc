#include "tools/files/dataset.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "runtime/base/status_macros.h"
#include "runtime/bucket/solver.h"
#include "runtime/recipe/record_file.h"
#include "tools/files/array_file.h"
#include "tools/files/file_bytes.h"
#include "tools/files/media_size.h"

namespace reprise::cli {
namespace {

using SampleShape = std::vector<int64_t>;

constexpr size_t kMostSamples = 10'000'000;

// Returns the samples: a list of whole numbers has lengths, of anything else each row is one.
std::vector<SampleShape> SamplesOf(const ArrayFile& array) {
  std::vector<SampleShape> samples;
  if (!array.integers.empty()) {
    for (const int64_t length : array.integers) samples.push_back({length});
  } else if (!array.shape.empty()) {
    const SampleShape row(array.shape.begin() + 1, array.shape.end());
    samples.assign(static_cast<size_t>(std::min<int64_t>(array.shape[0], kMostSamples)), row);
  }
  return samples;
}

absl::StatusOr<Dataset> OfArrays(const std::vector<ArrayFile>& arrays, const std::string& path) {
  Dataset dataset;
  const bool one_each =
      arrays.size() > 1 && std::all_of(arrays.begin(), arrays.end(), [](const ArrayFile& array) {
        return absl::StartsWith(array.name, "arr_");
      });
  if (one_each) {
    dataset.inputs = {"input"};
    for (const ArrayFile& array : arrays) dataset.samples.push_back({array.shape});
    return dataset;
  }
  for (const ArrayFile& array : arrays) {
    const std::vector<SampleShape> samples = SamplesOf(array);
    if (dataset.inputs.empty()) dataset.samples.resize(samples.size());
    if (samples.size() != dataset.samples.size()) {
      return absl::InvalidArgumentError(absl::StrCat("'", path, "': array '", array.name, "' has ",
                                                     samples.size(), " samples, the first one ",
                                                     dataset.samples.size()));
    }
    dataset.inputs.push_back(array.name);
    for (size_t i = 0; i < samples.size(); ++i) dataset.samples[i].push_back(samples[i]);
  }
  return dataset;
}

// Returns the shape of a value of JSON: of nested lists by their first elements, of a text its
// words.
SampleShape ShapeOfJson(const nlohmann::json& value) {
  if (value.is_string()) {
    std::istringstream words(value.get<std::string>());
    std::string word;
    int64_t count = 0;
    while (words >> word) ++count;
    return {count};
  }
  if (value.is_number_integer()) return {value.get<int64_t>()};
  SampleShape shape;
  const nlohmann::json* at = &value;
  while (at->is_array()) {
    shape.push_back(static_cast<int64_t>(at->size()));
    if (at->empty()) break;
    at = &(*at)[0];
  }
  return shape;
}

absl::StatusOr<Dataset> ReadJsonLines(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, ReadWholeFile(path, kMostFileBytes));
  Dataset dataset;
  int number = 0;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    if (absl::StripAsciiWhitespace(line).empty()) continue;
    const nlohmann::json json =
        nlohmann::json::parse(line.begin(), line.end(), nullptr, /*allow_exceptions=*/false);
    std::map<std::string, SampleShape> shapes;
    if (json.is_object()) {
      for (const auto& [key, value] : json.items()) shapes[key] = ShapeOfJson(value);
    } else if (!json.is_discarded()) {
      shapes["input"] = ShapeOfJson(json);
    }
    if (shapes.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(path, ":", number, ": is not a JSON object"));
    }
    if (dataset.inputs.empty()) {
      for (const auto& [name, shape] : shapes) dataset.inputs.push_back(name);
    }
    std::vector<SampleShape>& sample = dataset.samples.emplace_back();
    for (const std::string& name : dataset.inputs) {
      const auto it = shapes.find(name);
      if (it == shapes.end()) {
        return absl::InvalidArgumentError(
            absl::StrCat(path, ":", number, ": has no '", name, "', which the first line has"));
      }
      sample.push_back(it->second);
    }
  }
  return dataset;
}

absl::StatusOr<Dataset> ReadFolder(const std::string& path) {
  std::vector<std::string> files;
  std::error_code error;
  std::filesystem::recursive_directory_iterator entry(path, error);
  const std::filesystem::recursive_directory_iterator end;
  while (!error && entry != end) {
    std::error_code unknown;
    if (entry->is_regular_file(unknown)) files.push_back(entry->path().string());
    entry.increment(error);
  }
  if (error) {
    return absl::PermissionDeniedError(
        absl::StrCat("the folder '", path, "' cannot be read whole: ", error.message()));
  }
  std::sort(files.begin(), files.end());
  Dataset dataset = {.inputs = {"input"}};
  for (const std::string& file : files) {
    ASSIGN_OR_RETURN(const std::optional<SampleShape> shape, MediaSizeOf(file));
    if (shape.has_value()) dataset.samples.push_back({*shape});
  }
  return dataset;
}

// Returns the smallest of `sizes` that holds `size`; `size` where none does.
int64_t RoundUp(int64_t size, const std::vector<int64_t>& sizes) {
  const auto it = std::lower_bound(sizes.begin(), sizes.end(), size);
  return it == sizes.end() ? size : *it;
}

// Rounds every dim of every input but its batch up to one of `buckets` sizes: those that pad the
// batches, as long as they are, the least.
void PadToBuckets(ShapeColumns& batches, int buckets) {
  for (size_t input = 0; input < batches.inputs.size(); ++input) {
    size_t rank = 0;
    for (const auto& batch : batches.rows) rank = std::max(rank, batch[input].size());
    for (size_t d = 1; d < rank; ++d) {
      std::map<int64_t, double> counts;
      for (const auto& batch : batches.rows) {
        if (d < batch[input].size())
          counts[batch[input][d]] += static_cast<double>(batch[input][0]);
      }
      std::vector<WeightedSize> sizes;
      for (const auto& [size, weight] : counts) {
        if (size > 0) sizes.push_back({size, weight});
      }
      const BoundaryCost cost = [](int64_t size) { return static_cast<double>(size); };
      if (sizes.empty()) continue;
      const std::vector<int64_t> boundaries = SolveBoundaries(sizes, buckets, cost).sizes;
      for (auto& batch : batches.rows) {
        if (d < batch[input].size()) batch[input][d] = RoundUp(batch[input][d], boundaries);
      }
    }
  }
}

}  // namespace

absl::StatusOr<Dataset> ReadDataset(const std::string& path) {
  if (!std::filesystem::exists(path)) {
    return absl::NotFoundError(absl::StrCat("there is no '", path, "'"));
  }
  Dataset dataset;
  if (std::filesystem::is_directory(path)) {
    ASSIGN_OR_RETURN(dataset, ReadFolder(path));
  } else if (absl::EndsWith(path, ".jsonl")) {
    ASSIGN_OR_RETURN(dataset, ReadJsonLines(path));
  } else {
    ASSIGN_OR_RETURN(const std::vector<ArrayFile> arrays, ReadArrays(path));
    ASSIGN_OR_RETURN(dataset, OfArrays(arrays, path));
  }
  if (dataset.samples.empty()) {
    return absl::NotFoundError(
        absl::StrCat("'", path, "' holds no sample: no WAV, PNG or JPEG file, line or row"));
  }
  return dataset;
}

absl::StatusOr<BatchOptions::Pad> ParsePad(const std::string& text, int& buckets) {
  if (text == "longest") return BatchOptions::Pad::kLongest;
  if (text == "none") return BatchOptions::Pad::kNone;
  absl::string_view count = text;
  if (absl::ConsumePrefix(&count, "buckets:") && absl::SimpleAtoi(count, &buckets) &&
      buckets >= 1 && buckets <= 64) {
    return BatchOptions::Pad::kBuckets;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("'", text, "' is none of longest, none and buckets:N, N from 1 to 64"));
}

ShapeColumns BatchesOf(const Dataset& dataset, const BatchOptions& options) {
  Dataset cropped = dataset;
  for (auto& sample : cropped.samples) {
    for (SampleShape& shape : sample) {
      const size_t last = std::min(shape.size(), options.crop.size());
      std::copy(options.crop.end() - static_cast<std::ptrdiff_t>(last), options.crop.end(),
                shape.end() - static_cast<std::ptrdiff_t>(last));
    }
  }
  ShapeColumns batches = {.inputs = dataset.inputs};
  std::vector<SampleShape> batch;  // one an input, with the dim of the batch
  const auto finish = [&] {
    if (batch.empty()) return;
    batches.rows.push_back(std::move(batch));
    batches.counts.push_back(1);
    batch.clear();
  };
  for (const auto& sample : cropped.samples) {
    std::vector<SampleShape> alone;
    for (const SampleShape& shape : sample) {
      alone.push_back({1});
      alone.back().insert(alone.back().end(), shape.begin(), shape.end());
    }
    if (!batch.empty() && options.pad == BatchOptions::Pad::kNone) {
      bool same = true;
      for (size_t i = 0; i < batch.size(); ++i) {
        same = same && std::equal(batch[i].begin() + 1, batch[i].end(), alone[i].begin() + 1,
                                  alone[i].end());
      }
      if (!same) finish();
    }
    if (batch.empty()) {
      batch = std::move(alone);
    } else {
      for (size_t i = 0; i < batch.size(); ++i) {
        ++batch[i][0];
        batch[i].resize(std::max(batch[i].size(), alone[i].size()), 0);
        for (size_t d = 1; d < alone[i].size(); ++d) {
          batch[i][d] = std::max(batch[i][d], alone[i][d]);
        }
      }
    }
    if (batch[0][0] >= options.batch) finish();
  }
  finish();
  if (options.pad == BatchOptions::Pad::kBuckets) PadToBuckets(batches, options.buckets);
  return batches;
}

}  // namespace reprise::cli
