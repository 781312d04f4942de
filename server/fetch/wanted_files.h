// WantedFiles: the files of a repository of the hub that are needed to serve a model: the model,
// the files of its kind next to it (a decoder's parts), and the ones that define its texts.
//
// Threads: pure.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace reprise {

struct WantedFiles {
  std::string model;               // the file that is loaded
  std::vector<std::string> files;  // it and all others; external data of its tensors comes later
};

// `files`: all paths. `file` names one of them, as a path or as the end of one; `variant` "int8"
// takes model_int8.onnx. Errors: NOT_FOUND naming the files, or, where none is a model, the
// command that converts them into one.
absl::StatusOr<WantedFiles> ChooseFiles(const std::vector<std::string>& files,
                                        const std::string& file, const std::string& variant,
                                        const std::string& repository);

}  // namespace reprise
