// The credentials that people already have for each kind of place, where its own tools keep them.
//
// Nothing here is logged or shown; errors name the variable or the file, never its contents.
#pragma once

#include <functional>
#include <string>

#include "absl/status/statusor.h"

namespace reprise {

// Returns the Hugging Face Hub's: $HF_TOKEN, else the file $HF_TOKEN_PATH,
// $HF_HOME/token or ~/.cache/huggingface/token; "" without any.
std::string HubToken();

// AWS's: $AWS_ACCESS_KEY_ID and $AWS_SECRET_ACCESS_KEY, else the profile $AWS_PROFILE ("default")
// of $AWS_SHARED_CREDENTIALS_FILE and $AWS_CONFIG_FILE (in ~/.aws), else the address that a
// container is given ($AWS_CONTAINER_CREDENTIALS_FULL_URI). Empty keys: requests are not signed.
struct AwsCredentials {
  std::string key_id, secret, token;
  std::string region = "us-east-1";
  std::string endpoint;  // S3's address; empty: Amazon's
};
absl::StatusOr<AwsCredentials> FindAwsCredentials(const std::function<bool()>& cancelled);

// Google's: an access token for the account whose file $GOOGLE_APPLICATION_CREDENTIALS names, or
// that `gcloud auth application-default login` has written; "" without any. Errors: a file that
// cannot be used, a refusal of the token's server.
absl::StatusOr<std::string> GoogleToken(const std::function<bool()>& cancelled);

// Returns the value of an environment variable; "" where it is not set.
std::string Environment(const char* name);

// Returns a file of further authorities (PEM): the first of $SSL_CERT_FILE,
// $AWS_CA_BUNDLE, $REQUESTS_CA_BUNDLE and $CURL_CA_BUNDLE that is set.
std::string AuthoritiesFile();

}  // namespace reprise
