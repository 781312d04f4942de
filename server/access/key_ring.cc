#include "server/access/key_ring.h"

#include <sys/stat.h>

#include <cerrno>
#include <fstream>
#include <iterator>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/memory_net.h"
#include "runtime/base/status_macros.h"

namespace reprise {
namespace {

constexpr int64_t kBetweenLooksNs = 1'000'000'000;

// Without a branch on any byte of either: the time tells the length of the presented key, which its
// sender knows, and nothing of the secret.
bool AreEqual(absl::string_view secret, absl::string_view presented) {
  size_t difference = secret.size() ^ presented.size();
  for (size_t i = 0; i < presented.size(); ++i) {
    // The secret's bytes again and again: it is not empty.
    difference |= static_cast<unsigned char>(secret[i % secret.size()]) ^
                  static_cast<unsigned char>(presented[i]);
  }
  volatile size_t result = difference;
  return result == 0;
}

}  // namespace

absl::StatusOr<std::unique_ptr<KeyRing>> KeyRing::Open(std::string path, const Clock& clock,
                                                       OnTrouble on_trouble) {
  std::unique_ptr<KeyRing> ring(new KeyRing(std::move(path), clock, std::move(on_trouble)));
  MutexLock lock(ring->mutex_);
  RETURN_IF_ERROR(ring->Read(ring->Stamp()));
  ring->looked_ns_ = clock.NowNs();
  return ring;
}

std::string KeyRing::Stamp() const {
  struct stat file = {};
  if (stat(path_.c_str(), &file) != 0) return "";
  return absl::StrCat(file.st_mtim.tv_sec, ".", file.st_mtim.tv_nsec, " ", file.st_size, " ",
                      file.st_ino);
}

absl::Status KeyRing::Read(const std::string& stamp) {
  // Also where it fails: it is reported once.
  stamp_ = stamp;
  std::ifstream file(path_);
  if (!file) {
    return absl::UnavailableError(
        absl::StrCat("the key file ", path_, ": ", std::system_category().message(errno)));
  }
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  absl::StatusOr<std::vector<Key>> keys = ParseKeys(text);
  if (!keys.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the key file ", path_, ": ", keys.status().message()));
  }
  auto entries = std::make_shared<Entries>();
  std::map<std::string, std::shared_ptr<KeyUse>> uses;
  for (Key& key : *keys) {
    const auto found = uses_.find(key.name);
    auto use = found != uses_.end() ? found->second : std::make_shared<KeyUse>(key.name);
    use->SetLimits(key.limits);
    uses[key.name] = use;
    entries->push_back(std::make_shared<const Entry>(Entry{std::move(key), std::move(use)}));
  }
  entries_ = std::move(entries);
  uses_ = std::move(uses);
  return absl::OkStatus();
}

absl::Status KeyRing::LookAtFile() {
  const int64_t now_ns = clock_.NowNs();
  if (now_ns - looked_ns_ < kBetweenLooksNs) return absl::OkStatus();
  looked_ns_ = now_ns;
  const std::string stamp = Stamp();
  return stamp == stamp_ ? absl::OkStatus() : Read(stamp);
}

std::shared_ptr<const KeyRing::Entry> KeyRing::Find(absl::string_view presented) {
  absl::Status trouble;
  std::shared_ptr<const Entries> entries;
  {
    MutexLock lock(mutex_);
    trouble = WithinMemory([] { return "reading the key file"; }, [&] { return LookAtFile(); });
    entries = entries_;
  }
  if (!trouble.ok() && on_trouble_ != nullptr) on_trouble_(trouble);
  std::shared_ptr<const Entry> found;
  for (const std::shared_ptr<const Entry>& entry : *entries) {
    if (AreEqual(entry->key.secret, presented)) found = entry;
  }
  return found;
}

}  // namespace reprise
