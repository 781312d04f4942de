// Archives: tar (plain, gzip, bzip2, xz, zstd) and zip, unpacked by libarchive's readers.
//
// An archive holds files and folders, and nothing else: a link, a device, a path that is absolute
// or has "..", or one that is there twice, is refused by its name, before anything is written for
// it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "absl/status/statusor.h"

namespace reprise {

// Returns whether the name of a file says that it is one.
bool IsArchiveName(const std::string& name);

// Unpacks `archive` into the empty folder `folder`, at most `most_bytes`. Errors: INVALID_ARGUMENT
// naming the entry; RESOURCE_EXHAUSTED with the limit, or where the disk is full; CANCELLED.
absl::Status Unpack(const std::filesystem::path& archive, const std::filesystem::path& folder,
                    int64_t most_bytes, const std::function<bool()>& cancelled);

}  // namespace reprise
