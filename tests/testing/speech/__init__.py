"""Sound for tests: files, and a tiny Whisper with what it says of them."""
