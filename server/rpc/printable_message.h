// MakePrintable: reports hold names from files and ids from clients, which a terminal shows.
//
// Threads: pure.
#pragma once

#include <google/protobuf/message.h>

namespace reprise {

// Replaces each text of `message`, and of all messages in it, by its printable form, cut at 2048
// bytes. Texts of ordinary characters stay as they are. Fields of bytes and maps are left alone.
void MakePrintable(google::protobuf::Message& message);

}  // namespace reprise
