#include "runtime/onnx/gguf/gguf_model.h"

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/onnx/gguf/decoder_graph.h"
#include "runtime/onnx/gguf/encoder_graph.h"
#include "runtime/onnx/gguf/gguf_file.h"
#include "runtime/onnx/gguf/gguf_settings.h"

namespace reprise {

absl::StatusOr<onnx::ModelProto> GgufAsOnnx(const std::string& path, const FileBytes& file) {
  ASSIGN_OR_RETURN(const GgufFile read, GgufFile::Read(path, file));
  const auto write = [&]() -> absl::StatusOr<onnx::ModelProto> {
    ASSIGN_OR_RETURN(const GgufSettings settings, GgufSettings::Of(read));
    return IsEncoder(settings.architecture()) ? WriteEncoder(settings) : WriteDecoder(settings);
  };
  auto model = write();
  if (model.ok()) return model;
  return absl::Status(model.status().code(), absl::StrCat("GGUF file '", read.files()[0].name,
                                                          "': ", model.status().message()));
}

}  // namespace reprise
