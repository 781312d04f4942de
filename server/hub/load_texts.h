// Loads the text side of a model together with the model: the folder is read first, the model's
// graph gets its head while it is loaded, and the two become a TextModel.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/engine/model/model.h"
#include "server/hub/text_model.h"

namespace reprise {

struct ImportedModel;

struct TextSettings {
  std::optional<Pooling> pooling;  // counts instead of the folder's
  bool words = false;              // SPLADE counts instead of the folder's
  bool tokens = false;             // a vector a token is answered
  bool off = false;                // texts are not taken, and the graph stays as it is
  bool keep_outputs = false;       // the model's own outputs are kept with the vector
  TextLimits limits;
};

class TextLoad {
 public:
  // Reads the folder of `model_file`. A fault in it does not keep the model from being served
  // by ids: a request with a text gets it as its error.
  TextLoad(const std::string& model_file, const TextSettings& settings);

  // Called by the engine once the file is read: see ModelOptions::extend.
  absl::Status Extend(ImportedModel& model);

  // After that; null where the folder has no tokenizer.
  std::shared_ptr<const TextModel> Finish(const Model& model);

  // Returns why texts are not taken, or how: a sentence for the log; empty where the folder has no
  // tokenizer.
  const std::string& note() const { return note_; }
  // Returns the error that a text gets where Finish returned null.
  absl::Status refusal() const;
  const TextOffer& offer() const { return offer_; }
  const TextPackage& package() const { return package_; }

 private:
  void Refuse(const absl::Status& why);
  bool IsEmbedder(const ImportedModel& model) const;

  const TextSettings settings_;
  TextPackage package_;
  absl::Status damaged_;  // the result of reading the folder
  TextOffer offer_;
  std::string note_;
};

}  // namespace reprise
