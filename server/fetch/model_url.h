// ModelUrl: the place of a model that is not on this machine.
//
//   hf://ORG/REPO[@REVISION][:FILE]      a repository of the Hugging Face Hub
//   s3://BUCKET/KEY, gs://BUCKET/KEY     a folder, a model file or an archive in a bucket
//   https://HOST/PATH[#sha256=DIGEST]    a model file or an archive
//
// Such a name comes from flags and configuration files alone, never from a request.
//
// Threads: pure.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace reprise {

struct ModelUrl {
  enum class Scheme { kHub, kS3, kGcs, kWeb };
  Scheme scheme = Scheme::kWeb;
  std::string shown;     // shown to people and in logs: without user, password and query
  std::string place;     // "ORG/REPO", the bucket, or the address with its query
  std::string path;      // the key or its beginning; of an address its path
  std::string revision;  // a branch, a tag or a commit; empty: the main branch
  std::string file;      // "onnx/model_int8.onnx"; empty: the usual one
  std::string sha256;    // that the bytes must have, in hexadecimal digits; empty: any

  // Returns whether `text` is meant to be one: it begins with letters and "://".
  static bool IsUrl(absl::string_view text);
  // Errors: INVALID_ARGUMENT with the expected form.
  static absl::StatusOr<ModelUrl> Parse(absl::string_view text);

  // Returns a name for the model, where none is given: "all-MiniLM-L6-v2".
  std::string DefaultName() const;
};

}  // namespace reprise
