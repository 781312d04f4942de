#include "tools/local_decoder.h"

#include <filesystem>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/generate/encoder_decoder.h"
#include "server/hub/generation_files.h"
#include "server/hub/model_file.h"

namespace reprise::cli {
namespace {

namespace fs = std::filesystem;

// Returns the model's file, where `path` is its folder.
absl::StatusOr<fs::path> FileOf(const std::string& path) {
  fs::path file = path;
  if (!fs::is_directory(file)) return file;
  ASSIGN_OR_RETURN(const std::string found, FindModelFile(file, ""));
  return file / found;
}

}  // namespace

absl::StatusOr<std::shared_ptr<const Model>> LoadLocalDecoder(LocalEngine& local,
                                                              const std::string& path,
                                                              GeneratorOptions& generator,
                                                              Precision precision) {
  ASSIGN_OR_RETURN(const fs::path file, FileOf(path));
  ASSIGN_OR_RETURN(std::shared_ptr<const Model> model, local.LoadToStudy(file.string(), precision));
  const GenerationFacts facts = ReadGenerationFiles(file);
  if (generator.eos_ids.empty()) generator.eos_ids = facts.eos_ids;
  generator.stated_context = facts.context;
  const std::optional<EncoderDecoderFiles> files = FindEncoderDecoder(file);
  if (!files.has_value()) return model;
  ASSIGN_OR_RETURN(const std::shared_ptr<const Model> decoder,
                   LoadDecoder(local.engine, *files, model->options()));
  ASSIGN_OR_RETURN(generator.encoder.cross, LoadCrossModel(local.engine, *files, model->options()));
  generator.encoder.encoder = std::move(model);
  generator.rules = facts.rules;
  return decoder;
}

absl::StatusOr<std::shared_ptr<const TextModel>> LoadLocalTexts(const std::string& path,
                                                                const Model& model) {
  ASSIGN_OR_RETURN(const fs::path file, FileOf(path));
  ASSIGN_OR_RETURN(TextPackage package, ReadTextPackage(file));
  if (!package.tokenizer.has_value()) {
    return absl::NotFoundError(absl::StrCat(path, " has no tokenizer"));
  }
  return TextModel::Make(std::move(package), TextOffer(), model.inputs(), {.max_bytes = 0});
}

}  // namespace reprise::cli
