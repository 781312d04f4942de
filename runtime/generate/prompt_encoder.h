// PromptEncoder: the encoder's result for a prompt, as pages for the decoder of an
// encoder-decoder.
//
// Two models run one after the other, once for a request: the encoder, and the part of the decoder
// that makes keys and values of the encoder's result. Both are models like any other: their lengths
// have buckets, which are captured when this is made.
//
// Threads: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/engine/engine.h"
#include "runtime/passes/paged/paged_form.h"

namespace reprise {

// A prompt for an encoder: ids, or numbers such as the spectrum of a sound.
struct EncoderPrompt {
  std::vector<int64_t> ids;
  std::string numbers;  // float32, row-major
  Shape shape;          // the shape of `numbers`
};

// The other models of a decoder with an encoder.
struct EncoderModels {
  std::shared_ptr<const Model> encoder;
  std::shared_ptr<const Model> cross;  // see LoadCrossModel
};

class PromptEncoder {
 public:
  // UNIMPLEMENTED naming the input or output that has no known part.
  static absl::StatusOr<std::unique_ptr<PromptEncoder>> Create(Engine& engine, EncoderModels models,
                                                               const PagedForm& form,
                                                               int max_threads,
                                                               size_t max_arena_bytes);

  // INVALID_ARGUMENT where the encoder takes no such prompt.
  absl::Status Check(const EncoderPrompt& prompt) const;
  // Returns how many places the result of `prompt` will have, where that is known before it is
  // computed.
  std::optional<int64_t> LengthOf(const EncoderPrompt& prompt) const;
  // Computes the keys and values of `prompt`, which stay until the next call. Errors: those of
  // the engine for the request; INVALID_ARGUMENT where they have more positions than `most`.
  absl::Status Run(const EncoderPrompt& prompt, int64_t most);
  // Returns the positions of the result of Run, and a page for each kPagePositions of them.
  int64_t length() const { return length_; }
  void Write(absl::Span<std::byte* const> pages) const;
  // Frees the result of Run.
  void Drop() { made_.clear(); }

  // Returns the input that a prompt goes to; whether that holds ids.
  const std::string& input() const { return encoder_.model->inputs()[main_].name; }
  bool takes_ids() const { return takes_ids_; }

 private:
  struct Runner {
    std::shared_ptr<const Model> model;
    size_t output = 0;  // position of the encoder's result
  };
  PromptEncoder(Engine& engine, EncoderModels models, std::unique_ptr<Stream> stream)
      : engine_(engine),
        encoder_{.model = std::move(models.encoder)},
        cross_(std::move(models.cross)),
        stream_(std::move(stream)) {}
  absl::Status FindInputs();
  absl::Status FindOutputs(const PagedForm& form);
  absl::StatusOr<OutputTensor> Encode(const EncoderPrompt& prompt);
  void WriteCache(size_t cache, absl::Span<std::byte* const> pages) const;

  Engine& engine_;
  Runner encoder_;
  const std::shared_ptr<const Model> cross_;
  const std::unique_ptr<Stream> stream_;
  size_t main_ = 0;  // position of the input of a prompt
  bool takes_ids_ = true;
  std::vector<PagedCache> caches_;  // caches of the encoder's result
  std::vector<size_t> outputs_;     // the output of `cross_` that each is made of
  std::vector<OutputTensor> made_;
  int64_t length_ = 0;
};

}  // namespace reprise
