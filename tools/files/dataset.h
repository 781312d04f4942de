// Dataset: the sizes of the samples of a data set, and of the batches that a data loader makes of
// it.
//
//   .npz, .npy    arrays: a list of whole numbers is a list of lengths; of other arrays each row is
//                 a sample, and where all are called arr_0, arr_1, ... each array is one
//   .jsonl        an object a line: nested lists have a shape, a text has words, a number is a
//   length a folder      of WAV (samples), PNG or JPEG (height and width), by name, whatever else
//   it has
//
// Only headers of sounds and pictures are read.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/files/length_file.h"

namespace reprise::cli {

// One sample: a shape for each input, without the dim of the batch.
struct Dataset {
  std::vector<std::string> inputs;
  std::vector<std::vector<std::vector<int64_t>>> samples;  // sample, input, dim
};

// INVALID_ARGUMENT names the file and its fault, NOT_FOUND a path without data.
absl::StatusOr<Dataset> ReadDataset(const std::string& path);

struct BatchOptions {
  enum class Pad { kNone, kLongest, kBuckets };
  int64_t batch = 1;
  Pad pad = Pad::kLongest;
  int buckets = 0;            // number along every dim, where pad is kBuckets
  std::vector<int64_t> crop;  // the last dims of every sample are cut or padded to these
};
// "longest", "none", "buckets:5". INVALID_ARGUMENT names any other text.
absl::StatusOr<BatchOptions::Pad> ParsePad(const std::string& text, int& buckets);

// Returns the shapes of the batches, in the order of the samples. Without padding only samples of
// one shape that follow each other share a batch.
ShapeColumns BatchesOf(const Dataset& dataset, const BatchOptions& options);

}  // namespace reprise::cli
