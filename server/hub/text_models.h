// TextModels: the text side of each loaded model, by the model.
//
// Ownership: a side lives as long as it is referenced; the side of an unloaded model leaves the
//            table with the next Add.
// Threads:   all methods are safe from any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/base/mutex.h"
#include "runtime/engine/model/model.h"
#include "server/hub/text_model.h"

namespace reprise {

class TextModels {
 public:
  // `refusal`: why texts are not taken, where `text` is null.
  void Add(const std::shared_ptr<const Model>& model, std::shared_ptr<const TextModel> text,
           absl::Status refusal);

  // Sets where work is done that no request waits for; without it such work is left out.
  using Background = std::function<void(std::function<void()> work)>;
  void SetBackground(Background background);
  // Prepares the vocabulary of `model`'s texts for grammars, in the background: a request that
  // is the first with a grammar does not wait for it then. See TextModel::GrammarsOf.
  void PrepareGrammars(const Model& model, const std::vector<int64_t>& eos,
                       int64_t vocabulary) const;

  // Errors: why texts are not taken.
  absl::StatusOr<std::shared_ptr<const TextModel>> Find(const Model& model) const;

 private:
  struct Entry {
    std::weak_ptr<const Model> model;
    std::shared_ptr<const TextModel> text;
    absl::Status refusal;
  };

  // Guarded.
  mutable Mutex mutex_;
  std::unordered_map<const Model*, Entry> entries_ GUARDED_BY(mutex_);
  Background background_ GUARDED_BY(mutex_);
};

}  // namespace reprise
