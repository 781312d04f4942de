// Where the model of a folder lies: the layouts in which people keep models.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace reprise {

// Returns the model file of a flat folder, relative to it: `model.onnx`, `onnx/model.onnx`, or with
// `variant` "int8" `model_int8.onnx` or `onnx/model_int8.onnx`; where there is none, the encoder of
// an encoder-decoder, `encoder_model.onnx`; the only .onnx file where there is one alone, and in a
// folder without any the only .gguf file, parts of it after the first left out. Errors: NOT_FOUND
// listing the files.
absl::StatusOr<std::string> FindModelFile(const std::filesystem::path& folder,
                                          const std::string& variant);

// Returns the paths that FindModelFile looks for, in order.
std::vector<std::string> ModelFileNames(const std::string& variant);

// Returns, for an error, the command that makes a model of weights without a graph.
std::string ExportAdvice(const std::string& weights);

// Returns whether `name` is called as model files are: it ends with .onnx or .gguf.
bool IsModelName(absl::string_view name);

// Returns whether `folder` looks like one: some file .onnx or .gguf lies in it or in its folder
// `onnx`.
bool IsFlatFolder(const std::filesystem::path& folder);

// `path`, or the file of the same name in it where it is a folder (`1/model.onnx/model.onnx`).
std::filesystem::path ResolveModelFile(const std::filesystem::path& path);

// ResolveModelFile; where `path` is a missing model.onnx, the encoder next to it.
std::filesystem::path ChooseModelFile(const std::filesystem::path& path);

}  // namespace reprise
