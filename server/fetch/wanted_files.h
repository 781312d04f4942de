// WantedFiles: which files of a repository of the hub make a model that is served: the model, the
// files of its kind beside it (a decoder's parts), and those that say what its texts mean.
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

// `files`: the paths that there are. `file` names one of them, as a path or as the end of one;
// `variant` "int8" takes model_int8.onnx. Errors: NOT_FOUND naming the files that there are, or,
// where none is a model, the command that makes one of what there is.
absl::StatusOr<WantedFiles> ChooseFiles(const std::vector<std::string>& files,
                                        const std::string& file, const std::string& variant,
                                        const std::string& repository);

}  // namespace reprise
